"""The grader of `kind: rule`: a rule about calls and words across the turns, written into the suite."""

from __future__ import annotations

from typing import Any, Literal

from vivavoce.metrics.exact.rule import RuleMetric
from vivavoce.metrics.rules.rule import Rule
from vivavoce.records.reason import Severity


class RuleGraderSpec(Rule):
    """A rule about what comes before, after, never, always, or at most so many times; it needs no judge.

    A conversation that breaks it fails the run, or with `severity: warn` is only a warning. With `scores_errors`, the
    finished part of a conversation that ended with an error is scored, too.
    """

    kind: Literal["rule"]
    scores_errors: bool = False
    severity: Severity | None = None
    display_name: str | None = None

    def metric(self, name: str) -> RuleMetric:
        """Return the rule as a metric."""
        parts: dict[str, Any] = {part: getattr(self, part) or None for part in Rule.model_fields}
        return RuleMetric(name=name, **parts)
