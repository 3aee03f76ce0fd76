"""Evaluating a conversation now: one in the request, or one in the store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from vivavoce.errors import NotFound, UsageError
from vivavoce.messages import Messages, ToolCall, describe
from vivavoce.metrics.evaluation import EvaluationReport, evaluate_input
from vivavoce.metrics.metric_input import metric_input
from vivavoce.metrics.stored import stored_input
from vivavoce.pacing.waiting import wait_for
from vivavoce.records.counting import conversation_name
from vivavoce.samples.sample import JsonScalar, Sample
from vivavoce.server.api.answers import ERRORS, answer
from vivavoce.server.api.strict import StrictRoute
from vivavoce.server.replies import Evaluated
from vivavoce.server.requested_metrics import Metrics, as_named, check_metrics

router = APIRouter(prefix="/api/v1", tags=["evaluations"], route_class=StrictRoute, responses=ERRORS)


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
    reference_tool_calls: list[ToolCall] | list[list[ToolCall] | None] | None = None
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
                raise UsageError("'reference' and 'ground_truth' are two names of one thing; give one of them")
            known["ground_truth"] = self.reference
        try:
            return Sample(id="", **known)
        except ValidationError as error:
            raise UsageError(describe(error)) from error


class StoredToJudge(Judged):
    """A stored conversation; `trial`, from 0, is needed where there are several."""

    trial: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None


@router.post("/evaluations", response_model=Evaluated)
async def evaluate(request: Request, body: ConversationToJudge) -> Response:
    """Measure a conversation with several metrics; a metric that breaks is an error, and the others go on."""
    check_metrics(body.metrics)
    judge = request.app.state.policy.judge(body.judge)
    known = metric_input(body.sample(), body.messages, body.turn_seconds, outcomes=tuple(body.outcomes))
    return await _report(request, lambda: wait_for(evaluate_input(known, as_named(body.metrics), judge, close=True)))


@router.post("/test-results/{run}/{sample:path}/evaluations", response_model=Evaluated)
async def evaluate_test_result(request: Request, run: str, sample: str, body: StoredToJudge) -> Response:
    """Measure a stored conversation with several metrics; nothing in the store changes."""
    check_metrics(body.metrics)
    judge = request.app.state.policy.judge(body.judge)
    if "/" in run or not sample:
        raise NotFound("run", run)
    name = f"{run}/{sample if body.trial is None else conversation_name(sample, body.trial)}"

    def measure() -> EvaluationReport:
        stored = stored_input(request.app.state.store, name)
        return wait_for(evaluate_input(stored, as_named(body.metrics), judge, close=True))

    return await _report(request, measure)


async def _report(request: Request, measure: Callable[[], EvaluationReport]) -> Response:
    """Measure in a thread; their number is limited, so that pages are still answered while judges are slow."""
    report = await to_thread.run_sync(measure, limiter=request.app.state.evaluations)
    return answer({"results": dict(report), "all_passed": report.all_passed, "usage": report.usage})
