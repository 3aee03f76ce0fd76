"""`viva_assert`: a conversation, a test or a run passes, or it is said where and why it does not."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from vivavoce.errors import (
    Fault,
    GraderFault,
    ModelFault,
    SuiteFault,
    TargetFault,
    TestingFault,
    UsageError,
    VivavoceError,
)
from vivavoce.grading.call_mistakes import check_call_options
from vivavoce.grading.expect import ExpectMetric, asked_by
from vivavoce.grading.grader import Grader
from vivavoce.grading.metrics import FunctionGrading, deciding_grader
from vivavoce.messages import ConversationHistory, Message
from vivavoce.metrics.evaluation import Named, OneOrMore, as_several, choose
from vivavoce.metrics.panel import asking, with_judges
from vivavoce.models.custom import ModelLike, as_model
from vivavoce.models.model import Model
from vivavoce.pacing.loops import wait_for
from vivavoce.penelope.result import TestResult, dump_test
from vivavoce.records.run import AttemptKey, Outcome
from vivavoce.records.score import Failure, Score
from vivavoce.records.trajectory import TestStatus, Trajectory
from vivavoce.report.graded_run import show_command
from vivavoce.report.verdict import explain_verdict
from vivavoce.run.attempt import RECORDED, Grades, Task, hold
from vivavoce.run.summary import RunResult
from vivavoce.samples.conversations import GivenRow, given_sample
from vivavoce.samples.evaluation import MultiTurnSample, SingleTurnSample
from vivavoce.samples.row import read_sample
from vivavoce.samples.sample import Sample
from vivavoce.settings import settings
from vivavoce.store.database.address import Place, is_postgresql, path_of
from vivavoce.suites.expectations import Assertions
from vivavoce.suites.grading_spec import JudgeSpec
from vivavoce.testing.failure_text import (
    all_scores,
    broken_text,
    decides,
    error_scores,
    missed_scores,
    missed_text,
    name_of,
)
from vivavoce.testing.running import RunningTest, running_test
from vivavoce.testing.session import SharedSession

Asserted = Sequence[Mapping[str, Any] | Message] | GivenRow | TestResult | RunResult
"""Messages, a conversation, a row with `messages` and what is known, the result of a test of a tester, or of a run."""

_NEEDS_JUDGE = "needs a judge: give model=…, set viva_judge in [tool.pytest.ini_options], or set VIVAVOCE_JUDGE"
MAX_CONVERSATIONS = 3
"""Conversations of a run that are shown."""
_FAULTS: Mapping[str, type[Fault]] = {
    "target": TargetFault,
    "judge": ModelFault,
    "tester": TestingFault,
    "grader": GraderFault,
    "suite": SuiteFault,
}


def viva_assert(
    conversation: Asserted, metrics: OneOrMore[Named] = (), *, model: ModelLike | None = None, **known: Any
) -> Mapping[str, Score]:
    """Assert that a conversation passes every metric; it is stored, and its scores are returned by name.

    A result of a tester passes without metrics where its target passed. A result of a run passes where its gate does,
    or without a gate, where every score does.

    Args:
        conversation: messages, a `ConversationHistory`, a sample, a dict with `messages`; or a result.
        metrics: one metric or several: metrics, names of them, or names with options such as `{"metric": "fuzzy_ratio",
            "threshold": 0.9}`.
        model: the judge of the metrics without one; by default the one of the configuration.
        known: what metrics need to know, as in a row of a dataset: `goal`, `ground_truth`, `expect`, `policy`, …

    Raises:
        AssertionError: something did not pass; it names the turn, what was said, why, and the command that shows it.
        Fault: something could not be judged, which is an error, not a failure; or nothing applies.
        UsageError: a metric is unknown, has no judge, or the input is not a conversation.
    """
    __tracebackhide__ = True
    test = running_test()
    if isinstance(conversation, RunResult):
        if metrics or known or model is not None:
            raise UsageError("a run already has its scores: leave the metrics out, or assert each of its conversations")
        if test is not None:
            _note_run(test, conversation)
        return _assert_run(conversation)
    session = SharedSession() if test is None else test.session()
    try:
        outcome = wait_for(_measure(session, conversation, as_several(metrics), model, known))
        if test is not None:
            test.note("viva_run", session.assertions.run_id)
            which = name_of(outcome).removeprefix(test.name)
            for name, score in all_scores(outcome).items():
                test.note(f"viva_score_{name}{which}", score.state if score.value is None else score.value)
        else:
            session.assertions.finish()
    except VivavoceError as error:
        cause = error.__cause__ if isinstance(error, Fault) else None
        raise error.with_traceback(None) from cause  # the test is in the traceback, and not our own frames
    finally:
        if test is None:
            session.close()
    _check(outcome, session)
    return outcome.scores


def _check(outcome: Outcome, session: SharedSession) -> None:
    """Raise what an outcome amounts to; a failure is certain whatever an error hides, so it comes first."""
    __tracebackhide__ = True
    run_id, options = session.assertions.run_id, session.options
    if missed_scores(outcome):
        raise AssertionError(missed_text(outcome, run_id, options))
    if error_scores(outcome):
        raise _fault(outcome, broken_text(outcome, run_id, options))
    skipped = [f"{name}: {score.reason}" for name, score in outcome.scores.items() if score.state == "skipped"]
    if len(skipped) == len(outcome.scores):
        raise SuiteFault(f"nothing was asserted, because nothing applies: {'; '.join(skipped)}", kind="inapplicable")
    if skipped:
        warnings.warn(f"viva_assert: does not apply: {'; '.join(skipped)}", stacklevel=3)


def _fault(outcome: Outcome, text: str) -> Fault:
    """Return the failure of a target, a judge or a grader as the exception that it was."""
    failures = [score.failure for score in error_scores(outcome).values()]
    failure = outcome.attempt.failure or next((failure for failure in failures if failure is not None), None)
    if failure is None:
        return GraderFault(text)
    return _FAULTS.get(failure.blame, Fault)(text, kind=failure.kind, evidence=failure.evidence)


async def _measure(
    session: SharedSession,
    conversation: Asserted,
    metrics: Sequence[Named],
    model: ModelLike | None,
    known: Mapping[str, Any],
) -> Outcome:
    """Measure a conversation and store it with its scores."""
    test = running_test()
    test_name, trial = ("conversation", 0) if test is None else (test.name, test.trial)
    subject = _subject(conversation, known, session.assertions.name_for(test_name, trial))
    judges = _Judges(session, model)
    judged_metrics = [with_judges(metric, judges.choose) for metric in choose(metrics)]
    for metric in judged_metrics:
        if any(part.model is None for part in asking(metric)):
            raise UsageError(f"the metric '{metric.name}' {_NEEDS_JUDGE}")
    measured = [deciding_grader(metric.name, metric) for metric in judged_metrics]
    check_call_options(measured, lambda: [subject.sample])
    graders = (*measured, *_own_graders(subject, judges, bool(measured)))
    if not graders:
        raise UsageError("nothing is asserted: give metrics, such as metrics=['refusal'], or expect=[…]")
    key, sample = AttemptKey(subject.sample.id, RECORDED, trial), subject.sample
    attempt = await hold(Task(key, sample, position=session.assertions.next_position), _ignore)
    if subject.trajectory is not None:
        attempt = attempt.model_copy(update={"trajectory": subject.trajectory})
    grades = Grades(graders)
    try:
        outcome = grades.ungraded(attempt) if attempt.failure is not None else await grades.grade(attempt, sample)
    finally:
        for metric in judged_metrics:
            await metric.close()
    await session.assertions.add(outcome)
    return outcome


async def _ignore(turn: object) -> None:
    """Take no note of a turn."""


@dataclass(frozen=True, slots=True)
class _Judges:
    """The judges of one assertion: the one that is given with it, a metric's own, or that of the session."""

    session: SharedSession
    model: ModelLike | None

    def choose(self, own: Model | None) -> Model | None:
        """Return the judge of a metric."""
        if own is not None:
            return self._open(own)
        return self.session.judge if self.model is None else self._open(self.model)

    def _open(self, judge: ModelLike) -> Model:
        judges = self.session.judges
        return judges.open(judge if isinstance(judge, str) else as_model(judge), JudgeSpec())


