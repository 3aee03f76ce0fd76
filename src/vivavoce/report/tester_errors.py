"""The rates of a run net of the conversations that its tester spoiled, and how far these could have moved them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from vivavoce.report.best_target import target_names
from vivavoce.report.comparison import TargetComparison
from vivavoce.report.text import count
from vivavoce.run.summary import Summary
from vivavoce.safe_text import safe


class Spoiled(Protocol):
    """The rates of a grader, as a summary has them."""

    @property
    def tester_errors(self) -> int:
        """How many conversations the tester spoiled."""
        ...

    @property
    def pass_rate(self) -> float | None:
        """The share of the others that passes."""
        ...

    @property
    def raw_pass_rate(self) -> float | None:
        """The share if all that were spoiled had failed."""
        ...

    @property
    def highest_pass_rate(self) -> float | None:
        """The share if all that were spoiled had passed."""
        ...


def net_text(rates: Spoiled) -> str:
    """Return what passes without the conversations that the tester spoiled, with its bounds; empty for none spoiled."""
    if not rates.tester_errors:
        return ""
    they = "it" if rates.tester_errors == 1 else "all"
    net = f"{_rate(rates.pass_rate)} pass net of {count(rates.tester_errors, 'tester error')}"
    lowest, highest = _rate(rates.raw_pass_rate), _rate(rates.highest_pass_rate)
    return f"{net}; {lowest} if {they} had failed (raw), {highest} if {they} had passed"


def spoiled_lines(summary: Summary) -> Iterator[str]:
    """Yield for each grader that misses scores because of the tester what passes without them, and the bounds."""
    several = len(target_names(summary)) > 1
    for grader in summary.graders:
        if text := net_text(grader):
            yield f"{safe(f'{grader.name} of {grader.target}' if several else grader.name)}: {text}"


def spoiled_sides(found: TargetComparison, sides: tuple[str, str]) -> Iterator[str]:
    """Yield the same for both sides of a comparison, by what the reader calls them."""
    for grader in found.graders:
        for name, side in zip(sides, (grader.a, grader.b), strict=True):
            if text := net_text(side):
                yield f"{name}, {safe(grader.name)}: {text}"


def _rate(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"
