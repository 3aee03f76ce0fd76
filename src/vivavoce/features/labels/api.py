"""Labels: human verdicts on conversations and turns, and the agreement of a judge with them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from vivavoce.records.label import LONGEST_NOTE, HumanVerdict, Label, LabelAgreement
from vivavoce.records.run import AttemptKey
from vivavoce.report.graded_run import require_grader
from vivavoce.report.label_agreement import agreement_of_all
from vivavoce.server.api.answers import ERRORS, answer
from vivavoce.server.api.runs import After, GradingName, Limit, RunName, Target, Trial, Turn, place_of
from vivavoce.server.api.strict import StrictRoute
from vivavoce.server.state import store_of
from vivavoce.store.browse.listing import LabelPage
from vivavoce.store.labels import LabelPlace, now_label

router = APIRouter(prefix="/api/v1", tags=["labels"], route_class=StrictRoute, responses=ERRORS)

Grader = Annotated[str, Query(description="The grader whose question is answered; default: none.")]
Author = Annotated[str | None, Query(description="Only labels by this person.")]


class LabelToSet(BaseModel):
    """A label; `blind` if the score of the judge was hidden.

    `queue` is one's queue in which it is given. Where that one is blind and was drawn at random, rates are estimated
    from the label; without it they are not.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    verdict: HumanVerdict
    note: Annotated[str | None, Field(max_length=LONGEST_NOTE)] = None
    blind: bool = False
    queue: str | None = None


@router.get("/runs/{run}/labels", response_model=LabelPage)
def labels(
    request: Request,
    run: RunName,
    grader: Annotated[str | None, Query(description="Only those about this grader.")] = None,
    author: Author = None,
    after: After = None,
    limit: Limit = 50,
) -> Response:
    """List the labels of a run, oldest first."""
    store = store_of(request)
    stored_run = store.run(run)
    if grader:
        require_grader(grader, *store.gradings(stored_run.id))
    return answer(store.labels.page(stored_run.id, grader=grader, author=author, after=after, limit=limit))


@router.get("/runs/{run}/labels/agreement", response_model=LabelAgreement)
def agreement(
    request: Request,
    run: RunName,
    grader: Annotated[str, Query(description="The grader whose scores are compared with the labels.")],
    author: Author = None,
    turns: Annotated[bool, Query(description="Compare labels of turns, not of whole conversations.")] = False,
    grading: GradingName = None,
) -> Response:
    """Compare the labels of a run with the scores of a grader; several labels of one conversation are as many pairs.

    Where people differ and somebody decided, the decision is compared in place of their labels, unless an author is
    named.
    """
    store = store_of(request)
    scores = store.grading(store.run(run).id, grading)
    require_grader(grader, scores)
    pairs = store.labels.paired(scores, grader, author=author, turns=turns)
    decisions = store.decisions.all(scores.run_id, grader=grader) if author is None else []
    return answer(agreement_of_all(pairs, decisions))


@router.get("/runs/{run}/samples/{sample:path}/{trial}/labels", response_model=list[Label])
def of_conversation(request: Request, run: RunName, sample: str, trial: Trial, target: Target = None) -> Response:
    """Return the labels of a conversation and of its turns, oldest first."""
    place = place_of(request, run, AttemptKey(sample, target or "", trial))
    return answer(store_of(request).labels.of(place.run_id, place.key))


@router.put("/runs/{run}/samples/{sample:path}/{trial}/labels", response_model=Label)
def put(
    request: Request,
    run: RunName,
    sample: str,
    trial: Trial,
    body: LabelToSet,
    target: Target = None,
    turn: Turn = None,
    grader: Grader = "",
) -> Response:
    """Label a conversation or a turn; this replaces the same person's earlier label there. No score changes."""
    place = place_of(request, run, AttemptKey(sample, target or "", trial), turn, grader)
    store = store_of(request)
    label = now_label(place, body.verdict, body.note, blind=body.blind)
    store.labels.set(place.run_id, label, queue=body.queue)
    mine = (each for each in store.labels.of(place.run_id, place.key) if LabelPlace.of(place.run_id, each) == place)
    return answer(next(mine, label))


@router.delete("/runs/{run}/samples/{sample:path}/{trial}/labels", response_model=Label)
def delete(
    request: Request,
    run: RunName,
    sample: str,
    trial: Trial,
    target: Target = None,
    turn: Turn = None,
    grader: Grader = "",
) -> Response:
    """Remove one's own label, and return it."""
    place = place_of(request, run, AttemptKey(sample, target or "", trial), turn, grader)
    return answer(store_of(request).labels.remove(place))
