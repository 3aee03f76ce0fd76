"""`GuidelinesMetric`: does the assistant keep your own rules? One verdict for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Unpack

from vivavoce.errors import UsageError
from vivavoce.metrics.checklist import STATES, WORTH, ChecklistMetric
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.evidence import EvidenceRule
from vivavoce.metrics.judging import JudgingOptions
from vivavoce.metrics.prompts import Wording
from vivavoce.metrics.question import Verdict, merged
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.models.custom import ModelLike
from vivavoce.records.score import Finding

WORST_FIRST = ("no", "partly", "yes", "not_applicable")


class GuidelinesMetric(ChecklistMetric):
    """Judges whether the assistant keeps each of your `guidelines`, as a list or by your own names.

    The score is the share of applicable rules that is kept, 0 to 1. It passes when all are, unless another `threshold`
    is given. A rule that is broken once is broken, also in one of several pieces of a conversation; `partly`, which
    counts 0.5, is for a rule with several demands, only some broken. Each rule is a finding, with its
    evidence. MLflow's scorer of this name says yes or no to all rules together.

    Known failure: a rule that asks for two things gets one verdict.
    """

    template: ClassVar[str] = "judged/guidelines.jinja"
    evidence_rule: ClassVar[EvidenceRule] = EvidenceRule(absence="a rule, such as a ban, is kept if nothing breaks it")
    nothing: ClassVar[str] = "none of the guidelines applies to this conversation"

    def __init__(
        self,
        model: ModelLike | None = None,
        *,
        guidelines: Sequence[str] | Mapping[str, str],
        **options: Unpack[JudgingOptions],
    ) -> None:
        self.guidelines = _rules_by_name(guidelines)
        config = MetricConfig(
            class_name=type(self).__name__,
            name="guidelines",
            description="Does the assistant keep these rules?",
            threshold=1.0,
        )
        super().__init__(config, model, **options)

    @property
    def parameters(self) -> Mapping[str, object]:
        """The rules."""
        return {"guidelines": self.guidelines}

    def items(self, metric_input: MultiTurnEvaluationInput) -> Mapping[str, str]:
        """Return the rules by their names."""
        del metric_input
        return {name: Wording(" ".join(rule.split())) for name, rule in self.guidelines.items()}

    def what(self, item: str) -> str:
        """Return the rule."""
        return self.guidelines[item]

    def variables(self, metric_input: MultiTurnEvaluationInput) -> Mapping[str, object]:
        """Return the rules; their author wrote the names, too."""
        return {"items": {Wording(name): rule for name, rule in self.items(metric_input).items()}}

    def merge(self, verdicts: Sequence[Verdict]) -> Verdict:
        """Return the share of the rules that are kept in all pieces."""
        findings = [finding for verdict in verdicts for finding in verdict.findings]
        checks: list[Finding] = []
        for name in self.guidelines:
            checks_of_rule = [check for check in findings if check.data["item"] == name]
            worst = min((check.verdict for check in checks_of_rule), key=WORST_FIRST.index)
            evidence = tuple(quote for check in checks_of_rule for quote in check.evidence)
            turn = next((check.turn for check in checks_of_rule if check.verdict == worst), None)
            checks.append(
                Finding(
                    kind="check",
                    what=self.what(name),
                    verdict=worst,
                    state=STATES[worst],
                    turn=turn,
                    evidence=evidence,
                    data={"item": name},
                )
            )
        worth = [WORTH[check.verdict] for check in checks if check.verdict in WORTH]
        whole = merged(sum(worth) / len(worth) if worth else None, verdicts, checks)
        return whole if worth else replace(whole, reasoning=self.nothing)


def _rules_by_name(guidelines: Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    """Return rules by their names, numbered where they have none."""
    if isinstance(guidelines, str):
        raise UsageError(f"guidelines must be a list or a mapping of rules; got one string: {guidelines!r}")
    if isinstance(guidelines, Mapping):
        rules = dict(guidelines)
    else:
        rules = {f"rule_{number}": rule for number, rule in enumerate(guidelines, 1)}
    if not rules or not all(name.strip() and rule.strip() for name, rule in rules.items()):
        raise UsageError("guidelines need at least one rule, and no rule may be empty")
    return rules
