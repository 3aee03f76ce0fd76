"""Language models that we call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vivavoce.plugins import lazy

if TYPE_CHECKING:
    from vivavoce.models.cache import CachedModel as CachedModel
    from vivavoce.models.custom import AnthropicLLM as AnthropicLLM
    from vivavoce.models.custom import BaseLLM as BaseLLM
    from vivavoce.models.custom import OpenAILLM as OpenAILLM
    from vivavoce.models.custom import VertexAILLM as VertexAILLM
    from vivavoce.models.custom import as_model as as_model
    from vivavoce.models.custom import get_default_model as get_default_model
    from vivavoce.models.model import Model as Model
    from vivavoce.models.model import ModelReply as ModelReply
    from vivavoce.models.model import Request as Request
    from vivavoce.models.names import open_model as open_model

_LAZY = {
    "AnthropicLLM": "custom",
    "BaseLLM": "custom",
    "CachedModel": "cache",
    "Model": "model",
    "ModelReply": "model",
    "OpenAILLM": "custom",
    "Request": "model",
    "VertexAILLM": "custom",
    "as_model": "custom",
    "get_default_model": "custom",
    "open_model": "names",
}
__all__ = [
    "AnthropicLLM",
    "BaseLLM",
    "CachedModel",
    "Model",
    "ModelReply",
    "OpenAILLM",
    "Request",
    "VertexAILLM",
    "as_model",
    "get_default_model",
    "open_model",
]


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: importing the package alone costs nothing."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return lazy(f"vivavoce.models.{_LAZY[name]}:{name}")


def __dir__() -> list[str]:
    return sorted(__all__)
