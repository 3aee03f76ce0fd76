"""Systems under test, one kind a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vivavoce.plugins import lazy

if TYPE_CHECKING:
    from vivavoce.targets.a2a import A2ATarget
    from vivavoce.targets.frameworks.langchain import LangChainTarget
    from vivavoce.targets.frameworks.target import FrameworkTarget
    from vivavoce.targets.function import FunctionTarget
    from vivavoce.targets.http import HttpTarget
    from vivavoce.targets.letta import LettaTarget
    from vivavoce.targets.letta_code import LettaCodeTarget
    from vivavoce.targets.mcp import McpTarget
    from vivavoce.targets.openai import OpenAITarget
    from vivavoce.targets.target import Opening, Reply, Session, Target
    from vivavoce.targets.terminal import TerminalTarget
    from vivavoce.targets.websocket import WebSocketTarget

_EXPORTS = {
    "A2ATarget": "a2a",
    "McpTarget": "mcp",
    "TerminalTarget": "terminal",
    "WebSocketTarget": "websocket",
    "FunctionTarget": "function",
    "HttpTarget": "http",
    "FrameworkTarget": "frameworks.target",
    "LangChainTarget": "frameworks.langchain",
    "LettaCodeTarget": "letta_code",
    "LettaTarget": "letta",
    "OpenAITarget": "openai",
    "Opening": "target",
    "Reply": "target",
    "Session": "target",
    "Target": "target",
}

__all__ = [
    "A2ATarget",
    "FrameworkTarget",
    "FunctionTarget",
    "HttpTarget",
    "LangChainTarget",
    "LettaCodeTarget",
    "LettaTarget",
    "McpTarget",
    "OpenAITarget",
    "Opening",
    "Reply",
    "Session",
    "Target",
    "TerminalTarget",
    "WebSocketTarget",
]


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return lazy(f"vivavoce.targets.{_EXPORTS[name]}:{name}")
    raise AttributeError(f"module 'vivavoce.targets' has no attribute '{name}'")
