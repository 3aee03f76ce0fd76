"""The grader of `kind: rule`: a rule about calls and words across the turns, written into the suite."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase
from typing import Any, Literal

from vivavoce.metrics.exact.rule import RuleMetric
from vivavoce.metrics.rules.rule import Rule
from vivavoce.suites.document import KeyPath


class RuleGraderSpec(Rule):
    """A rule about what comes before, after, never, always, or at most so many times; it needs no judge.

    With `scores_errors`, the finished part of a conversation that ended with an error is scored, too.
    """

    kind: Literal["rule"]
    scores_errors: bool = False
    display_name: str | None = None

    def metric(self, name: str) -> RuleMetric:
        """Return the rule as a metric."""
        parts: dict[str, Any] = {part: getattr(self, part) or None for part in Rule.model_fields}
        return RuleMetric(name=name, **parts)

    def unknown_calls(self, known: Collection[str]) -> Iterator[tuple[KeyPath, str]]:
        """Yield the path and the name of each tool that is none of those known; nothing where none is known."""
        for field, index, event in self.events if known else ():
            at = (field,) if index is None else (field, index)
            for tool in event.call or ():
                if not any(fnmatchcase(name, tool) for name in known):
                    yield (*at, "call"), tool
