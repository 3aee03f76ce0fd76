"""`FunctionTool`: a Python function that answers the calls of a tool, and its definition for the model."""

from __future__ import annotations

import asyncio
import inspect
import json
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NotRequired, Required, cast, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError, to_json
from typing_extensions import TypedDict

from vivavoce.errors import Fault, SuiteFault, ToolError, UsageError
from vivavoce.pacing.loops import call
from vivavoce.records.score import EVIDENCE_LIMIT
from vivavoce.tools.answer import Answer, Asked, failure, written

FILLED = ("state", "messages", "conversation_id")
"""Parameters that the model is not asked for: the world, the conversation so far, and its id."""


class FunctionTool:
    """A function, sync or async, that is called with the arguments of a call by keyword.

    Parameters called `state` (what the row says about the world, to be changed in place), `messages` (the conversation
    so far, as wire dicts) and `conversation_id` are filled, unless `definition` has an argument of that name. The
    model's arguments are read by the annotations; what does not fit them is for the model to correct. The function
    returns a text or anything that JSON can hold, or raises `ToolError` for the model to read. It may take `timeout`
    seconds.

    Raises:
        UsageError: the parameters of the function cannot be called by name, or its annotations cannot be read.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        definition: Mapping[str, Any] | None = None,
        timeout: float | None = 300.0,
    ) -> None:
        if not callable(function):
            raise UsageError(f"a handler is a function, got a {type(function).__name__}")
        self.name, self.function, self.timeout = name, function, timeout
        own = properties(definition)
        parameters = _parameters(name, function)
        self._filled = [
            parameter.name for parameter in parameters if parameter.name in FILLED and parameter.name not in own
        ]
        asked = [parameter for parameter in parameters if parameter.name not in self._filled]
        self._arguments = _arguments(name, function, asked)
        self.definition = dict(definition) if definition is not None else self._definition()

    @property
    def has_state(self) -> bool:
        """Whether it gets the state of the row, which it may change."""
        return "state" in self._filled

    async def answer(self, asked: Asked) -> Answer:
        """Call the function.

        Raises:
            SuiteFault: it raised, took too long, or returned or left in the state what JSON cannot hold.
        """
        try:
            arguments = self._arguments.validate_python(dict(asked.arguments))
        except ValidationError as error:
            return failure(f"the arguments do not fit: {_mismatches(error)}", "function")
        values: dict[str, Any] = {"state": asked.world.state, "conversation_id": asked.opening.conversation_id}
        if "messages" in self._filled:
            values["messages"] = [message.to_wire() for message in asked.history]
        try:
            returned = await self._called({**arguments, **{name: values[name] for name in self._filled}})
        except ToolError as error:
            return failure(str(error), "function")
        if self.has_state:
            self._check_state(asked.world.state)
        return Answer(self._written(returned), "function")

    async def _called(self, arguments: Mapping[str, Any]) -> Any:
        scope = asyncio.timeout(self.timeout)
        try:
            async with scope:
                return await call(self.function, **arguments)
        except (ToolError, Fault):
            raise
        except Exception as error:
            if scope.expired():
                message = f"the handler of '{self.name}' did not answer within {self.timeout:g} s"
                raise SuiteFault(message, kind="timeout") from error
            message = f"the handler of '{self.name}' raised {type(error).__name__}: {error}".removesuffix(": ")
            evidence = "".join(traceback.format_exception(error))[-EVIDENCE_LIMIT:]
            raise SuiteFault(message + self._place(error), kind="crash", evidence=evidence) from error

    def _place(self, error: BaseException) -> str:
        """Return in words where in the file of the function it was, empty where it was not there."""
        file = getattr(getattr(inspect.unwrap(self.function), "__code__", None), "co_filename", None)
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
        return f", at {Path(str(file)).name}:{lines[-1]}" if lines else ""

    def _written(self, returned: Any) -> str:
        try:
            plain = returned if isinstance(returned, str) else json.loads(to_json(returned))
            json.dumps(plain, allow_nan=False)
            return written(plain)
        except (PydanticSerializationError, ValueError) as error:
            message = f"the handler of '{self.name}' returned a {type(returned).__name__}, which JSON cannot hold"
            raise SuiteFault(message, kind="format", evidence=str(error)) from error

    def _check_state(self, state: object) -> None:
        try:
            json.dumps(state, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            message = f"the handler of '{self.name}' left in the state what JSON cannot hold: {error}"
            raise SuiteFault(message, kind="format") from error

    def _definition(self) -> dict[str, Any]:
        schema = self._arguments.json_schema(schema_generator=_Untitled)
        schema.pop("title", None)
        described = (inspect.getdoc(self.function) or "").split("\n\n")[0]
        about = {"description": " ".join(described.split())} if described else {}
        return {"type": "function", "function": {"name": self.name, **about, "parameters": schema}}


class _Untitled(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:
        """Return False: a title only repeats the name of the argument."""
        return False


def properties(definition: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return the arguments of a definition by name."""
    found: Any = definition or {}
    for step in ("function", "parameters", "properties"):
        found = cast("Mapping[str, Any]", found).get(step) or {}
    return found


def _parameters(name: str, function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError as error:
        raise UsageError(f"the parameters of the handler of '{name}' cannot be read; wrap it in a function") from error
    for parameter in parameters:
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            raise UsageError(f"the handler of '{name}' is called by keyword, and '{parameter.name}' cannot be")
    return parameters


def _arguments(
    name: str, function: Callable[..., Any], parameters: list[inspect.Parameter]
) -> TypeAdapter[dict[str, Any]]:
    """Return what reads the arguments of a call by the annotations of the function."""
    try:
        annotated = function if inspect.isroutine(function) else type(function).__call__
        hints = get_type_hints(annotated, include_extras=True)
        named = [parameter for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD]
        fields: dict[str, Any] = {one.name: _field(one, hints.get(one.name, Any)) for one in named}
        shape = cast("Any", TypedDict)("Arguments", fields)
        extra = "allow" if len(named) < len(parameters) else "forbid"
        shape.__pydantic_config__ = ConfigDict(extra=extra, arbitrary_types_allowed=False)
        return TypeAdapter(shape)
    except Exception as error:
        raise UsageError(f"the annotations of the handler of '{name}' cannot be read: {error}") from error


def _field(parameter: inspect.Parameter, annotation: Any) -> Any:
    return Required[annotation] if parameter.default is parameter.empty else NotRequired[annotation]


def _mismatches(error: ValidationError) -> str:
    found = error.errors(include_url=False)
    return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in found)
