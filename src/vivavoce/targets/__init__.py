"""Systems under test, one kind a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vivavoce.plugins import lazy

if TYPE_CHECKING:
    from vivavoce.targets.frameworks.langchain import LangChainTarget
    from vivavoce.targets.frameworks.target import FrameworkTarget
    from vivavoce.targets.function import FunctionTarget
    from vivavoce.targets.http import HttpTarget
    from vivavoce.targets.letta import LettaTarget
    from vivavoce.targets.letta_code import LettaCodeTarget
    from vivavoce.targets.openai import OpenAITarget
    from vivavoce.targets.target import Opening, Reply, Session, Target

_EXPORTS = {
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
    "FrameworkTarget",
    "FunctionTarget",
    "HttpTarget",
    "LangChainTarget",
    "LettaCodeTarget",
    "LettaTarget",
    "OpenAITarget",
    "Opening",
    "Reply",
    "Session",
    "Target",
]


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return lazy(f"vivavoce.targets.{_EXPORTS[name]}:{name}")
    raise AttributeError(f"module 'vivavoce.targets' has no attribute '{name}'")
