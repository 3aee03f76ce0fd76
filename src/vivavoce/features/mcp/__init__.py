"""The store as tools for an assistant, over the Model Context Protocol."""

from __future__ import annotations

from collections.abc import Mapping

from vivavoce.extensions import Command, hookimpl


@hookimpl
def register_commands() -> Mapping[str, Command]:
    """Add `viva mcp`."""
    line = "Offer the store to an assistant, over MCP."
    return {"mcp": Command(line, "vivavoce.features.mcp.command:command", after="serve")}
