"""The previous and the next conversation in the plan of a run, found without reading the whole run."""

from __future__ import annotations

from dataclasses import dataclass

from vivavoce.store.browse.filter import Has, Term
from vivavoce.store.browse.keyset import MOST, encode_cursor
from vivavoce.store.browse.listing import SampleEntry
from vivavoce.store.store import Store

_FAILING: tuple[Term, ...] = (Has("state", "pass", negated=True), Has("state", "skip", negated=True))


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The neighbours, and the nearest failing ones: with an error, or not passed."""

    before: SampleEntry | None
    after: SampleEntry | None
    failing_before: SampleEntry | None
    failing_after: SampleEntry | None


def neighbours(store: Store, grading_id: str, position: int) -> Neighbours:
    """Return the neighbours of a place in the plan."""

    def next_to(sort: str, last: int, terms: tuple[Term, ...] = ()) -> SampleEntry | None:
        place = encode_cursor((position, last))
        return next(iter(store.browse.samples(grading_id, terms, sort=sort, after=place, limit=1).samples), None)

    return Neighbours(
        before=next_to("-position", -1),
        after=next_to("position", MOST - 1),
        failing_before=next_to("-position", -1, _FAILING),
        failing_after=next_to("position", MOST - 1, _FAILING),
    )
