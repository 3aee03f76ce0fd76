"""Strategies by name."""

from __future__ import annotations

from typing import Any, cast

from vivavoce.errors import UsageError
from vivavoce.penelope.strategies.strategy import Strategy
from vivavoce.plugins import Registry
from vivavoce.validation import read_options

_HERE = "vivavoce.penelope.strategies"

strategies: Registry[type[Strategy]] = Registry(
    "strategy",
    {
        "improvise": f"{_HERE}.free:Improvise",
        "domain_probing": f"{_HERE}.phases:DomainProbing",
        "capability_mapping": f"{_HERE}.phases:CapabilityMapping",
        "boundary_discovery": f"{_HERE}.phases:BoundaryDiscovery",
        "crescendo": f"{_HERE}.crescendo:Crescendo",
        "goat": f"{_HERE}.goat:Goat",
        "pair": f"{_HERE}.pair:Pair",
    },
)
"""Every strategy that can be named; `strategies.add(name, class)` or a plugin adds a user-defined one."""


def make_strategy(strategy: str | Strategy | type[Strategy], /, **options: Any) -> Strategy:
    """Return a strategy from a name, class, or object; options are those of its constructor.

    Raises:
        UsageError: no strategy has that name, it has no such option, or the object is not a strategy.
    """
    thing: Any = strategies.get(strategy) if isinstance(strategy, str) else strategy
    if not callable(getattr(thing, "move", None)):
        raise UsageError(f"a strategy needs name, adversarial, and move(state); got {thing!r}")
    if isinstance(thing, type):
        kind = cast("type[Any]", thing)
        label = strategy if isinstance(strategy, str) else kind.__name__
        return kind(**read_options(kind, options, f"strategy '{label}'"))
    if options:
        raise UsageError(f"the strategy '{thing.name}' is an object and takes no options")
    return thing
