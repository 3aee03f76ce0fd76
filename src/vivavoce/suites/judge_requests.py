"""What a judge was asked for a stored score, and what it replied."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from vivavoce.errors import NotFound, StoreError, UsageError
from vivavoce.grading.grader import Grader, ScoreCase
from vivavoce.grading.graders import Case
from vivavoce.metrics.factory import reaches_out
from vivavoce.models.cache import CachedModel, OfflineModel, decode_repair, decode_reply, reply_key
from vivavoce.models.model import Model, ModelReply, Request, identity_of
from vivavoce.models.names import model_identity, model_name
from vivavoce.models.structured import wire_schema
from vivavoce.pacing.loops import wait_for
from vivavoce.plugins import is_file_reference
from vivavoce.records.replies import JudgeCall, JudgeExchange, StoredReply
from vivavoce.records.run import Grading, Outcome, Run
from vivavoce.records.score import Score, Usage
from vivavoce.records.trajectory import Trajectory
from vivavoce.run.kept_tests import is_measured
from vivavoce.run.regrading import sample_of
from vivavoce.samples.rows import SampleCount
from vivavoce.samples.sample import Sample
from vivavoce.store.store import Store
from vivavoce.suites.build import Builder
from vivavoce.suites.document import SuiteRecord, fill_variables
from vivavoce.suites.expectations import EXPECT, Assertions
from vivavoce.suites.grading_spec import (
    AnyGraderSpec,
    FunctionGraderSpec,
    JudgeSpec,
    MetricGraderSpec,
    RecordingGraderSpec,
    RuleGraderSpec,
)
from vivavoce.suites.load import Suite, suite_record
from vivavoce.suites.spec import SuiteSpec
from vivavoce.work_time import conversation_work

NO_JUDGE = "no judge was asked: this score was computed"
"""Why there is nothing to show of a grader that asks nobody."""


class _Unproven(Exception):
    """The exchange cannot be shown; the text says why."""


def judge_exchange(store: Store, run: Run, grading: Grading, outcome: Outcome, grader: str) -> JudgeExchange:
    """Return what `prove_judge_exchange` returns, from code that is not asynchronous.

    Raises:
        NotFound: the conversation has no score of this name.
        StoreError: the store cannot be read.
    """
    return wait_for(prove_judge_exchange(store, run, grading, outcome, grader))


async def prove_judge_exchange(
    store: Store, run: Run, grading: Grading, outcome: Outcome, grader: str
) -> JudgeExchange:
    """Return what a judge was asked for the score of a grader, if that can be proven; no model is called.

    Code of users is never run for it. The score is made again, which may take as long as it did. In a process that
    interrupts work, it is limited like the grading of a conversation.

    Raises:
        NotFound: the conversation has no score of this name.
        StoreError: the store cannot be read.
    """
    score = outcome.scores.get(grader)
    if score is None:
        raise NotFound("grader", grader, within="this conversation", known=outcome.scores)
    try:
        calls = await _proven(store, run, grading, outcome, score)
    except _Unproven as reason:
        return JudgeExchange(grader=grader, missing=str(reason))
    return JudgeExchange(grader=grader, calls=calls)


async def _proven(store: Store, run: Run, grading: Grading, outcome: Outcome, score: Score) -> list[JudgeCall]:
    if score.state == "error":
        raise _Unproven("this score is an error, and only usable answers are stored")
    suite, name = _suite(run, grading), score.name
    grader_spec = suite.spec.graders.get(name)
    if grader_spec is None:
        raise _Unproven("the record of this run does not say how this grader was configured")
    _check_no_code(grader_spec)
    sample = _sample(outcome)
    problem = ""
    for spec in _with_judges(grader_spec, score):
        replies = _StoredReplies(store, grading.created_at, score.usage)
        graders = {**suite.spec.graders, name: spec}
        changed_suite = replace(suite, spec=suite.spec.model_copy(update={"graders": graders}))
        problem = await _problem(replies, changed_suite, outcome, sample, score, grading.fingerprints.get(name))
        if not problem:
            return replies.calls
    if run.options.get("cache") is False:
        problem = f"the replies of judges were not kept: the run was started with --no-cache ({problem})"
    raise _Unproven(problem)


async def _problem(
    replies: _StoredReplies, suite: Suite, outcome: Outcome, sample: Sample, score: Score, known_as: str | None
) -> str:
    """Make a score again and return why what was asked is not proven, empty where it is."""
    try:
        grader = _grader(suite, score.name, sample, replies)
    except UsageError as error:
        return f"the grader cannot be recreated: {error}"
    if not (grader.judged or grader.verdicts_on):
        return NO_JUDGE
    talk, trial = outcome.attempt.trajectory, outcome.attempt.key.trial
    with conversation_work():
        again = await replace(grader, score=replies.following(grader.score, talk)).grade(sample, talk, trial)
    if not replies.calls:
        return NO_JUDGE
    if _decision(again) == _decision(score):
        return ""
    if all(call.text is not None for call in replies.calls):
        return "the cached reply gives a different score, so this score came from another reply"
    if known_as not in (None, grader.fingerprint):
        return "the grader has changed: its prompt, its options, its judge or vivavoce"
    return "the reply is not cached: runs with --no-cache do not cache replies, and others may have been deleted"


def _decision(score: Score) -> object:
    """Return what a score says, in the whole and of each turn."""
    turns = [(turn.turn, turn.state, turn.value, turn.raw, turn.reason) for turn in score.turns or ()]
    return score.state, score.value, score.raw, score.reason, turns


def _suite(run: Run, grading: Grading) -> Suite:
    """Return the suite of a set of scores, from its own record; graders that a request brought have no variables."""
    document = suite_record(grading.spec, run)
    parts: list[SuiteRecord] = [document]
    if is_measured(grading):
        graders = {"graders": grading.spec["graders"]}
        parts = [replace(document, data={**grading.spec, "graders": {}}), SuiteRecord(graders, is_from_file=False)]
    try:
        spec = SuiteSpec.model_validate({key: value for part in parts for key, value in fill_variables(part).items()})
    except (ValidationError, UsageError) as error:
        raise _Unproven("the record of this run has no readable suite") from error
    return Suite(spec, document, Path(run.base), str(run.options.get("suite", "")))


def _check_no_code(spec: AnyGraderSpec) -> None:
    """Check that building a grader runs no code of a user and opens no connection."""
    if isinstance(spec, RuleGraderSpec | RecordingGraderSpec):
        raise _Unproven(NO_JUDGE)
    names = [spec.extractor]
    if isinstance(spec, FunctionGraderSpec):
        names.append(spec.function)
    else:
        names += [spec.model, spec.confirm and spec.confirm.model]
        names += [spec.cascade.model, spec.cascade.metric] if spec.cascade else []
    if isinstance(spec, MetricGraderSpec):
        names.append(spec.metric)
        if reaches_out(spec.config) == "embedder":
            raise _Unproven("this grader also uses an embedding model, whose answers are not stored")
    code = next((name for name in names if name is not None and is_file_reference(name)), None)
    if code is not None:
        raise _Unproven(f"{code} decides it, and pages never run code")


def _with_judges(spec: AnyGraderSpec, score: Score) -> Iterator[AnyGraderSpec]:
    """Yield a grader as it may have been made: where it names no judge, first with the one that the score names."""
    judge = score.settings.get("model")
    if isinstance(spec, FunctionGraderSpec) and spec.function == EXPECT:
        spec = MetricGraderSpec(kind="metric", metric=EXPECT)
    if isinstance(spec, MetricGraderSpec) and spec.model is None and isinstance(judge, str):
        yield spec.model_copy(update={"model": judge})
    yield spec


def _sample(outcome: Outcome) -> Sample:
    try:
        return sample_of(outcome.attempt, {})
    except UsageError as error:
        raise _Unproven("the row of this conversation can no longer be read") from error


def _grader(suite: Suite, name: str, sample: Sample, replies: _StoredReplies) -> Grader:
    """Return a grader whose judges give the replies that are kept.

    Raises:
        UsageError: it cannot be made from what is stored and from the files that it names.
    """
    assertions = Assertions()
    assertions.check(sample)
    variables = frozenset(sample.rubric_vars)
    rows = SampleCount(1, sample.turn_count, int(sample.per_turn), 0, rubric_vars=variables)
    return Builder(suite, replies.model, rows, metric_assertions=assertions.metric_assertions).grader(name)


class _StoredReplies:
    """The replies that a store has kept; `calls` are the questions that were asked of them."""

    next_step = ""
    of_any_model = False

    def __init__(self, store: Store, made_at: float, used: Usage | None) -> None:
        self.calls: list[JudgeCall] = []
        self._store = store
        self._made_at = made_at
        self._all_cached = used is not None and not used.calls and used.cached_calls > 0
        self._turn: int | None = None

    def model(self, judge: str | Model, spec: JudgeSpec) -> Model:
        """Return a judge that has only what is kept of it."""
        del spec
        if isinstance(judge, str):
            return _Witness(OfflineModel(model_name(judge), identity=model_identity(judge)), self)
        return _Witness(OfflineModel(judge.name, getattr(judge, "settings", None), identity_of(judge)), self)

    def following(self, score: ScoreCase, talk: Trajectory) -> ScoreCase:
        """Return a scoring function that notes which turn it is given, where it is given one by one."""
        of_turns = {id(turn.messages): turn.index for turn in talk.turns}

        def score_case(case: Case) -> Awaitable[Score] | Score:
            self._turn = of_turns.get(id(case.view.turns[0])) if len(case.view.turns) == 1 else None
            return score(case)

        return score_case

    def note(self, model: OfflineModel, request: Request) -> None:
        """Note a question, with its reply if there is one."""
        stored = self._store.reply(reply_key(model.identity, model.settings, request))
        subject, turn = request.subject, self._turn
        call = JudgeCall(
            model=model.name,
            first_turn=subject.first_turn if subject and turn is None else turn,
            last_turn=subject.last_turn if subject and turn is None else turn,
            trial=request.trial,
            messages=list(request.messages),
            answer_schema=None if request.schema is None else dict(wire_schema(request.schema)),
            settings={**model.settings, **request.settings},
        )
        self.calls.append(call)
        if stored is not None:
            self.calls[-1] = self._add_reply(call, stored)

    def _add_reply(self, call: JudgeCall, stored: StoredReply) -> JudgeCall:
        try:
            reply, repair = decode_reply(stored.reply), decode_repair(stored.reply)
        except ValueError as error:
            raise StoreError(f"a cached reply of {call.model} is damaged: {error}") from error
        fields = {
            "text": reply.text,
            "parsed": reply.parsed,
            "tool_calls": list(reply.tool_calls),
            "usage": reply.usage,
            "applied": dict(reply.applied),
            "repair": repair,
            "asked_at": stored.created_at,
            "cached": self._all_cached or stored.created_at < self._made_at,
        }
        return call.model_copy(update=fields)

    def get(self, key: str) -> str | None:
        """Return the reply of a key, None where there is none."""
        stored = self._store.reply(key)
        return None if stored is None else stored.reply

    async def put(self, reply: StoredReply) -> None:
        """Do nothing: a model that is never asked has no new replies."""

    def reject(self, key: str) -> None:
        """Do nothing: what is kept stays as it is."""


class _Witness:
    """A judge that answers from what is kept, and has each question noted."""

    def __init__(self, model: OfflineModel, replies: _StoredReplies) -> None:
        self.name, self.identity, self.settings = model.name, model.identity, model.settings
        self._model, self._replies = model, replies
        self._answers = CachedModel(model, replies, offline=True)

    async def complete(self, request: Request) -> ModelReply:
        """Answer as it did.

        Raises:
            ModelFault: no reply is kept.
            StoreError: the store cannot be read.
        """
        self._replies.note(self._model, request)
        return await self._answers.complete(request)

    async def close(self) -> None:
        """Do nothing."""
