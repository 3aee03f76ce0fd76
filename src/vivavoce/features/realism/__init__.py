"""Realism: whether the user's side of a run's conversations is like that of real ones."""

from __future__ import annotations

from collections.abc import Mapping

from vivavoce.extensions import Command, hookimpl


@hookimpl
def register_commands() -> Mapping[str, Command]:
    """Add `viva realism`."""
    line = "Say whether simulated users write as real ones do."
    return {"realism": Command(line, "vivavoce.features.realism.command:command", after="groups")}
