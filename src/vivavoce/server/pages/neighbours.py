"""The previous and the next conversation of a run, in its plan and in a list of it, found without reading all of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vivavoce.store.browse.browse import Around
from vivavoce.store.browse.filter import Has, Term
from vivavoce.store.browse.listing import SampleEntry
from vivavoce.store.store import Store

_FAILING: tuple[Term, ...] = tuple(Has("state", state, negated=True) for state in ("pass", "measured", "skip"))


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The neighbours in the plan, and those in a list: the one that was filtered and sorted, else the failing ones."""

    before: SampleEntry | None
    after: SampleEntry | None
    listed: Around


def neighbours(
    store: Store, grading_id: str, position: int, terms: Sequence[Term] | None = None, sort: str = "position"
) -> Neighbours:
    """Return the neighbours of a place in the plan; without terms the list is that of failing conversations.

    A conversation fails if it has an error or did not pass.

    Raises:
        UsageError: there is no such grading.
    """
    planned = store.browse.around(grading_id, position, (), "position")
    listed = store.browse.around(grading_id, position, _FAILING if terms is None else terms, sort)
    return Neighbours(planned.before, planned.after, listed)
