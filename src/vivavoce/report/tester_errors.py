"""The rates of a run net of the conversations that its tester spoiled, and how far these could have moved them."""

from __future__ import annotations

from collections.abc import Iterator

from vivavoce.report.best_target import target_names
from vivavoce.report.text import count
from vivavoce.run.summary import Summary
from vivavoce.safe_text import safe


def spoiled_lines(summary: Summary) -> Iterator[str]:
    """Yield for each grader that misses scores because of the tester what passes without them, and the bounds."""
    several = len(target_names(summary)) > 1
    for grader in summary.graders:
        if not grader.tester_errors:
            continue
        name = safe(f"{grader.name} of {grader.target}" if several else grader.name)
        spoiled = count(grader.tester_errors, "tester error")
        they = "it" if grader.tester_errors == 1 else "all"
        lowest, highest = _rate(grader.raw_pass_rate), _rate(grader.highest_pass_rate)
        net = f"{name}: {_rate(grader.pass_rate)} pass net of {spoiled}"
        yield f"{net}; {lowest} if {they} had failed (raw), {highest} if {they} had passed"


def _rate(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"
