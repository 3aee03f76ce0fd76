"""The lines that differ between the suites of two graded runs, each with the words that differ."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import Any, Literal, NamedTuple, cast

from vivavoce.exchange.suites import yaml_text
from vivavoce.records.run import Grading, Run
from vivavoce.report.word_difference import Stretch, word_difference

AROUND = 2
"""Lines that are the same and shown around those that differ."""
LONGEST = 5000
"""Lines of a suite that are compared."""


class SuiteLine(NamedTuple):
    """A line of a suite: in both, `gone` from the first, `new` in the second, or a `gap` where lines are left out.

    The stretches of a line that only one side has are `same` where it has nothing in common with the other's.
    """

    kind: Literal["same", "gone", "new", "gap"]
    stretches: list[Stretch]


def suite_difference(before: tuple[Run, Grading], after: tuple[Run, Grading]) -> list[SuiteLine]:
    """Return the lines that differ between the suites, as YAML; none if they are the same.

    A suite is that of the run with the graders, the reward and the gate of the grading; rows inside it are left out.
    """
    one, other = (suite_lines(*side) for side in (before, after))
    steps = difflib.SequenceMatcher(None, one, other, autojunk=False).get_grouped_opcodes(AROUND)
    found: list[SuiteLine] = []
    for group in steps:
        found += [SuiteLine("gap", [])] if found else []
        for step, start, end, at, until in group:
            if step == "equal":
                found += [SuiteLine("same", [Stretch("same", line)]) for line in one[start:end]]
            else:
                found += _changed(one[start:end], other[at:until])
    return found


def _changed(gone: list[str], new: list[str]) -> Iterator[SuiteLine]:
    """Yield first what is gone and then what is new; the words of lines in the same place are compared."""
    both = [word_difference(before or "", after or "") for before, after in zip_longest(gone, new)]
    sides: list[tuple[Literal["gone", "new"], int]] = [("gone", len(gone)), ("new", len(new))]
    for kind, number in sides:
        for words in both[:number]:
            mine = [one for one in words if one.kind in ("same", kind)]
            whole = all(one.kind != "same" for one in mine)
            yield SuiteLine(kind, [Stretch("same", one.text) for one in mine] if whole else mine)


def suite_lines(run: Run, grading: Grading) -> list[str]:
    """Return the suite of a run as lines of YAML, with what its grading decides by, and without rows inside it."""
    spec: dict[str, Any] = {**run.spec, **grading.spec}
    if isinstance(dataset := spec.get("dataset"), dict):
        spec["dataset"] = {name: value for name, value in cast("dict[str, Any]", dataset).items() if name != "rows"}
    return list(_lines(json.dumps(spec)))


@lru_cache(maxsize=64)
def _lines(spec: str) -> Sequence[str]:
    """Return a suite that is given as JSON as lines of YAML; writing them takes longer than a page may."""
    return yaml_text(json.loads(spec)).splitlines()[:LONGEST]
