"""Language models that we call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vivavoce.lazy_names import lazy_names

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


__getattr__, __dir__ = lazy_names(
    __name__,
    {
        ".cache": ("CachedModel",),
        ".custom": ("AnthropicLLM", "BaseLLM", "OpenAILLM", "VertexAILLM", "as_model", "get_default_model"),
        ".model": ("Model", "ModelReply", "Request"),
        ".names": ("open_model",),
    },
)
