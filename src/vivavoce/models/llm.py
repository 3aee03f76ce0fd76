"""`BaseLLM` and models of that interface: objects with `generate` that are also models of vivavoce."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from vivavoce.errors import UsageError
from vivavoce.messages import HumanMessage
from vivavoce.models.model import Model, ModelReply, Request, Schema, identity_of
from vivavoce.models.names import open_model
from vivavoce.pacing.waiting import wait_for
from vivavoce.settings import settings


class BaseLLM(ABC):
    """Base class for user-defined models; any other object with the same `generate` works as well."""

    @abstractmethod
    def generate(self, prompt: str, schema: Schema | None = None) -> str | dict[str, Any]:
        """Answer a prompt: with a text, or where a schema is given, with a dict that matches it."""

    def get_model_name(self) -> str:
        """Return the name of the model in records."""
        return type(self).__name__


class _NamedLLM(BaseLLM):
    """A model of one provider; `settings` such as `temperature` are sent with every request.

    Without a name it is the model that VIVAVOCE_JUDGE names, or else VIVAVOCE_TESTER, if that is of this provider.

    Raises:
        UsageError: its name or its key is missing, or a setting is not known.
        MissingExtra: the provider needs `vivavoce[providers]`.
    """

    provider: ClassVar[str]

    def __init__(self, model: str | None = None, *, api_key: str | None = None, **settings: Any) -> None:
        self._full_name = self._named() if model is None else f"{self.provider}:{model}"
        self._api_key = api_key
        self.settings = settings
        self._model = self._open()
        self.name = self._model.name
        self.identity = identity_of(self._model)

    def generate(self, prompt: str, schema: Schema | None = None) -> str | dict[str, Any]:
        """Answer a prompt, also inside a running event loop; every call makes its own connection.

        Raises:
            ModelFault: there is no answer, or it does not match the schema.
            RateLimited: it asked to slow down, and kept asking.
        """
        return wait_for(self._generate(Request([HumanMessage(content=prompt)], schema=schema)))

    def get_model_name(self) -> str:
        """Return the name with its provider."""
        return self.name

    async def complete(self, request: Request) -> ModelReply:
        """Answer a request.

        Raises:
            ModelFault: there is no answer, or it does not match the schema.
            RateLimited: it asked to slow down, and kept asking.
        """
        return await self._model.complete(request)

    async def close(self) -> None:
        """Close the connections."""
        await self._model.close()

    async def _generate(self, request: Request) -> str | dict[str, Any]:
        model = self._open()  # one of its own: connections belong to one event loop
        try:
            reply = await model.complete(request)
        finally:
            await model.close()
        return reply.text if reply.parsed is None else reply.parsed

    def _named(self) -> str:
        chosen = settings()
        names = [name for name in (chosen.judge, chosen.tester) if name and name.startswith(f"{self.provider}:")]
        if names:
            return names[0]
        kind, example = type(self).__name__, f"{self.provider}:MODEL"
        raise UsageError(f"{kind} needs the name of a model: {kind}('MODEL'), or set VIVAVOCE_JUDGE to {example}")

    def _open(self) -> Model:
        return open_model(self._full_name, api_key=self._api_key, settings=self.settings)


class OpenAILLM(_NamedLLM):
    """A model of OpenAI, or of the endpoint that OPENAI_BASE_URL names."""

    provider = "openai"


class AnthropicLLM(_NamedLLM):
    """A model of Anthropic."""

    provider = "anthropic"


class VertexAILLM(_NamedLLM):
    """A model on Google's Vertex AI, with the credentials that Google's own tools find."""

    provider = "vertex"


def get_default_model() -> Model:
    """Return the model that `VIVAVOCE_JUDGE` names.

    Raises:
        UsageError: it is not set, or the model cannot be opened; a model that costs money is never chosen silently.
    """
    name = settings().judge
    if name is None:
        raise UsageError(
            "no model is chosen: set the environment variable VIVAVOCE_JUDGE to the name of one, such as "
            "openai:gpt-4.1-mini or ollama:llama3.1, or give a model"
        )
    return open_model(name)
