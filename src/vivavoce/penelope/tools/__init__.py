"""Tools of the tester, one kind a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vivavoce.lazy_names import lazy_names

if TYPE_CHECKING:
    from vivavoce.penelope.tools.analyze import AnalyzeTool as AnalyzeTool
    from vivavoce.penelope.tools.check_facts import CheckFactsTool as CheckFactsTool
    from vivavoce.penelope.tools.compare_turns import CompareTurnsTool as CompareTurnsTool
    from vivavoce.penelope.tools.end_conversation import EndConversationTool as EndConversationTool
    from vivavoce.penelope.tools.extract import ExtractTool as ExtractTool
    from vivavoce.penelope.tools.target_interaction import TargetInteractionTool as TargetInteractionTool
    from vivavoce.penelope.tools.tool import FunctionTool as FunctionTool
    from vivavoce.penelope.tools.tool import Tool as Tool
    from vivavoce.penelope.tools.tool import ToolResult as ToolResult


__getattr__, __dir__ = lazy_names(
    __name__,
    {
        ".analyze": ("AnalyzeTool",),
        ".check_facts": ("CheckFactsTool",),
        ".compare_turns": ("CompareTurnsTool",),
        ".end_conversation": ("EndConversationTool",),
        ".extract": ("ExtractTool",),
        ".target_interaction": ("TargetInteractionTool",),
        ".tool": ("FunctionTool", "Tool", "ToolResult"),
    },
)
