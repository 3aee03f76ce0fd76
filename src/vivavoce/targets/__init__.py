"""Systems under test, one kind a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vivavoce.lazy_names import lazy_names

if TYPE_CHECKING:
    from vivavoce.features.frameworks.langchain import LangChainTarget as LangChainTarget
    from vivavoce.targets.a2a import A2ATarget as A2ATarget
    from vivavoce.targets.framework import FrameworkTarget as FrameworkTarget
    from vivavoce.targets.function import FunctionTarget as FunctionTarget
    from vivavoce.targets.http import HttpTarget as HttpTarget
    from vivavoce.targets.letta import LettaTarget as LettaTarget
    from vivavoce.targets.letta_code import LettaCodeTarget as LettaCodeTarget
    from vivavoce.targets.mcp import McpTarget as McpTarget
    from vivavoce.targets.openai import OpenAITarget as OpenAITarget
    from vivavoce.targets.target import Opening as Opening
    from vivavoce.targets.target import Reply as Reply
    from vivavoce.targets.target import Session as Session
    from vivavoce.targets.target import Target as Target
    from vivavoce.targets.terminal import TerminalTarget as TerminalTarget
    from vivavoce.targets.websocket import WebSocketTarget as WebSocketTarget


__getattr__, __dir__ = lazy_names(
    __name__,
    {
        ".a2a": ("A2ATarget",),
        "vivavoce.features.frameworks.langchain": ("LangChainTarget",),
        ".framework": ("FrameworkTarget",),
        ".function": ("FunctionTarget",),
        ".http": ("HttpTarget",),
        ".letta": ("LettaTarget",),
        ".letta_code": ("LettaCodeTarget",),
        ".mcp": ("McpTarget",),
        ".openai": ("OpenAITarget",),
        ".target": ("Opening", "Reply", "Session", "Target"),
        ".terminal": ("TerminalTarget",),
        ".websocket": ("WebSocketTarget",),
    },
)
