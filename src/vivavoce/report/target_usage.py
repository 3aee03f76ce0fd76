"""What each target of a run used: its tokens, and what they cost where its model has a price."""

from __future__ import annotations

from vivavoce.models.prices import Price, price_of
from vivavoce.records.run import Run, described_targets
from vivavoce.records.score import Usage
from vivavoce.report.best_target import target_names
from vivavoce.report.graded_run import GradedRun
from vivavoce.suites.target_names import described_target
from vivavoce.suites.target_spec import OpenAITargetSpec

_OPENAI = "https://api.openai.com/"


def used_by_targets(graded: GradedRun) -> dict[str, Usage]:
    """Return what each of several targets used in all its conversations, by its name, if it tells.

    Where a target does not tell the cost, it is that of its tokens by the table of prices; None without a price.
    """
    if len(target_names(graded.summary())) < 2:
        return {}
    found = graded.store.used_by_targets(graded.run.id)
    prices = _prices(graded.run) if any(used.cost is None for used in found.values()) else {}
    return {name: _priced(used, prices.get(name)) for name, used in found.items()}


def _priced(used: Usage, price: Price | None) -> Usage:
    return used if used.cost is not None or price is None else used.model_copy(update={"cost": price.cost(used)})


def _prices(run: Run) -> dict[str, Price | None]:
    """Return the price of each model of an OpenAI-compatible target, by the name of the target."""
    specs = [described_target(one) for one in described_targets(run.spec)]
    return {
        name: price_of(f"openai:{model}" if spec.base_url.startswith(_OPENAI) else f"{spec.base_url}#{model}")
        for spec in specs
        if isinstance(spec, OpenAITargetSpec)
        for name, model in spec.named
    }
