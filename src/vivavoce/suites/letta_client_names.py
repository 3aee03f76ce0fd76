"""Names that the client of Letta had before 1.0, in the client that is installed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vivavoce.plugins import lazy
from vivavoce.targets.letta_server import BaseTool

MODULES: Mapping[str, Mapping[str, Any]] = {"letta_client.client": {"BaseTool": BaseTool}}
"""Modules that it no longer has."""
_PLACES = ("letta_client.types", "letta_client.types.agents")
_ANY = ("LettaMessageUnion",)
"""Names that are only ever written in annotations."""


def find_name(name: str) -> Any:
    """Return what a name at the top of the client meant: a type that is elsewhere now, or the form of a parameter.

    Raises:
        AttributeError: there is no such name any more.
    """
    if name in _ANY:
        return Any
    for place in _PLACES:
        for written in (name, f"{name}Param"):
            try:
                return lazy(f"{place}:{written}")
            except AttributeError:
                continue
    raise AttributeError(f"module 'letta_client' has no attribute '{name}'")
