"""Where labels of people differ: the list of these places in a run, and the page to decide one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import ValidationError

from vivavoce.errors import NotFound, UsageError
from vivavoce.features.labels.labelling import VERDICTS, human_label, question
from vivavoce.features.labels.links import decide_page, differing_page
from vivavoce.records.label import DifferingLabels
from vivavoce.records.run import AttemptKey, Grading, Outcome
from vivavoce.records.score import conversation_label, to_number, turn_label
from vivavoce.report.graded_run import require_grader
from vivavoce.report.html.conversation import conversation
from vivavoce.report.html.transcript import Showing
from vivavoce.safe_text import safe
from vivavoce.server.pages.forms import Form, form_key, index_of
from vivavoce.server.pages.links import FirstTurn, run_page
from vivavoce.server.pages.page import page
from vivavoce.server.pages.route import PageRoute
from vivavoce.server.state import store_of
from vivavoce.server.users import needs, user_of
from vivavoce.store.labels import LabelPlace, now_decision
from vivavoce.store.store import Store

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_BLIND = Showing(inline=("image",))
"""No address of a picture says which run it is from."""


@dataclass(frozen=True, slots=True)
class _Line:
    """A place in the list; `decided` is the word of the decision, empty while there is none."""

    title: str
    grader: str
    counts: str
    link: str
    decided: str


@router.get("/label/differing")
def differing(request: Request, run: str, grader: str | None = None) -> Response:
    """List the places of a run where people differ, those without a decision first."""
    store = store_of(request)
    stored_run = store.run(run)
    if grader:
        require_grader(grader, store.grading(stored_run.id))
    places = _places(store, stored_run.id, grader)
    values: dict[str, object] = {
        "section": "label",
        "run": stored_run,
        "run_link": run_page(stored_run.id),
        "lines": [_line(stored_run.id, place) for place in places],
        "left": sum(place.decision is None for place in places),
    }
    return page("differing.html", values)


@router.get("/label/decide", dependencies=[needs("write")])
def ask(
    request: Request,
    run: str,
    sample: str,
    target: str,
    trial: str,
    grader: str = "",
    turn: str = "",
    first: FirstTurn = 1,
) -> Response:
    """Show a conversation, and what people say of it without their names, and ask for a decision."""
    store, place = store_of(request), _place(request, run, AttemptKey(sample, target, index_of(trial)), grader, turn)
    differing = _differing(store, place)
    grading = store.grading(place.run_id)
    bare = Outcome(attempt=_outcome(store, grading, place.key).attempt, scores={})
    start = first - 1 if first > 1 or place.turn is None else place.turn
    talk = conversation(bare, lambda at: _address(place, at), start, showing=_BLIND)
    values: dict[str, object] = {
        **talk,
        "section": "label",
        "question": question(grading, grader),
        "verdicts": {name: verdict for name, verdict in VERDICTS.items() if name != "unsure"},
        "asked_turn": place.turn,
        "labels": [
            human_label(label, None)
            for label in sorted(differing.labels, key=lambda label: (label.verdict, label.author))
        ],
        "decision": differing.decision,
        "here": _address(place),
        "list_link": differing_page(run=place.run_id),
        "form_key": form_key(request),
        "author": user_of(request).name,
    }
    return page("decide.html", values)


@router.post("/label/decide")
def save(
    request: Request,
    form: Form,
    run: str,
    sample: str,
    target: str,
    trial: str,
    grader: str = "",
    turn: str = "",
) -> Response:
    """Save a decision, and go to the next place without one; or take it back."""
    store, place = store_of(request), _place(request, run, AttemptKey(sample, target, index_of(trial)), grader, turn)
    if form.get("action") == "undo":
        store.decisions.remove(place)
        return RedirectResponse(_address(place), 303)
    before = _differing(store, place).decision
    try:
        blind = before is None or before.blind
        decision = now_decision(place, form.get("verdict", ""), form.get("note"), blind=blind)
    except ValidationError as error:
        raise UsageError("choose pass or fail; the reason can have at most 4,000 characters") from error
    store.decisions.set(place.run_id, decision)
    following = next((each for each in _places(store, place.run_id, None) if each.decision is None), None)
    if following is None:
        return RedirectResponse(differing_page(run=place.run_id), 303)
    return RedirectResponse(_link(place.run_id, following), 303)


def _places(store: Store, run_id: str, grader: str | None) -> list[DifferingLabels]:
    return sorted(
        store.decisions.differing(run_id, grader=grader), key=lambda differing: differing.decision is not None
    )


def _differing(store: Store, place: LabelPlace) -> DifferingLabels:
    for differing in store.decisions.differing(place.run_id, grader=place.grader):
        if (differing.key, differing.turn) == (place.key, place.turn):
            return differing
    raise NotFound("place", place.key.sample_id, message="nothing to decide: people do not disagree here")


def _place(request: Request, run: str, key: AttemptKey, grader: str, turn: str) -> LabelPlace:
    run_id = store_of(request).run(run).id
    return LabelPlace(run_id, key, index_of(turn) if turn else None, grader, user_of(request).name)


def _outcome(store: Store, grading: Grading, key: AttemptKey) -> Outcome:
    for outcome in store.outcomes(grading.id, sample_id=key.sample_id):
        if outcome.attempt.key == key:
            return outcome
    raise NotFound("sample", key.sample_id)


def _line(run_id: str, differing_labels: DifferingLabels) -> _Line:
    turn = "" if differing_labels.turn is None else f", {turn_label(differing_labels.turn)}"
    return _Line(
        title=safe(f"{conversation_label(differing_labels.sample_id, differing_labels.trial)}{turn}"),
        grader=safe(differing_labels.grader),
        counts=count_verdicts([label.verdict for label in differing_labels.labels]),
        link=_link(run_id, differing_labels),
        decided=""
        if differing_labels.decision is None
        else f"{VERDICTS[differing_labels.decision.verdict][0]}, {safe(differing_labels.decision.author)}",
    )


def count_verdicts(verdicts: Sequence[str]) -> str:
    """Return how many people say what, such as `2 pass, 1 fail`."""
    return ", ".join(
        f"{verdicts.count(name)} {word.lower()}" for name, (word, _) in VERDICTS.items() if name in verdicts
    )


def _link(run_id: str, labels: DifferingLabels) -> str:
    return _address(LabelPlace(run_id, labels.key, labels.turn, labels.grader, ""))


def _address(place: LabelPlace, first: int | None = None) -> str:
    turn = None if place.turn is None else to_number(place.turn)
    start = None if first is None else to_number(first)
    return decide_page(place.run_id, place.key, grader=place.grader, turn=turn, **{"from": start})
