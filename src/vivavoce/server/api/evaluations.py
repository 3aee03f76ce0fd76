"""Evaluating a conversation now: one in the request, or one in the store. Each request has a process of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from vivavoce.errors import NotFound, UsageError
from vivavoce.messages import ExpectedCall, Messages, describe
from vivavoce.metrics.evaluation import EvaluationReport, choose, evaluate_input
from vivavoce.metrics.factory import Choice
from vivavoce.metrics.stored_conversation import input_of, stored_attempt
from vivavoce.metrics.types import metric_input
from vivavoce.plugins import without_files
from vivavoce.records.score import conversation_name
from vivavoce.run.kept_tests import can_be_kept, keep_scores
from vivavoce.samples.sample import JsonScalar, Sample
from vivavoce.server.api.answers import ERRORS, answer
from vivavoce.server.process_route import ProcessRoute
from vivavoce.server.replies import Evaluated, StoredEvaluation
from vivavoce.server.requested_metrics import Metrics, as_named, check_metrics
from vivavoce.server.state import policy_of, store_of
from vivavoce.store.runs.claim import Claimed
from vivavoce.store.store import Store
from vivavoce.suites.document import literals
from vivavoce.work_time import unlimited_work

router = APIRouter(prefix="/api/v1", tags=["evaluations"], route_class=ProcessRoute, responses=ERRORS)


MAX_ANSWER_BYTES = 32_000_000
"""Length of an answer, which the server holds until it is read. Each result repeats the text that it measures."""


class Judged(BaseModel):
    """The metrics, and the judge for judged metrics; by default VIVAVOCE_JUDGE."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    metrics: Metrics
    judge: str | None = None


class ConversationToJudge(Judged):
    """A conversation, and what is known about it, as in the rows of `evaluate`; `reference` is a truth that is text."""

    messages: Messages = Field(min_length=1)
    goal: str | None = None
    instructions: str | None = None
    context: dict[str, Any] | None = None
    policy: str | None = None
    ground_truth: JsonScalar | dict[str, Any] | list[Any] = None
    reference: str | None = None
    reference_tool_calls: list[ExpectedCall] | list[list[ExpectedCall] | None] | None = None
    outcomes: list[str] = Field(default_factory=list)
    expect: list[Any] | dict[str, Any] | None = None
    must: list[str] = Field(default_factory=list)
    must_not: list[str] = Field(default_factory=list)
    rubric: str | None = None
    rubric_vars: dict[str, Any] = Field(default_factory=dict)
    labels: dict[str, Any] = Field(default_factory=dict)
    metadata: dict[str, Any] = Field(default_factory=dict)
    turn_seconds: list[float | None] = Field(default_factory=lambda: list[float | None]())

    def sample(self) -> Sample:
        """Return the sample of which this is the recorded conversation.

        Raises:
            UsageError: what is known does not fit the conversation, such as a truth for each of other turns.
        """
        known = {name: getattr(self, name) for name in self.model_fields_set & Sample.model_fields.keys()}
        if self.reference is not None:
            if self.ground_truth is not None:
                raise UsageError("'reference' and 'ground_truth' are two names of the same field; give one of them")
            known["ground_truth"] = self.reference
        try:
            return Sample(id="", **known)
        except ValidationError as error:
            raise UsageError(describe(error)) from error


class StoredToJudge(Judged):
    """A stored conversation; `trial`, from 0, is needed where there are several. With `store`, the scores are kept."""

    trial: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    store: bool = True


class Stored(NamedTuple):
    """What a stored conversation was measured at, the set of scores that has it, and the metrics that are not in it."""

    report: EvaluationReport
    grading: str | None = None
    left_out: Sequence[str] = ()


@router.post("/evaluations", response_model=Evaluated)
async def evaluate(request: Request, body: ConversationToJudge) -> Response:
    """Measure a conversation with several metrics; a metric that breaks is an error, and the others go on."""
    check_metrics(body.metrics)
    judge = policy_of(request).judge(body.judge)
    with without_files():
        known = metric_input(body.sample(), body.messages, body.turn_seconds, outcomes=tuple(body.outcomes))
        report = await evaluate_input(known, as_named(body.metrics), judge, close=True)
    return _answer(report)


@router.post("/test-results/{run}/{sample:path}/evaluations", response_model=StoredEvaluation)
async def evaluate_test_result(request: Request, run: str, sample: str, body: StoredToJudge) -> Response:
    """Measure a stored conversation with several metrics, and keep the scores in a set of their own.

    The run keeps its verdict and its scores.
    """
    if "/" in run or not sample:
        raise NotFound("run", run)
    name = f"{run}/{sample if body.trial is None else conversation_name(sample, body.trial)}"
    check_metrics(body.metrics)
    judge = policy_of(request).judge(body.judge)
    stored = await _measure(store_of(request), name, body, judge)
    return _answer(stored.report, grading=stored.grading, left_out=stored.left_out)


def is_sent(path: str) -> bool:
    """Return whether a request, by its path, sends the conversation itself, so that it needs no store."""
    return path == f"{router.prefix}/evaluations"


async def _measure(store: Store, name: str, body: StoredToJudge, judge: str | None) -> Stored:
    run, attempt = stored_attempt(store, name)
    if body.store and run.status == "running":
        raise Claimed(f'run {run.id} is not finished, so nothing can be stored with it; send "store": false')
    named = as_named(body.metrics)
    with without_files():
        metrics = choose(named, judge)
        report = await evaluate_input(input_of(attempt), metrics, close=True)
    if not body.store:
        return Stored(report)
    _answer(report)  # what is too long to be answered is not stored either
    graders = {metric.name: _as_grader(one, judge) for metric, one in zip(metrics, named, strict=True)}
    with unlimited_work():
        grading = await keep_scores(store, run, attempt.key, report, metrics, literals({"graders": graders})["graders"])
    return Stored(report, grading, [metric.name for metric in metrics if not can_be_kept(report[metric.name])])


def _as_grader(metric: str | Choice, judge: str | None) -> dict[str, Any]:
    """Return a metric as a grader of a suite."""
    how = {"metric": metric} if isinstance(metric, str) else {key: one for key, one in metric.items() if key != "name"}
    return {"kind": "metric", **({"model": judge} if judge else {}), **how}


def _answer(report: EvaluationReport, **more: Any) -> Response:
    """Return the answer with a report.

    Raises:
        UsageError: it would be too long.
    """
    fields = {"results": dict(report), "all_passed": report.all_passed, "usage": report.usage, **more}
    with unlimited_work():
        response = answer(fields)
    if len(response.body) > MAX_ANSWER_BYTES:
        raise UsageError(
            f"the answer has {len(response.body):,} bytes, at most {MAX_ANSWER_BYTES:,} are allowed: each of the "
            f"{len(report)} results repeats the text that it measures; ask for fewer metrics at a time"
        )
    return response