@dataclass(frozen=True, slots=True)
class _Subject:
    """What is measured; `trajectory` is that of a test that a tester led."""

    sample: Sample
    trajectory: Trajectory | None = None


def _own_graders(subject: _Subject, judges: _Judges, measured: bool) -> Iterator[Grader]:
    """Yield the graders of what the conversation itself says of how it should be.

    Raises:
        UsageError: an assertion needs a judge, and there is none.
    """
    if subject.sample.expect is not None:
        Assertions().check(subject.sample)
        metric_assertions = asked_by(subject.sample)
        judge = judges.choose(None) if any(assertion.asks for assertion in metric_assertions.values()) else None
        if judge is None and any(assertion.asks for assertion in metric_assertions.values()):
            raise UsageError(f"an assertion of expect {_NEEDS_JUDGE}")
        yield ExpectMetric(judge).asking(metric_assertions)
    if subject.trajectory is not None and not measured:
        yield FunctionGrading(function="target_passed").grader("target_passed", Path())


def _subject(conversation: Asserted, known: Mapping[str, Any], name: str) -> _Subject:
    """Return what is measured, under the name of the test.

    Raises:
        UsageError: it is not a conversation.
    """
    if isinstance(conversation, TestResult):
        fields = {"goal": conversation.context.goal or None, "policy": conversation.context.policy, **known}
        row = {key: value for key, value in fields.items() if value is not None}
        sample = read_sample({"input": name, **row, "id": name}, line=0, position=0, base=Path())
        trajectory = _tester_trajectory(conversation)
        return _Subject(sample.with_messages(trajectory.messages), trajectory)
    return _Subject(_sample(conversation, known, name))


