"""Strategies: how the tester leads a conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vivavoce.lazy_names import lazy_names

if TYPE_CHECKING:
    from vivavoce.penelope.strategies.crescendo import Crescendo as Crescendo
    from vivavoce.penelope.strategies.factory import make_strategy as make_strategy
    from vivavoce.penelope.strategies.factory import strategies as strategies
    from vivavoce.penelope.strategies.free import Improvise as Improvise
    from vivavoce.penelope.strategies.goat import Goat as Goat
    from vivavoce.penelope.strategies.openings import Openings as Openings
    from vivavoce.penelope.strategies.pair import Pair as Pair
    from vivavoce.penelope.strategies.phases import BoundaryDiscovery as BoundaryDiscovery
    from vivavoce.penelope.strategies.phases import CapabilityMapping as CapabilityMapping
    from vivavoce.penelope.strategies.phases import DomainProbing as DomainProbing
    from vivavoce.penelope.strategies.state_graph import StateGraph as StateGraph
    from vivavoce.penelope.strategies.state_graph import read_graph as read_graph
    from vivavoce.penelope.strategies.strategy import Move as Move
    from vivavoce.penelope.strategies.strategy import Strategy as Strategy


__getattr__, __dir__ = lazy_names(
    __name__,
    {
        ".crescendo": ("Crescendo",),
        ".factory": ("make_strategy", "strategies"),
        ".free": ("Improvise",),
        ".goat": ("Goat",),
        ".openings": ("Openings",),
        ".pair": ("Pair",),
        ".phases": ("BoundaryDiscovery", "CapabilityMapping", "DomainProbing"),
        ".state_graph": ("StateGraph", "read_graph"),
        ".strategy": ("Move", "Strategy"),
    },
)
