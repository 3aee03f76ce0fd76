"""Tools of the tester, one kind a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vivavoce.plugins import lazy

if TYPE_CHECKING:
    from vivavoce.penelope.tools.analyze import AnalyzeTool
    from vivavoce.penelope.tools.check_facts import CheckFactsTool
    from vivavoce.penelope.tools.compare_turns import CompareTurnsTool
    from vivavoce.penelope.tools.end_conversation import EndConversationTool
    from vivavoce.penelope.tools.extract import ExtractTool
    from vivavoce.penelope.tools.target_interaction import TargetInteractionTool
    from vivavoce.penelope.tools.tool import FunctionTool, Tool, ToolResult

_EXPORTS = {
    "AnalyzeTool": "analyze",
    "CheckFactsTool": "check_facts",
    "CompareTurnsTool": "compare_turns",
    "EndConversationTool": "end_conversation",
    "ExtractTool": "extract",
    "FunctionTool": "tool",
    "TargetInteractionTool": "target_interaction",
    "Tool": "tool",
    "ToolResult": "tool",
}

__all__ = [
    "AnalyzeTool",
    "CheckFactsTool",
    "CompareTurnsTool",
    "EndConversationTool",
    "ExtractTool",
    "FunctionTool",
    "TargetInteractionTool",
    "Tool",
    "ToolResult",
]


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return lazy(f"vivavoce.penelope.tools.{_EXPORTS[name]}:{name}")
    raise AttributeError(f"module 'vivavoce.penelope.tools' has no attribute '{name}'")
