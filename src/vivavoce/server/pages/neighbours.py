"""The conversations before and after one in the plan of its run, found without reading the run."""

from __future__ import annotations

from dataclasses import dataclass

from vivavoce.store.browsing import list_samples
from vivavoce.store.browsing_filter import Compares, Has, Term
from vivavoce.store.keyset import MOST, place_after
from vivavoce.store.listing import SampleEntry
from vivavoce.store.store import Store

_ERROR: tuple[Term, ...] = (Has("state", "error"),)
_BELOW: tuple[Term, ...] = (Compares("worst", "<", 1.0, grader=False),)


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The conversations on both sides, and the nearest ones that went badly: an error, or a score below 1."""

    before: SampleEntry | None
    after: SampleEntry | None
    failing_before: SampleEntry | None
    failing_after: SampleEntry | None


def neighbours(store: Store, grading_id: str, position: int) -> Neighbours:
    """Return what stands around a place in the plan."""

    def next_to(sort: str, *wanted: tuple[Term, ...]) -> SampleEntry | None:
        place = place_after((-float(position) if sort.startswith("-") else float(position), position, MOST - 1))
        found = [
            sample
            for terms in wanted
            for sample in list_samples(store, grading_id, terms, sort=sort, after=place, limit=1).samples
        ]
        return min(found, key=lambda sample: abs(sample.position - position), default=None)

    return Neighbours(
        before=next_to("-position", ()),
        after=next_to("position", ()),
        failing_before=next_to("-position", _ERROR, _BELOW),
        failing_after=next_to("position", _ERROR, _BELOW),
    )
