"""Opening the judges that a suite names, each call counted against the budget of the run."""

from __future__ import annotations

from dataclasses import dataclass

from vivavoce.models.model import Model, ModelReply, Request
from vivavoce.models.names import open_model
from vivavoce.pacing.budget import Budget
from vivavoce.suites.spec import JudgeGraderSpec
from vivavoce.wire.http import Limits


@dataclass(slots=True)
class BudgetedModel:
    """A model whose calls are reserved before they are made."""

    inner: Model
    budget: Budget
    name: str = ""

    async def complete(self, request: Request) -> ModelReply:
        """Ask the model once.

        Raises:
            BudgetExhausted: no call is left.
            ModelFault: the model failed.
        """
        reservation = self.budget.reserve(0.0)
        try:
            return await self.inner.complete(request)
        finally:
            self.budget.settle(reservation, 0.0)

    async def close(self) -> None:
        """Close the model."""
        await self.inner.close()


@dataclass(frozen=True, slots=True)
class JudgeOpener:
    """Opens judges by name; with an `api_key`, no key of the environment is asked for."""

    budget: Budget
    api_key: str | None = None

    def open(self, spec: JudgeGraderSpec) -> Model:
        """Return the judge of a grader, ready to be asked."""
        limits = Limits(timeout=spec.timeout)
        inner = open_model(spec.model, api_key=self.api_key, limits=limits, tries=spec.max_retries + 1)
        return BudgetedModel(inner, self.budget, inner.name)
