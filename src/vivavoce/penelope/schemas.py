"""The messages of a test conversation: the package's one schema, under the names the tester's interface uses."""

from __future__ import annotations

from vivavoce.messages import AIMessage as AssistantMessage
from vivavoce.messages import FunctionCall, ToolMessage
from vivavoce.messages import ToolCall as MessageToolCall

__all__ = ["AssistantMessage", "FunctionCall", "MessageToolCall", "ToolMessage"]
