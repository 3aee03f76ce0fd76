"""Runs, their gradings and their samples, a page at a time."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict

from vivavoce.errors import UsageError
from vivavoce.records.run import AttemptKey, Grading, Outcome, Run, Status
from vivavoce.records.score import State
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.verdict import finding
from vivavoce.server.api.answers import ERRORS, answer
from vivavoce.server.api.strict import StrictRoute
from vivavoce.server.replies import CountedSamples, RunReport
from vivavoce.server.requested_metrics import check_grader, check_graders
from vivavoce.server.state import store_of
from vivavoce.server.users import user_of
from vivavoce.store.browse.filter import ListedVerdict, RunFilter, parse_filter
from vivavoce.store.browse.listing import RunPage, ScorePage, TurnPage
from vivavoce.store.labels import LabelPlace
from vivavoce.store.runs.naming import no_conversation

router = APIRouter(prefix="/api/v1", tags=["runs"], route_class=StrictRoute, responses=ERRORS)

Limit = Annotated[int, Query(ge=1, le=500, description="How many, at most.")]
After = Annotated[str | None, Query(description="The cursor: `next` of the previous page.")]
Before = Annotated[str | None, Query(description="The cursor of the page before: `previous` of a page.")]
GradingName = Annotated[str | None, Query(description="A set of scores; default: the newest complete one.")]
Filter = Annotated[str, Query(description='Such as `state:error goal<0.5 text:"refund" target:bot -tag:slow`.')]
RunName = Annotated[str, Path(description="A run: its id, the beginning or end of its id, or `latest`.")]
Trial = Annotated[int, Path(ge=0, le=2**31 - 1)]
Target = Annotated[str | None, Query(description="Required if the run has several targets.")]
Turn = Annotated[int | None, Query(ge=0, le=2**31 - 1, description="A turn, from 0; default: the whole conversation.")]


class WantedRuns(BaseModel):
    """Which runs a list has; times are seconds since the epoch."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    after: After = None
    before: Before = None
    limit: Limit = 50
    suite: str | None = None
    status: Status | None = None
    verdict: Annotated[ListedVerdict | None, Query(description="`none`: without a gate, or not summed up yet.")] = None
    target: Annotated[str | None, Query(description="Runs with scores of this target.")] = None
    tag: Annotated[str | None, Query(description="Runs that somebody gave this tag.")] = None
    since: Annotated[float | None, Query(description="Started at this time or later.")] = None
    until: Annotated[float | None, Query(description="Started before this time.")] = None
    text: Annotated[str | None, Query(description="Part of the id, of the title or of the name of the suite.")] = None


@router.get("/runs", response_model=RunPage)
def runs(request: Request, wanted: Annotated[WantedRuns, Query()]) -> Response:
    """List runs, newest first."""
    which: RunFilter = {
        "suite": wanted.suite,
        "status": wanted.status,
        "verdict": wanted.verdict,
        "target": wanted.target,
        "tag": wanted.tag,
        "since": wanted.since,
        "until": wanted.until,
        "text": wanted.text,
    }
    return answer(store_of(request).browse.runs(wanted.after, wanted.limit, before=wanted.before, **which))


@router.get("/runs/{run}", response_model=RunReport)
def run(request: Request, run: RunName, grading: GradingName = None) -> Response:
    """Return a run with its summary."""
    record, scores = graded_run(request, run, grading)
    summary = GradedRun(store_of(request), record, scores).summary()
    short = scores.model_copy(update={"summary": None})
    errors = store_of(request).browse.errors_alike(scores.id).groups
    said = finding(summary, scores)
    return answer({"run": record, "grading": short, "summary": summary, "finding": said, "errors": errors})


@router.get("/runs/{run}/gradings", response_model=list[Grading])
def gradings(request: Request, run: RunName) -> Response:
    """Return the gradings of a run, oldest first."""
    store = store_of(request)
    return answer(store.gradings(store.run(run).id))


