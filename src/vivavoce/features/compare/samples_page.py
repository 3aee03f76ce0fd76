"""Two conversations about the same sample, side by side."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from vivavoce.errors import NotFound, UsageError
from vivavoce.features.compare.cache import Comparisons, comparisons_of
from vivavoce.features.compare.choosing import compare_page, compared_samples
from vivavoce.features.compare.page import ComparisonQuery, Sides
from vivavoce.features.compare.paired_turns import PAGE_SIZE, paired_turns
from vivavoce.records.run import Grading, Outcome, Run
from vivavoce.records.score import to_index, to_number
from vivavoce.report.comparison.comparison import Flip
from vivavoce.server.pages.content import showing
from vivavoce.server.pages.links import run_page, sample_page
from vivavoce.server.pages.page import page
from vivavoce.server.pages.route import PageRoute
from vivavoce.server.requested_metrics import check_grader
from vivavoce.server.state import store_of
from vivavoce.store.browse.listing import title_of
from vivavoce.store.runs.naming import no_conversation
from vivavoce.store.store import Store

router = APIRouter(route_class=PageRoute, include_in_schema=False)


class NamedSamples(ComparisonQuery):
    """The samples, and the first turn; the second sample has the id of the first by default."""

    sample_a: str
    sample_b: str = ""
    trial: int | None = Field(default=None, ge=1, lt=2**31)
    first: int = Field(default=1, ge=1, lt=2**31, alias="from")


@router.get("/compare/samples")
def compare_samples(request: Request, query: Annotated[NamedSamples, Query()]) -> Response:
    """Show two conversations; without a trial, the one in which they differ most."""
    store = store_of(request)
    sides = Sides.read(store, query)
    if query.grader:
        check_grader(query.grader, sides.grading_a, sides.grading_b)
    sample_b = query.sample_b or query.sample_a
    comparisons: Comparisons = comparisons_of(request)
    view = _View(store, comparisons, sides, query.sample_a, sample_b, query.grader or None, query.only or None)
    outcomes = _outcomes(store, sides.a, sides.grading_a, query.sample_a, query.target_a)
    others = _outcomes(store, sides.b, sides.grading_b, sample_b, query.target_b)
    both = _choose_trial(outcomes, others, None if query.trial is None else to_index(query.trial))
    return page("side_by_side.html", _values(view, both, _trials(outcomes, others), to_index(query.first)))


@dataclass(frozen=True, slots=True)
class _View:
    store: Store
    comparisons: Comparisons
    sides: Sides
    sample_a: str
    sample_b: str
    grader: str | None
    only: str | None

    def link(self, *, trial: int | None = None, turn: int | None = None, **changed: str | None) -> str:
        """Return the address of this page with changed parameters."""
        base = {**self.sides.parameters, "sample_a": self.sample_a, "sample_b": self.sample_b}
        parameters = {**base, "grader": self.grader, "only": self.only, **changed}
        return compared_samples(trial=trial, turn=turn, **parameters)


def _outcomes(store: Store, run: Run, grading: Grading, sample: str, target: str) -> list[Outcome]:
    """Return the trials of a sample for one target, by default for the first one."""
    outcomes = list(store.outcomes(grading.id, sample_id=sample))
    selected_target = target or next((outcome.attempt.key.target for outcome in outcomes), "")
    mine = [outcome for outcome in outcomes if outcome.attempt.key.target == selected_target]
    if not mine:
        raise no_conversation(run.id, sample, target or None, None, (outcome.attempt.key for outcome in outcomes))
    return mine


def _trials(outcomes: Sequence[Outcome], others: Sequence[Outcome]) -> list[int]:
    """Return the trials that both sides have."""
    return sorted({outcome.attempt.key.trial for outcome in outcomes} & {other.attempt.key.trial for other in others})


def _choose_trial(outcomes: Sequence[Outcome], others: Sequence[Outcome], trial: int | None) -> tuple[Outcome, Outcome]:
    pairs = [(a, b) for a in outcomes for b in others if a.attempt.key.trial == b.attempt.key.trial]
    if trial is not None:
        pairs = [(a, b) for a, b in pairs if a.attempt.key.trial == trial]
    if not pairs:
        if trial is not None:
            raise NotFound("trial", str(trial), within="both runs")
        raise UsageError("the two runs have no common trial")
    return max(pairs, key=lambda pair: abs(_total(pair[0]) - _total(pair[1])))


def _total(outcome: Outcome) -> float:
    return sum(score.value or 0.0 for score in outcome.scores.values())


@dataclass(frozen=True, slots=True)
class _Place:
    """The place of a flip among those of its kind, counted from 1, and the addresses of its neighbours."""

    number: int
    total: int
    before: str | None
    after: str | None


def _place(view: _View) -> _Place | None:
    """Return the place among the flips that the reader comes from, None if they come from elsewhere."""
    if view.grader is None or view.only not in ("worsened", "improved"):
        return None
    comparison = view.sides.compare(view.store, view.comparisons)
    grader = next((grader for grader in comparison.targets[0].graders if grader.name == view.grader), None)
    flips: list[Flip] = getattr(grader, view.only) if grader else []
    number = next((i for i, flip in enumerate(flips) if flip.sample_a == view.sample_a), None)
    if number is None:
        return None

    def link(place: int) -> str | None:
        if not 0 <= place < len(flips):
            return None
        return view.link(sample_a=flips[place].sample_a, sample_b=flips[place].sample_b)

    return _Place(number + 1, len(flips), link(number - 1), link(number + 1))


def _values(view: _View, both: tuple[Outcome, Outcome], trials: Sequence[int], first: int) -> dict[str, object]:
    longest = max(len(outcome.attempt.trajectory.turns) for outcome in both)
    first = min(first, max(longest - 1, 0)) // PAGE_SIZE * PAGE_SIZE
    runs = (view.sides.a, view.sides.b)
    looks = [showing(run.id, outcome.attempt.key) for run, outcome in zip(runs, both, strict=True)]
    talk = paired_turns(*both, first, looks)
    trial = both[0].attempt.key.trial

    def page_from(turn: int | None) -> str | None:
        return None if turn is None or not 0 <= turn < longest else view.link(trial=trial, turn=turn)

    here = talk.parting is None or first <= talk.parting < first + PAGE_SIZE
    return {
        "section": "compare",
        "title": title_of(json.loads(both[1].attempt.sample)) or view.sample_b,
        "heads": [_head(view, "A", both[0]), _head(view, "B", both[1])],
        "talk": talk,
        "whole": compare_page(**view.sides.parameters, grader=view.grader),
        "trials": [(number, view.link(trial=number), number == trial) for number in trials] if len(trials) > 1 else [],
        "parting": _anchor(talk.parting, "" if here else page_from(talk.parting)),
        "before": page_from(first - PAGE_SIZE),
        "after": page_from(first + PAGE_SIZE),
        "first": first,
        "last": min(first + PAGE_SIZE, longest) - 1,
        "place": _place(view),
        "ending": any(outcome.attempt.trajectory.test is not None for outcome in both),
    }


def _anchor(turn: int | None, page: str | None) -> str | None:
    """Return the address of a turn on a page."""
    return None if turn is None else f"{page or ''}#t{to_number(turn)}"


def _head(view: _View, side: str, outcome: Outcome) -> dict[str, object]:
    """Return the head of a side."""
    run, grading_key = (view.sides.a, "grading_a") if side == "A" else (view.sides.b, "grading_b")
    key, talk = outcome.attempt.key, outcome.attempt.trajectory
    grading = view.sides.parameters[grading_key]
    return {
        "side": side,
        "run": run,
        "run_link": run_page(run.id, grading=grading),
        "key": key,
        "link": sample_page(run.id, key.sample_id, trial=key.trial, target=key.target, grading=grading),
        "turns": len(talk.turns),
        "failure": talk.failure,
    }
