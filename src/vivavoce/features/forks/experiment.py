"""Forks: going on from a stored conversation, by the suite of its run or by another suite or target."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from vivavoce.errors import NotFound, UsageError
from vivavoce.features.forks.records import Fork, held_before, start_id
from vivavoce.features.forks.search import ForkRun, held_outcome
from vivavoce.grading.asked import Asked
from vivavoce.messages import HumanMessage
from vivavoce.models.cache import Replies
from vivavoce.pacing.limits import Budget
from vivavoce.records.run import (
    Attempt,
    Listener,
    Outcome,
    Run,
    described_targets,
    is_from_python,
    is_watched,
    lacks_key,
    reading_record,
)
from vivavoce.records.score import Score, to_number
from vivavoce.records.trajectory import Trajectory, tool_results
from vivavoce.run.experiment import Description, Experiment, Limits, Samples, Scoring
from vivavoce.run.options import RunOptions
from vivavoce.samples.sample import Sample
from vivavoce.store.store import Store
from vivavoce.suites.build import Builder
from vivavoce.suites.check import check_tester, tester_of
from vivavoce.suites.command_line import read_target, target_names
from vivavoce.suites.expectations import Assertions, grades_assertions
from vivavoce.suites.experiment import code_of, scripted_driver, set_up_of
from vivavoce.suites.judges import JudgeOpener
from vivavoce.suites.load import Suite, dump_spec, filled_suite, load_suite, stored_suite, suite_record
from vivavoce.suites.targets import build_targets, target_limits
from vivavoce.targets.openai import OpenAITarget
from vivavoce.targets.target import Target, gets_conversation
from vivavoce.tools.recordings import Recordings, recorded_call
from vivavoce.tools.toolbox import Toolbox, by_name
from vivavoce.validation import copy_with


@dataclass(frozen=True, slots=True)
class ForkRequest:
    """What a fork is asked for: `turn` counts from 0, None for the turn at which the odds fell.

    `user` and `assistant` are what is said in that turn in place of what was; `target` goes on in place of the run's
    own; `suite` is the file of another suite whose graders and target are used.
    """

    turn: int | None = None
    user: str | None = None
    assistant: str | None = None
    trials: int = 10
    grader: str | None = None
    target: str | None = None
    suite: Path | None = None


def fork_run(
    run: Run,
    outcome: Outcome,
    request: ForkRequest,
    options: RunOptions | None = None,
    *,
    store: Store,
    listeners: Sequence[Listener] = (),
) -> ForkRun:
    """Return a run that goes on from a conversation of a run, ready to execute.

    Raises:
        UsageError: the turn is not there, nothing goes on, or there is nothing to find.
    """
    key, is_own_target = outcome.attempt.key, request.target in run_targets(run, outcome)
    by = None if is_own_target else request.target
    suite = _suite(run, request.suite, None if by is None else read_target(by))
    grader = _grader(store, run, outcome, request.grader)
    names = [name for spec in suite.spec.all_targets.values() for name, _ in spec.names_and_models]
    target_name = names[0] if by is not None or key.target not in names else key.target
    score = _score(outcome, grader)
    fork = Fork(
        run=run.id,
        sample=key.sample_id,
        target=key.target,
        trial=key.trial,
        turn=request.turn,
        user=request.user,
        assistant=request.assistant,
        grader=grader,
        trials=request.trials,
        turns=_turns(outcome),
        ended_well=None if score is None else score.passed,
        by=None if target_name == key.target else target_name,
    )
    _check(fork, outcome)
    run_options = options or RunOptions()
    run_options = run_options.model_copy(update={"trials": request.trials if request.turn is not None else None})
    build = partial(_build, suite, fork, outcome, run_options, store.grading(run.id).fingerprints)
    return ForkRun(build, store, run_options, listeners, partial_of=run, fork=fork)


def resume_fork(
    run: Run, fork: Fork, options: RunOptions, *, store: Store, listeners: Sequence[Listener] = (), errors: bool = False
) -> ForkRun:
    """Return an interrupted fork, ready to continue; with `errors` what ended with an error is retried.

    Raises:
        UsageError: the conversation that it goes on from is not in the store any more.
    """
    build = partial(_build, stored_suite(run), fork, held_outcome(store, fork), options, {})
    return ForkRun(build, store, options, listeners, resumed=run, retries_errors=errors, fork=fork)


def run_targets(run: Run, outcome: Outcome) -> list[str]:
    """Return the names of the targets of a run, as far as its record and one of its conversations say."""
    with reading_record(run, "spec.target"):
        names = [name for target in described_targets(run.spec) for name in target_names(target)]
    return [outcome.attempt.key.target, *names]


def _suite(run: Run, path: Path | None, target: Mapping[str, Any] | None) -> Suite:
    """Return the suite that goes on, without what only a whole run has: a gate, trials, a choice of samples.

    Raises:
        UsageError: it has no target, or the record of the run is not enough.
    """
    if path is not None:
        suite = load_suite(path, [target] if target else [])
        if suite.problems:
            raise UsageError(*suite.problems)
    else:
        suite = _stored_suite(run, target)
    if path is None and target is None and code_of(suite) != run.options.get("code"):
        note = f"the code of the target has changed since {run.id}: the replays use the current code"
        suite = replace(suite, notes=(*suite.notes, note))
    whole: dict[str, Any] = {"gate": None, "trials": 1, "agreement": [], "max_samples": None, "sample_tags": None}
    return replace(suite, spec=suite.spec.model_copy(update=whole))


def _stored_suite(run: Run, target: Mapping[str, Any] | None) -> Suite:
    hint = "set --target, or set --suite to a suite that has a target"
    if is_from_python(run):
        raise UsageError(f"run {run.id} was started in Python, which defined target and graders; name a --suite")
    if target is None and (is_watched(run) or run.spec.get("driver") == "replay"):
        raise UsageError(f"the conversations of {run.id} are recorded, so there is no target to continue them; {hint}")
    if target is None and lacks_key(run):
        raise UsageError(f"the target of {run.id} contained a key, which is not stored; {hint}")
    data = dict(run.spec)
    if target is not None:
        data = {name: value for name, value in data.items() if name not in ("target", "targets")}
        data["target"] = dict(target)
        if data.get("driver") == "replay":
            del data["driver"]
    document = suite_record(data, run)
    with reading_record(run, "spec"):
        return filled_suite(document, Path(run.base), run.option("suite"))


def _grader(store: Store, run: Run, outcome: Outcome, name: str | None) -> str:
    """Return the grader whose score says whether a conversation succeeded.

    It is the one that is named, else the first that failed: of those that the gate rests on, then of all.

    Raises:
        UsageError: nobody of that name graded the conversation.
    """
    grading = store.grading(run.id)
    known = [*outcome.scores, *(["reward"] if outcome.reward is not None else [])]
    if name is not None:
        if name not in (*known, *grading.fingerprints):
            raise NotFound("grader", name, within=f"run {run.id}", known=known)
        return name
    of_gate = [key for key in gate_keys(grading.spec.get("gate")) if key in known]
    order = list(dict.fromkeys([*of_gate, *known]))
    failed = [key for key in order if (score := _score(outcome, key)) is not None and score.passed is False]
    if not order:
        raise UsageError(
            f"{run.id}/{outcome.attempt.key.sample_id} has no score; grade it first: viva runs grade {run.id}"
        )
    return (failed or order)[0]


def gate_keys(gate: Any) -> list[str]:
    """Return the graders, and `reward`, that a gate rests on, in its order; the gate is as a suite has it."""
    if not isinstance(gate, Mapping):
        return []
    described: Mapping[str, Any] = gate  # pyright: ignore[reportUnknownVariableType] - plain data of a suite
    own = [described["metric_key"]] if "metric_key" in described else list(described.get("weights") or ())
    return [*own, *(key for condition in described.get("conditions") or () for key in gate_keys(condition))]


def _score(outcome: Outcome, grader: str) -> Score | None:
    return outcome.reward if grader == "reward" else outcome.scores.get(grader)


def _turns(outcome: Outcome) -> int:
    """Return from the beginning of how many turns the conversation can be gone on: to the first that failed."""
    turns = outcome.attempt.trajectory.turns
    return next((place + 1 for place, turn in enumerate(turns) if turn.failure is not None), len(turns))


def _check(fork: Fork, outcome: Outcome) -> None:
    """Refuse what cannot be gone on from, or has nothing to find.

    Raises:
        UsageError: so it is.
    """
    turns = f"{fork.turns} turn{'s' * (fork.turns != 1)}"
    if fork.turns == 0:
        raise UsageError(f"{fork.of} has no turns")
    if fork.turn is not None:
        if fork.turn >= fork.turns:
            raise UsageError(f"--turn {to_number(fork.turn)} does not exist; {fork.of} has {turns}")
        return
    if fork.ended_well:
        raise UsageError(
            f"{fork.of} did not fail '{fork.grader}', so there is no turn to find; name another --grader, or "
            "replay from one turn with --turn"
        )
    if fork.turns == 1:
        raise UsageError(f"{fork.of} has only one turn, so there is no other turn to compare it with; use --turn 1")
    if fork.ended_well is None and outcome.attempt.failure is None:
        raise UsageError(f"'{fork.grader}' did not decide whether {fork.of} passed; name another grader")


def _build(
    suite: Suite,
    fork: Fork,
    outcome: Outcome,
    options: RunOptions,
    graded_by: Mapping[str, str],
    budget: Budget,
    answers: Replies | None,
) -> Experiment:
    """Return the experiment of a fork; `graded_by` are the fingerprints of the scores of the conversation.

    Raises:
        UsageError: something that it is made of is wrong.
    """
    concurrency = options.max_concurrent or suite.spec.max_concurrent
    judges = JudgeOpener(budget, answers, options.replay, concurrency, base=suite.base)
    tester = tester_of(suite, judges)
    rows = continuations(fork, outcome.attempt, has_tester=tester is not None)
    samples = [row.sample for row in rows]
    builder = Builder(
        suite,
        judges.open,
        tester=tester.agent.fingerprint if tester else "",
        metric_assertions=_judged_assertions(suite, samples),
    )
    scoring = replace(builder.scoring(), gate=None)
    _check_grader(fork, scoring, graded_by)
    if tester is not None:
        check_tester(suite, tester)
    target, limits = _target(suite, fork, concurrency)
    answer_as_recorded(target, outcome.attempt)
    if fork.assistant is not None and not gets_conversation(target):
        raise UsageError(
            f"--assistant: {target.name} stores the conversation itself, so its reply cannot be replaced; "
            "use --user, or a target that receives the whole conversation with each message"
        )
    return Experiment(
        name=suite.spec.name,
        samples=Samples(lambda: samples, len(samples) if fork.turn is not None else None, fork.words, fork.of),
        scoring=scoring,
        limits=Limits(concurrency),
        description=Description(dump_spec(suite), suite.base, suite.source, code_of(suite)),
        driver=tester or scripted_driver(suite),
        targets=(target,),
        own_limits={target.name: limits},
        trials=fork.trials if fork.turn is not None else 1,
        set_up=set_up_of(suite, [target]),
        held={row.sample.id: row.trajectory for row in rows},
        notes=suite.notes,
    )


def _judged_assertions(suite: Suite, samples: Sequence[Sample]) -> Mapping[str, Asked]:
    """Return what the assertions of the rows ask of metrics."""
    assertions = Assertions()
    for sample in samples if any(map(grades_assertions, suite.spec.graders.values())) else ():
        assertions.check(sample)
    return assertions.metric_assertions


def _check_grader(fork: Fork, scoring: Scoring, graded_by: Mapping[str, str]) -> None:
    """Check that continuations are graded as the conversation was.

    Raises:
        UsageError: the grader is not there, or another one.
    """
    now = scoring.fingerprints
    if fork.grader not in now:
        raise NotFound("grader", fork.grader, known=now)
    if fork.turn is None and graded_by and now[fork.grader] != graded_by.get(fork.grader):
        raise UsageError(
            f"'{fork.grader}' has changed since it graded {fork.run}, so replays cannot be compared with the "
            f"original; grade it again first: viva runs grade {fork.run}, with --suite for another suite"
        )


def _target(suite: Suite, fork: Fork, concurrency: int) -> tuple[Target, Limits]:
    name = fork.by or fork.target
    both = zip(build_targets(suite, concurrency), target_limits(suite, concurrency), strict=True)
    return next(pair for pair in both if pair[0].name == name)


@dataclass(frozen=True, slots=True)
class Continuation:
    """One place: its row, whose id says where it is, and what was held of the conversation before."""

    sample: Sample
    trajectory: Trajectory


def continuations(fork: Fork, attempt: Attempt, *, has_tester: bool) -> list[Continuation]:
    """Return the rows of a fork, in the order of their turns; `led` says that a tester goes on.

    The user says in the turn of a row what it said, or what the fork gives it to say. After that written inputs go on
    as they are, or the tester towards its goal.

    Raises:
        UsageError: nothing would be said.
    """
    known = json.loads(attempt.sample)
    row = Sample.model_validate({**known, **({} if "input" in known else {"messages": attempt.trajectory.messages})})
    messages = [turn.user_message for turn in attempt.trajectory.turns]
    planned = list(row.user_messages) if row.user_messages and attempt.trajectory.test is None else messages
    starts = [turn for turn in fork.starts if fork.turn is not None or turn >= row.history_turns]
    return [
        _continuation(fork, attempt.trajectory, row, turn, messages if has_tester else planned, has_tester)
        for turn in starts
    ]


def _continuation(
    fork: Fork, trajectory: Trajectory, row: Sample, turn: int, messages: Sequence[HumanMessage], has_tester: bool
) -> Continuation:
    turns, inputs = held_before(fork, trajectory.turns, turn), list(messages)
    if fork.user is not None:
        inputs[turn] = HumanMessage(content=fork.user)
    if has_tester:
        taken_back = _taken_back(trajectory)
        inputs = [message for place, message in enumerate(inputs[: turn + 1]) if place not in taken_back]
    elif len(turns) >= len(inputs):
        raise UsageError(f"--turn {turn + 1} is the last turn of {fork.of}; there is nothing to replay after it")
    beginning = copy_with(trajectory, {"turns": turns, "test": _test(trajectory, len(turns)), "failure": None})
    before = row.history_turns
    if turn < before:
        rule = "is in the row's history, which the target did not answer"
        raise UsageError(f"--turn {turn + 1} of {fork.of} {rule}")
    more = {"id": start_id(fork.sample, turn), "input": inputs[before:], "messages": None, "trial": None}
    fields = {name: getattr(row, name) for name in type(row).model_fields}
    fields_set = (row.model_fields_set | {"id", "input"}) - {"messages", "trial"}
    return Continuation(Sample.model_construct(fields_set, **{**fields, **more}), beginning)


def _taken_back(trajectory: Trajectory) -> set[int]:
    history = trajectory.test.history if trajectory.test is not None else ()
    return {place for place, turn in enumerate(history) if turn.forgotten}


def _test(trajectory: Trajectory, turns: int) -> Any:
    """Return what a tester left of the first turns, None where none led them."""
    test = trajectory.test
    if test is None or len(test.history) < turns:
        return None
    return copy_with(test, {"history": test.history[:turns], "discarded": []})


def answer_as_recorded(target: Target, attempt: Attempt) -> None:
    """Have the tools that a target offers and nobody answers give the results that a conversation has of them.

    A call without a recorded result is an error of the continuation, not of the target.
    """
    toolbox = target.tools if isinstance(target, OpenAITarget) else None
    if not isinstance(target, OpenAITarget) or not isinstance(toolbox, Toolbox) or toolbox.server is not None:
        return
    results = [(call, answer) for call, answer in tool_results(attempt.trajectory.messages) if answer is not None]
    recorded = [recorded_call(attempt.key.sample_id, call, answer) for call, answer in results]
    calls = [call for call in recorded if call is not None]
    recordings = Recordings(calls, "the original conversation")
    names = {call.name for call in calls} & by_name(toolbox.definitions).keys()
    answering = copy(toolbox)
    answering.handlers = {**dict.fromkeys(names, recordings), **toolbox.handlers}
    target.tools = answering
