"""Tools that answer: who answers the calls that a model makes in a test, and what the calls change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vivavoce.plugins import lazy

if TYPE_CHECKING:
    from vivavoce.tools.mcp import McpServer
    from vivavoce.tools.toolbox import Toolbox

_EXPORTS = {"McpServer": "mcp", "Toolbox": "toolbox"}

__all__ = ["McpServer", "Toolbox"]


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return lazy(f"vivavoce.tools.{_EXPORTS[name]}:{name}")
    raise AttributeError(f"module 'vivavoce.tools' has no attribute '{name}'")
