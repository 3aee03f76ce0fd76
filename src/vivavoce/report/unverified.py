"""How many verdicts of a run rest on evidence that is missing or not in the conversation."""

from __future__ import annotations

from collections.abc import Iterator

from vivavoce.report.best_target import target_names
from vivavoce.report.text import count
from vivavoce.run.summary import Summary
from vivavoce.safe_text import safe


def unverified_lines(summary: Summary) -> Iterator[str]:
    """Yield a line for each grader with verdicts that rest on unverified evidence."""
    several = len(target_names(summary)) > 1
    for grader in summary.graders:
        if grader.unverified:
            name = safe(f"{grader.name} of {grader.target}" if several else grader.name)
            rests = "rests" if grader.unverified == 1 else "rest"
            yield f"{name}: {count(grader.unverified, 'verdict')} {rests} on unverified evidence"
