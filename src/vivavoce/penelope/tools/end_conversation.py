"""`EndConversationTool`: the person whom the tester plays leaves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vivavoce.penelope.tools.tool import Tool, ToolResult

NAME = "end_conversation"


class EndConversationTool(Tool):
    """Ends the conversation from the user's side."""

    name = NAME
    description = "Leave the conversation."
    when_to_use = "only where the user would leave: satisfied, fed up, or sent elsewhere for good."
    when_not_to_use = "after one bad answer."
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {"reason": {"type": "string"}},
        "required": ["reason"],
        "additionalProperties": False,
    }

    def execute(self, reason: str = "", **more: Any) -> ToolResult:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return why."""
        del more
        return ToolResult(success=True, output={"reason": reason})

    def findings(self, result: ToolResult) -> list[str]:
        """Return nothing: leaving has no findings."""
        del result
        return []
