"""`as_model`: makes a model of a name, or of any object that can `generate`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeGuard, cast, runtime_checkable

from pydantic import BaseModel

from vivavoce.errors import ModelFault, RateLimited, UsageError, VivavoceError
from vivavoce.models.answers import StructuredAnswer, read_answer
from vivavoce.models.model import Model, ModelReply, Request, Schema
from vivavoce.models.names import open_model
from vivavoce.pacing.waiting import call
from vivavoce.records.failure import shorten


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
        f"a model is a name such as openai:gpt-4.1-mini, a vivavoce model, or an object with "
        f"generate(prompt, schema=None); got {received}"
    )


class CustomModel:
    """A model around an object that can `generate`: the prompt is the text of all messages, a blank line between.

    It takes no settings (`applied` has None for each) and no tools. One without a name of its own is named after its
    class and `anonymous`: another object of that class may answer differently, so its answers are never kept.
    """

    def __init__(self, thing: SupportsGenerate) -> None:
        self.name = _name(thing)
        self.anonymous = self.name == type(thing).__name__
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
            return ModelReply(text, parsed=read.parsed, applied=read.noted(applied))
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
            raise limited.restated(str(limited), blame=ModelFault.blame) from limited.__cause__
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
