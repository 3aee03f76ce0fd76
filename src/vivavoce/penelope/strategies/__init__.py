"""Strategies: how the tester leads a conversation, one a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vivavoce.plugins import lazy

if TYPE_CHECKING:
    from vivavoce.penelope.strategies.boundary_discovery import BoundaryDiscovery
    from vivavoce.penelope.strategies.capability_mapping import CapabilityMapping
    from vivavoce.penelope.strategies.crescendo import Crescendo
    from vivavoce.penelope.strategies.domain_probing import DomainProbing
    from vivavoce.penelope.strategies.factory import make_strategy, strategies
    from vivavoce.penelope.strategies.free import Improvise
    from vivavoce.penelope.strategies.goat import Goat
    from vivavoce.penelope.strategies.openings import Openings
    from vivavoce.penelope.strategies.pair import Pair
    from vivavoce.penelope.strategies.state_graph import StateGraph, read_graph
    from vivavoce.penelope.strategies.strategy import Move, Strategy

_EXPORTS = {
    "BoundaryDiscovery": "boundary_discovery",
    "CapabilityMapping": "capability_mapping",
    "Crescendo": "crescendo",
    "DomainProbing": "domain_probing",
    "Goat": "goat",
    "Improvise": "free",
    "Move": "strategy",
    "Openings": "openings",
    "Pair": "pair",
    "StateGraph": "state_graph",
    "Strategy": "strategy",
    "make_strategy": "factory",
    "read_graph": "state_graph",
    "strategies": "factory",
}

__all__ = [
    "BoundaryDiscovery",
    "CapabilityMapping",
    "Crescendo",
    "DomainProbing",
    "Goat",
    "Improvise",
    "Move",
    "Openings",
    "Pair",
    "StateGraph",
    "Strategy",
    "make_strategy",
    "read_graph",
    "strategies",
]


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return lazy(f"vivavoce.penelope.strategies.{_EXPORTS[name]}:{name}")
    raise AttributeError(f"module 'vivavoce.penelope.strategies' has no attribute '{name}'")