def _sample(conversation: Any, known: Mapping[str, Any], name: str) -> Sample:
    row: Any = conversation
    if isinstance(conversation, Mapping):
        row = {**cast("Mapping[str, Any]", conversation), **known}
    elif isinstance(conversation, ConversationHistory):
        row = {"messages": conversation.messages, **known}
    elif isinstance(conversation, list | tuple):
        row = {"messages": list(cast("Sequence[Any]", conversation)), **known}
    elif known and isinstance(row, Sample | SingleTurnSample | MultiTurnSample):
        raise UsageError(f"a {type(row).__name__} has its own fields: put {', '.join(known)} there")
    try:
        sample = given_sample(row)
    except UsageError as error:
        raise UsageError(*(problem.message.removeprefix("row 0: ") for problem in error.problems)) from error
    return sample.model_copy(update={"id": name})


def _tester_trajectory(result: TestResult) -> Trajectory:
    """Return the conversation of a test with what the tester left; one that could not be held is a failure."""
    failure = None
    if result.status is TestStatus.ERROR and not result.target_passed:
        reason = result.stop_reason or "the test ended with an error"
        failure = result.failure or Failure(blame=result.blame or "environment", kind="test", message=reason)
    return Trajectory.model_construct(
        opening=result.opening,
        turns=[turn.exchange for turn in result.history],
        session_id=None,
        state=None,
        test=dump_test(result),
        failure=failure,
        seconds=result.duration_seconds,
    )


def _note_run(test: RunningTest, result: RunResult) -> None:
    """Let the reports of this call of pytest have a run, also one of another store."""
    test.note("viva_run", result.run.id)
    place, own = _whole(result.place), _whole(test.session().place)
    if place != own:
        test.note(f"viva_store_{result.run.id}", place)


def _whole(address: str) -> str:
    """Return how a store is called, whatever the working directory becomes; without a password."""
    place = Place(address)
    return str(place) if is_postgresql(place) else str(path_of(place).absolute())


def _assert_run(result: RunResult) -> Mapping[str, Score]:
    """Raise what a run amounts to; return the scores of its only conversation, or nothing where it has several."""
    __tracebackhide__ = True
    summary, run_id = result.summary, result.run.id
    options = [] if result.place == settings().store else ["--store", result.place]
    outcomes = list(result.outcomes())
    only_warn = {grader.name for grader in summary.graders if grader.severity == "warn"}
    wrong = [outcome for outcome in outcomes if missed_scores(outcome, only_warn)]
    misses = [
        f"{name_of(outcome)}: {missed_text(outcome, run_id, options, only_warn)}"
        for outcome in wrong[:MAX_CONVERSATIONS]
    ]
    more = [f"and {len(wrong) - MAX_CONVERSATIONS} more"] if len(wrong) > MAX_CONVERSATIONS else []
    reasons = [f"  {line}" for line in explain_verdict(summary)]
    if summary.verdict == "fail" or (summary.verdict is None and wrong):
        head = f"run {run_id}: {len(wrong)} of {len(outcomes)} conversations did not pass"
        raise AssertionError("\n".join([head, *reasons, "", *misses, *more]))
    if result.stopped_by is not None or summary.verdict == "inconclusive":
        texts = [
            f"{name_of(outcome)}: {broken_text(outcome, run_id, options)}"
            for outcome in outcomes
            if error_scores(outcome)
        ]
        see = show_command(run_id, "SAMPLE", options)
        head = f"run {run_id} is inconclusive: {result.stopped_by or 'something could not be judged'}; {see}"
        raise SuiteFault("\n".join([head, *reasons, *texts[:MAX_CONVERSATIONS], *misses]), kind="inconclusive")
    if summary.verdict is None and not any(decides(outcome) for outcome in outcomes):
        raise SuiteFault("nothing was asserted: no grader decides what passes", kind="inapplicable")
    return outcomes[0].scores if len(outcomes) == 1 else {}
