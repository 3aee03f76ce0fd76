"""Tools that answer: who answers the calls that a model makes in a test, and what the calls change."""

from __future__ import annotations

from vivavoce.tools.toolbox import Toolbox

__all__ = ["Toolbox"]
