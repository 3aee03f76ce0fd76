"""Tools that answer: who answers the calls that a model makes in a test, and what the calls change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vivavoce.lazy_names import lazy_names

if TYPE_CHECKING:
    from vivavoce.tools.mcp import McpServer as McpServer
    from vivavoce.tools.toolbox import Toolbox as Toolbox


__getattr__, __dir__ = lazy_names(__name__, {".mcp": ("McpServer",), ".toolbox": ("Toolbox",)})
