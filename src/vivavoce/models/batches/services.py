"""Which batch service answers the questions to a model."""

from __future__ import annotations

from typing import cast

from vivavoce.errors import UsageError
from vivavoce.models.batches.anthropic import AnthropicBatches, KeepsRequests
from vivavoce.models.batches.openai import OpenAIBatches
from vivavoce.models.batches.service import BatchService
from vivavoce.models.model import Model
from vivavoce.models.openai import OpenAIModel
from vivavoce.models.prices import batch_price


def batch_service(model: Model) -> BatchService:
    """Return the service that answers questions to a model in batches; nothing is sent.

    Raises:
        UsageError: there is none.
    """
    if isinstance(model, OpenAIModel):
        return OpenAIBatches(model, batch_price(model.name))
    if model.name.startswith("anthropic:"):
        return AnthropicBatches(cast("KeepsRequests", model), batch_price(model.name))
    raise UsageError(
        f"{model.name} does not support batches; use a judge openai:NAME, azure:NAME, anthropic:NAME or "
        "http://host/v1#NAME"
    )