@router.get("/runs/{run}/samples", response_model=CountedSamples)
def samples(
    request: Request,
    run: RunName,
    filter: Filter = "",  # noqa: A002 - it is called so in the address
    sort: Annotated[
        str,
        Query(
            description="`position`, `worst`, `turns`, `seconds`, `tokens`, `cost`, `trial` or a grader; a leading `-` "
            "sorts in descending order."
        ),
    ] = ("position"),
    after: After = None,
    before: Before = None,
    limit: Limit = 50,
    grading: GradingName = None,
) -> Response:
    """List the samples of a run with their scores, without messages."""
    scores = graded_run(request, run, grading)[1]
    store, terms = store_of(request), parse_filter(filter)
    check_graders(scores, terms, sort)
    page = store.browse.samples(scores.id, terms, sort=sort, after=after, before=before, limit=limit)
    matches = store.browse.count_samples(scores.id, terms) if after is None and before is None else None
    return answer(CountedSamples(**dict(page), matches=matches))


@router.get("/runs/{run}/errors", response_model=CountedSamples)
def errors(
    request: Request, run: RunName, after: After = None, limit: Limit = 50, grading: GradingName = None
) -> Response:
    """List the samples of a run with an error, each with its error."""
    scores, terms = graded_run(request, run, grading)[1], parse_filter("state:error")
    page = store_of(request).browse.samples(scores.id, terms, after=after, limit=limit)
    matches = store_of(request).browse.count_samples(scores.id, terms) if after is None else None
    return answer(CountedSamples(**dict(page), matches=matches))


@router.get("/runs/{run}/scores", response_model=ScorePage)
def scores(
    request: Request,
    run: RunName,
    grader: Annotated[str | None, Query(description="The scores of one grader, or `reward`.")] = None,
    state: State | None = None,
    after: After = None,
    limit: Limit = 50,
    grading: GradingName = None,
) -> Response:
    """List the scores of a run, those of a whole conversation and then those of its turns."""
    scores = graded_run(request, run, grading)[1]
    if grader is not None:
        check_grader(grader, scores)
    return answer(store_of(request).browse.scores(scores, grader=grader, state=state, after=after, limit=limit))


@router.get("/runs/{run}/samples/{sample:path}/{trial}/turns", response_model=TurnPage)
def turns(
    request: Request,
    run: RunName,
    sample: str,
    trial: Trial,
    target: str | None = None,
    after: After = None,
    limit: Limit = 50,
    grading: GradingName = None,
) -> Response:
    """List the turns of one conversation, each with its scores."""
    scores = graded_run(request, run, grading)[1]
    page = store_of(request).browse.turns(scores, sample, trial, target=target, after=after, limit=limit)
    return answer(page.model_dump(exclude_unset=True))


@router.get("/runs/{run}/samples/{sample:path}/{trial}", response_model=Outcome)
def sample(
    request: Request,
    run: RunName,
    sample: str,
    trial: Trial,
    target: str | None = None,
    grading: GradingName = None,
) -> Response:
    """Return one conversation with its grades, and its test where a tester led it."""
    record, scores = graded_run(request, run, grading)
    return answer(outcome_of(request, record, scores, sample, trial, target).model_dump(exclude_unset=True))


def outcome_of(request: Request, run: Run, grading: Grading, sample: str, trial: int, target: str | None) -> Outcome:
    """Return one conversation with its scores.

    Raises:
        NotFound: the run has no such conversation.
    """
    there: list[AttemptKey] = []
    for outcome in store_of(request).outcomes(grading.id, sample_id=sample):
        there.append(outcome.attempt.key)
        if there[-1].trial == trial and target in (None, there[-1].target):
            return outcome
    raise no_conversation(run.id, sample, target, trial, there)


def graded_run(request: Request, run: str, grading: str | None) -> tuple[Run, Grading]:
    """Return a run and one of its sets of scores, by default the newest complete one."""
    store = store_of(request)
    record = store.run(run)
    return record, store.grading(record.id, grading)


def place_of(request: Request, run: str, key: AttemptKey, turn: int | None = None, grader: str = "") -> LabelPlace:
    """Return the place of what the user adds; without a target in the request, the run must have only one."""
    store = store_of(request)
    record = store.run(run)
    if not key.target:
        same = [
            attempt.key
            for attempt in store.attempts(record.id, sample_id=key.sample_id)
            if attempt.key.trial == key.trial
        ]
        if len(same) > 1:
            raise UsageError(f"name the target, one of {', '.join(one.target for one in same)}")
        key = same[0] if same else key
    return LabelPlace(record.id, key, turn, grader, user_of(request).name)
