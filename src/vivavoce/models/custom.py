"""Your own objects as models: `as_model`, and the `BaseLLM` interface."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol, TypeGuard, cast, runtime_checkable

from pydantic import BaseModel

from vivavoce.errors import ModelFault, RateLimited, UsageError, VivavoceError
from vivavoce.messages import HumanMessage
from vivavoce.models.answers import read_answer
from vivavoce.models.model import Model, ModelReply, Request, Schema, identity_of
from vivavoce.models.names import open_model
from vivavoce.models.structured import StructuredAnswer
from vivavoce.pacing.loops import call, wait_for
from vivavoce.records.score import shorten
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
            "no model is configured: set the environment variable VIVAVOCE_JUDGE to a model name such as "
            "openai:gpt-4.1-mini or ollama:llama3.1, or pass a model"
        )
    return open_model(name)


@runtime_checkable
class SupportsGenerate(Protocol):
    """An object that can be adapted: `generate(prompt)`, and with `schema=…` where the answer must match one.

    It may be sync, and then block, or async. `schema` is a class of pydantic or a JSON schema, as in the request. It
    returns a text or a dict.
    """

    generate: Callable[..., Any]


ModelLike = str | Model | SupportsGenerate
"""The types that are accepted wherever a model is needed."""


def as_model(thing: ModelLike) -> Model:
    """Return a model: a name is opened, a model is returned as it is, and an object with `generate` is adapted.

    Raises:
        UsageError: it is not one of these, or the name cannot be opened.
    """
    if isinstance(thing, str):
        return open_model(thing)
    if not isinstance(thing, type):
        if _is_model(thing):
            return thing
        if isinstance(thing, SupportsGenerate) and callable(thing.generate):
            return CustomModel(thing)
    received = f"the class {thing.__name__} itself" if isinstance(thing, type) else type(thing).__name__
    raise UsageError(
        f"expected a name such as openai:gpt-4.1-mini, a vivavoce model, or an object with "
        f"generate(prompt, schema=None); got {received}"
    )


def as_named_model(thing: object, name: str, label: str) -> Model:
    """Return what a plugin opened as a model called `name`.

    Raises:
        UsageError: it is not a model or an object with `generate`, or calls itself otherwise; the message begins with
            `label`.
    """
    if not isinstance(thing, type) and _is_model(thing):
        if thing.name != name:
            raise UsageError(f"{label} returned a model named '{thing.name}'; expected '{name}'")
        return thing
    if isinstance(thing, str | type) or not isinstance(thing, SupportsGenerate) or not callable(thing.generate):
        kind = f"the class {thing.__name__}" if isinstance(thing, type) else f"a {type(thing).__name__}"
        raise UsageError(f"{label} returns {kind}; it returns a model, or an object with generate(prompt, schema=None)")
    return CustomModel(thing, name)


class CustomModel:
    """A model around an object that can `generate`: the prompt is the text of all messages, a blank line between.

    It takes no settings (`applied` has None for each) and no tools. One without a name of its own is named after its
    class and `anonymous`: another object of that class may answer differently, so its answers are never kept.
    """

    def __init__(self, thing: SupportsGenerate, name: str | None = None) -> None:
        self.name = name or _name(thing)
        self.anonymous = name is None and self.name == type(thing).__name__
        self._thing = thing

    async def complete(self, request: Request) -> ModelReply:
        """Ask it once; a dict is the structured answer, and a text is read as one where a schema was asked for.

        Raises:
            ModelFault: it raised something, which is the cause, or what it returned is not an answer (kind `format`).
        """
        if request.tools:
            raise ModelFault(f"{self.name} is a custom model and cannot call tools", kind="unsupported")
        answer = await self._ask(request)
        applied: dict[str, Any] = {"mode": "homemade", **dict.fromkeys(request.settings)}
        text = self._text(answer)
        if request.schema is not None:
            read = self._read(text, request.schema)
            return ModelReply(text, parsed=read.parsed, applied=read.noted(applied), checked=read.checked)
        parsed = None if isinstance(answer, str) else cast("dict[str, Any]", json.loads(text))
        return ModelReply(text, parsed=parsed, applied=applied)

    async def close(self) -> None:
        """Do nothing: a custom model belongs to its creator."""

    async def _ask(self, request: Request) -> object:
        prompt = "\n\n".join(message.text for message in request.messages)
        options = {} if request.schema is None else {"schema": request.schema}
        try:
            return await call(self._thing.generate, prompt, **options)
        except RateLimited as limited:  # its author need not know that targets raise it too
            raise limited.restate(str(limited), blame=ModelFault.blame) from limited.__cause__
        except VivavoceError:
            raise
        except Exception as error:
            raise ModelFault(f"{self.name} raised {type(error).__name__}: {error}") from error

    def _text(self, answer: object) -> str:
        if isinstance(answer, str):
            return answer
        if isinstance(answer, BaseModel):
            return answer.model_dump_json()
        if isinstance(answer, Mapping):
            try:
                return json.dumps(answer)
            except (TypeError, ValueError, RecursionError) as error:
                message = f"{self.name} returned a dict that is not JSON: {error}"
                raise ModelFault(message, kind="format", evidence=shorten(repr(cast("object", answer)))) from error
        message = f"{self.name} returned a {type(answer).__name__}; a text or a dict is needed"
        raise ModelFault(message, kind="format", evidence=shorten(repr(answer)))

    def _read(self, text: str, schema: Schema) -> StructuredAnswer:
        try:
            return read_answer(text, schema)
        except ValueError as error:
            message = f"{self.name} answered outside the JSON schema: {error}"
            raise ModelFault(message, kind="format", evidence=text) from error


def _is_model(thing: object) -> TypeGuard[Model]:
    has_methods = callable(getattr(thing, "complete", None)) and callable(getattr(thing, "close", None))
    return has_methods and isinstance(getattr(thing, "name", None), str)


def _name(thing: SupportsGenerate) -> str:
    """Return its own name, or that of its class."""
    ask = getattr(thing, "get_model_name", None)
    own_name: object = ask() if callable(ask) else None
    return own_name if isinstance(own_name, str) and own_name else type(thing).__name__
