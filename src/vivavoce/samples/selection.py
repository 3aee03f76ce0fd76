"""A choice of samples by their ids, each written out or as a pattern such as `total-*`."""

from __future__ import annotations

import fnmatch
import glob
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

_MAGIC = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class Selection:
    """The samples with one of these ids, or whose id matches one of these patterns of a shell (`*`, `?`, `[…]`)."""

    ids: frozenset[str]
    patterns: tuple[tuple[str, re.Pattern[str]], ...] = ()

    @classmethod
    def of(cls, names: Sequence[str]) -> Self:
        """Return the choice that these names make; a name that is an id counts as that id, whatever is in it."""
        patterns = [(name, re.compile(fnmatch.translate(name))) for name in names if _MAGIC.search(name)]
        return cls(frozenset(names), tuple(patterns))

    def __contains__(self, sample_id: str) -> bool:
        return sample_id in self.ids or any(pattern.match(sample_id) for _, pattern in self.patterns)

    def missing(self, known: Iterable[str]) -> list[str]:
        """Return the names that fit none of the ids, sorted."""
        there = list(known)
        left = self.ids.difference(there)
        fitting = {name for name, pattern in self.patterns if name in left and any(map(pattern.match, there))}
        return sorted(left - fitting)


def exactly(sample_ids: Iterable[str]) -> list[str]:
    """Return names that choose these samples alone, though their ids may look like patterns."""
    return [glob.escape(one) for one in sample_ids]
