"""`GuidelinesMetric`: does the assistant keep your own rules? One verdict for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Unpack

from vivavoce.errors import UsageError
from vivavoce.metrics.checklist import WORTH, ChecklistMetric
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.judging import Asked, JudgingOptions, Verdict, merged
from vivavoce.metrics.prompts import Wording
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.models.homemade import ModelLike

WORST_FIRST = ("no", "partly", "yes", "not_applicable")


class GuidelinesMetric(ChecklistMetric):
    """Judges whether the assistant keeps each of your `guidelines`, given as a list or by names of yours.

    The score is the share that is kept of those that apply, 0 to 1: `partly` counts 0.5. It passes when all are, unless
    another `threshold` is given. `details["guidelines"]` has the verdict on each, and `details["checks"]` its evidence.
    In pieces of a conversation, a rule that is broken in one is broken. MLflow's scorer of this name says yes or no to
    all rules together.

    Known failure: a rule that asks for two things gets one verdict.
    """

    template: ClassVar[str] = "judged/guidelines.jinja"
    nothing: ClassVar[str] = "none of the guidelines applies to this conversation"

    def __init__(
        self,
        model: ModelLike | None = None,
        *,
        guidelines: Sequence[str] | Mapping[str, str],
        **options: Unpack[JudgingOptions],
    ) -> None:
        self.guidelines = _named(guidelines)
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

    def items(self, given: MultiTurnEvaluationInput) -> Mapping[str, str]:
        """Return the rules by their names."""
        del given
        return {name: Wording(" ".join(rule.split())) for name, rule in self.guidelines.items()}

    def variables(self, given: MultiTurnEvaluationInput) -> Mapping[str, object]:
        """Return the rules, whose names are words of their author too."""
        return {"items": {Wording(name): rule for name, rule in self.items(given).items()}}

    def read(self, answer: Mapping[str, Any], asked: Asked) -> Verdict:
        """Return the share of the rules that are kept."""
        verdict = super().read(answer, asked)
        return replace(verdict, details=self._details(verdict.details["checks"]))

    def merge(self, verdicts: Sequence[Verdict]) -> Verdict:
        """Return the share of the rules that are kept in all pieces."""
        checks: list[dict[str, Any]] = []
        for name in self.guidelines:
            of = [check for verdict in verdicts for check in verdict.details["checks"] if check["item"] == name]
            worst = min((check["answer"] for check in of), key=WORST_FIRST.index)
            seen = [one for check in of for one in check["evidence"]]
            checks.append({"item": name, "evidence": seen, "answer": worst})
        worth = [WORTH[check["answer"]] for check in checks if check["answer"] in WORTH]
        whole = merged(sum(worth) / len(worth) if worth else None, verdicts, **self._details(checks))
        return whole if worth else replace(whole, reasoning=self.nothing)

    def _details(self, checks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        answers = {check["item"]: check["answer"] for check in checks}
        return {"checks": list(checks), "guidelines": {name: answers[name] for name in self.guidelines}}


def _named(guidelines: Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    """Return rules by their names, numbered where they have none."""
    if isinstance(guidelines, str):
        raise UsageError(f"guidelines are a list of rules, or rules by names; got one text: {guidelines!r}")
    if isinstance(guidelines, Mapping):
        named = dict(guidelines)
    else:
        named = {f"rule_{number}": rule for number, rule in enumerate(guidelines, 1)}
    if not named or not all(name.strip() and rule.strip() for name, rule in named.items()):
        raise UsageError("guidelines hold at least one rule, and none that is empty")
    return named
