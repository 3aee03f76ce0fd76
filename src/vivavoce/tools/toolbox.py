"""`Toolbox`: the tools of a target, and who answers the calls of each in a conversation, such as a Python function."""

from __future__ import annotations

import asyncio
import copy
import inspect
import json
import time
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NotRequired, Protocol, Required, cast, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError, to_json
from typing_extensions import TypedDict

from vivavoce.errors import Fault, SuiteFault, ToolError, UsageError, did_you_mean
from vivavoce.messages import AnyMessage, ToolCall, ToolMessage
from vivavoce.metrics.exact.arguments import show
from vivavoce.pacing.loops import call
from vivavoce.records.score import EVIDENCE_LIMIT, shorten
from vivavoce.targets.target import MadeCall, Opening, World, unanswered
from vivavoce.tools.answer import (
    REFUSED,
    Answer,
    Approvals,
    Canned,
    Handler,
    ToolRequest,
    failure,
    next_decision,
    read_approvals,
    read_cases,
    result_text,
)

if TYPE_CHECKING:
    from vivavoce.tools.recordings import Replay


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
            raise UsageError(f"a handler is a {type(function).__name__}, not a function")
        self.name, self.function, self.timeout = name, function, timeout
        own = properties(definition)
        parameters = _parameters(name, function)
        self._filled = [
            parameter.name for parameter in parameters if parameter.name in FILLED and parameter.name not in own
        ]
        call_parameters = [parameter for parameter in parameters if parameter.name not in self._filled]
        self._arguments = _arguments(name, function, call_parameters)
        self.definition = dict(definition) if definition is not None else self._definition()

    @property
    def has_state(self) -> bool:
        """Whether it gets the state of the row, which it may change."""
        return "state" in self._filled

    async def answer(self, request: ToolRequest) -> Answer:
        """Call the function.

        Raises:
            SuiteFault: it raised, took too long, or returned or left in the state what JSON cannot hold.
        """
        try:
            arguments = self._arguments.validate_python(dict(request.arguments))
        except ValidationError as error:
            return failure(f"the arguments do not fit: {_mismatches(error)}", "function")
        values: dict[str, Any] = {"state": request.world.state, "conversation_id": request.opening.conversation_id}
        if "messages" in self._filled:
            values["messages"] = [message.to_wire() for message in request.history]
        try:
            returned = await self._call_function({**arguments, **{name: values[name] for name in self._filled}})
        except ToolError as error:
            return failure(str(error), "function")
        if self.has_state:
            self._check_state(request.world.state)
        return Answer(self._result_text(returned), "function")

    async def _call_function(self, arguments: Mapping[str, Any]) -> Any:
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

    def _result_text(self, returned: Any) -> str:
        try:
            plain = returned if isinstance(returned, str) else json.loads(to_json(returned))
            json.dumps(plain, allow_nan=False)
            return result_text(plain)
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
    schema: Any = definition or {}
    for step in ("function", "parameters", "properties"):
        schema = cast("Mapping[str, Any]", schema).get(step) or {}
    return schema


def _parameters(name: str, function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError as error:
        raise UsageError(f"the parameters of the handler of '{name}' cannot be read; wrap it in a function") from error
    for parameter in parameters:
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            raise UsageError(
                f"the handler of '{name}' is called with keyword arguments, but '{parameter.name}' is positional"
            )
    return parameters


def _arguments(
    name: str, function: Callable[..., Any], parameters: list[inspect.Parameter]
) -> TypeAdapter[dict[str, Any]]:
    """Return what reads the arguments of a call by the annotations of the function."""
    try:
        annotated = function if inspect.isroutine(function) else type(function).__call__
        hints = get_type_hints(annotated, include_extras=True)
        fixed_parameters = [parameter for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD]
        fields: dict[str, Any] = {
            parameter.name: _field(parameter, hints.get(parameter.name, Any)) for parameter in fixed_parameters
        }
        shape = cast("Any", TypedDict)("Arguments", fields)
        extra = "allow" if len(fixed_parameters) < len(parameters) else "forbid"
        shape.__pydantic_config__ = ConfigDict(extra=extra, arbitrary_types_allowed=False)
        return TypeAdapter(shape)
    except Exception as error:
        raise UsageError(f"the annotations of the handler of '{name}' cannot be read: {error}") from error


def _field(parameter: inspect.Parameter, annotation: Any) -> Any:
    return Required[annotation] if parameter.default is parameter.empty else NotRequired[annotation]


def _mismatches(error: ValidationError) -> str:
    details = error.errors(include_url=False)
    return "; ".join(f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}" for detail in details)


class ServerSession(Protocol):
    """A server in one conversation."""

    @property
    def definitions(self) -> Sequence[Mapping[str, Any]]:
        """The definitions of its tools."""
        ...

    async def answer(self, request: ToolRequest) -> Answer | None:
        """Answer a call, None where the server has no such tool.

        Raises:
            SuiteFault: the server failed.
        """
        ...

    async def close(self) -> None:
        """End the session."""
        ...


class Server(Protocol):
    """A server of tools."""

    async def open(self) -> ServerSession:
        """Begin a session.

        Raises:
            SuiteFault: the server cannot be reached.
        """
        ...


Definition = Mapping[str, Any]
GivenHandler = Handler | Callable[..., Any] | Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""Who answers a tool: a function, `{"result": …}` or `{"error": …}`, a list of cases of these, or another handler."""


class Toolbox:
    """The tools of a target's model: their `definitions`, and `handlers` that answer their calls.

    A function needs no definition: it is made of its name, signature and docstring. A `server` offers the tools of an
    MCP server and answers them. The first of these that has an answer to a call gives it: the row, the handler of that
    name, the server. Tools in `needs_approval` are called when the user approves, and `approvals` says what the user
    answers where the row does not. Calls are answered at most `max_steps` times per turn. A `replay` answers what
    the row does not, instead of handlers and server, except tools named as live.

    Raises:
        UsageError: a handler is for a tool not offered, or is invalid.
    """

    def __init__(
        self,
        definitions: Sequence[Definition] = (),
        handlers: Mapping[str, GivenHandler] | None = None,
        *,
        server: Server | None = None,
        max_steps: int = 10,
        needs_approval: Sequence[str] = (),
        approvals: object = None,
        replay: Replay | None = None,
    ) -> None:
        own = by_name(definitions)
        self.handlers = {name: _handler(name, handler, own.get(name)) for name, handler in (handlers or {}).items()}
        own_definitions = [
            handler.definition for handler in self.handlers.values() if isinstance(handler, FunctionTool)
        ]
        self.definitions = _join(definitions, own_definitions)
        self.server, self.max_steps, self.replay = server, max_steps, replay
        self.needs_approval = tuple(needs_approval)
        self.approvals: Approvals | None = None
        if approvals is not None:
            self.approvals = read_approvals(approvals, self.needs_approval)
        if max_steps < 1:
            raise UsageError(f"max_steps: must be at least 1, got {max_steps}")
        if server is None:
            self._check(by_name(self.definitions))

    @property
    def stateful(self) -> frozenset[str]:
        """The names of the tools whose functions get the state of the row, which they may change."""
        return frozenset(
            n for n, handler in self.handlers.items() if isinstance(handler, FunctionTool) and handler.has_state
        )

    def _check(self, offered: Mapping[str, Definition]) -> None:
        check_offered(self.handlers, offered, "handlers")
        check_offered(self.needs_approval, offered, "needs_approval")
        _check_arguments({n: handler for n, handler in self.handlers.items() if isinstance(handler, Canned)}, offered)

    async def open(self, opening: Opening) -> ToolboxSession:
        """Begin a conversation.

        Raises:
            SuiteFault: the server cannot be reached, or a tool is named that is not offered.
        """
        try:
            cases = _row_cases(opening.tool_results)
            own = opening.approvals
            approvals = self.approvals if own is None else read_approvals(own, self.needs_approval)
        except UsageError as error:
            raise SuiteFault(str(error), kind="row") from error
        server = None if self.server is None else await self.server.open()
        definitions = self.definitions if server is None else _join(self.definitions, server.definitions)
        session = ToolboxSession(self, opening, definitions, cases, approvals, server)
        try:
            self._check(session.tools)
            check_offered(cases, session.tools, "tool_results")
            _check_arguments(cases, session.tools)
        except UsageError as error:
            await session.close()
            raise SuiteFault(str(error), kind="row") from error
        return session


@dataclass(slots=True)
class ToolboxSession:
    """The tools in one conversation; `cases` are the answers of the row."""

    toolbox: Toolbox
    opening: Opening
    offered: Sequence[Definition]
    cases: Mapping[str, Canned]
    approvals: Approvals | None
    server: ServerSession | None = None
    tools: Mapping[str, Definition] = field(init=False)

    def __post_init__(self) -> None:
        self.tools = by_name(self.offered)

    @property
    def max_steps(self) -> int:
        """How many times in one turn calls are answered; 0 where nobody answers, so that a call ends the turn."""
        box = self.toolbox
        answering = box.handlers or self.cases or box.server is not None or box.needs_approval
        recorded = box.replay is not None and len(box.replay.recordings)
        return box.max_steps if answering or recorded else 0

    async def answer(self, call: ToolCall, history: Sequence[AnyMessage], world: World) -> ToolMessage:
        """Answer a call, once the user approved of it where it asks.

        Raises:
            SuiteFault: nobody answers it, or who should failed.
        """
        start_time = time.perf_counter()
        approval: str | None = None
        answer = self._mistake(call)
        if answer is None and call.name in self.toolbox.needs_approval:
            approval = next_decision(self.approvals, call.name, world)
            answer = failure(REFUSED, "user") if approval == "refuse" else None
        if answer is None:
            answer = await self._make_call(ToolRequest(call.name, call.args, history, world, self.opening))
        return answer.message(call, time.perf_counter() - start_time, approval)

    def state(self, world: World) -> dict[str, Any] | None:
        """Return the state of the row as the tools left it, None where that is not known."""
        box = self.toolbox
        return world.state if box.replay is None else box.replay.state(self.opening, world, box.stateful)

    async def close(self) -> None:
        """End the session of the server."""
        if self.server is not None:
            await self.server.close()

    def _mistake(self, call: ToolCall) -> Answer | None:
        """Return what the model is told of a call that cannot be made, None where it can."""
        if call.name not in self.tools:
            known = ", ".join(self.tools)
            return failure(f"there is no tool '{shorten(call.name, 60)}'; the tools are: {known}", "vivavoce")
        try:
            _ = call.args
        except (ValueError, RecursionError) as error:
            return failure(f"the arguments are not a JSON object: {error}", "vivavoce")
        return None

    async def _make_call(self, request: ToolRequest) -> Answer:
        """Return the answer to a call that is made, and note in the world what it was."""
        world = request.world
        before = copy.deepcopy(world.state) if self.opening.state is not None else None
        answer = await self._find_answer(request)
        if before is not None and answer.source == "function" and request.name in self.toolbox.stateful:
            answer = replace(answer, changed_state=before != world.state)
        world.made.append(MadeCall(request.name, request.arguments, answer.source, answer.changed_state))
        return answer

    async def _find_answer(self, request: ToolRequest) -> Answer:
        own = self.cases.get(request.name)
        chain = [own, self._answering(request.name)]
        for handler in chain:
            answer = None if handler is None else await handler.answer(request)
            if answer is not None:
                if own is None or handler is own:
                    return answer
                return replace(answer, passed_over="; ".join(_misfits(request, own)))
        canned = [handler for handler in chain if isinstance(handler, Canned)]
        raise _no_case(request, canned[-1]) if canned else unanswered(request.name)

    def _answering(self, name: str) -> Handler | ServerSession | None:
        """Return who answers a tool where the row does not."""
        box = self.toolbox
        recorded = None if box.replay is None else box.replay.handler(name)
        return recorded or box.handlers.get(name) or self.server


def _no_case(request: ToolRequest, canned: Canned) -> SuiteFault:
    """Return the failure of a call that fits none of the cases of its tool."""
    message = (
        f"no case of {canned.key} fits {request.name}({show(request.arguments)}); "
        "add a case for it, or at the end one without when"
    )
    return SuiteFault(message, kind="unanswered", evidence="\n".join(_misfits(request, canned)))


def _misfits(request: ToolRequest, canned: Canned) -> list[str]:
    """Return why each case of a tool does not fit a call."""
    return [
        f"case {number}: {'; '.join(case.complaints(request)) or 'used up'}"
        for number, case in enumerate(canned.cases, 1)
    ]


def by_name(definitions: Sequence[Definition]) -> dict[str, Definition]:
    """Return the definitions of tools by name, without those that have none, which no call can name."""
    definitions_by_name: dict[str, Definition] = {}
    for definition in definitions:
        function: Any = definition.get("function")
        if isinstance(function, Mapping) and "name" in function:
            definitions_by_name[str(cast("Definition", function)["name"])] = definition
    return definitions_by_name


def check_row(
    tool_results: Mapping[str, Any],
    approvals: object,
    offered: Collection[str] | None,
    asking: Sequence[str],
    definitions: Sequence[Definition] = (),
) -> None:
    """Check what a row says about its tools; `offered` are their names, None where they are not known yet.

    Raises:
        UsageError: a result is malformed, or for a tool or an argument that is not offered; the text begins with its
            path.
    """
    _check_arguments(_row_cases(tool_results), by_name(definitions))
    if offered is not None:
        check_offered(tool_results, offered, "tool_results")
    if approvals is not None:
        read_approvals(approvals, asking)


def _check_arguments(canned: Mapping[str, Canned], tools: Mapping[str, Definition]) -> None:
    """Check that cases are for arguments that their tools have, as far as their definitions say that.

    Raises:
        UsageError: one is not; the text begins with the place of the cases.
    """
    for name, handler in canned.items():
        known = properties(tools.get(name))
        for argument in (argument for case in handler.cases for argument in case.when if known):
            if argument not in known:
                hint = did_you_mean(argument, known)
                raise UsageError(f"{handler.key}: when: the tool has no argument '{argument}'{hint}")


def check_offered(names: Iterable[str], offered: Collection[str], what: str) -> None:
    """Check that tools are offered.

    Raises:
        UsageError: one is not; the text begins with `what`.
    """
    for name in names:
        if name not in offered:
            hint = did_you_mean(name, offered) or "; add its definition to tools"
            raise UsageError(f"{what}.{name}: no such tool is offered{hint}")


def _handler(name: str, handler: GivenHandler, definition: Definition | None) -> Handler:
    if isinstance(handler, Mapping | list | tuple):
        where = f"handlers.{name}"
        return Canned(read_cases(cast("object", handler), where), where)
    if hasattr(handler, "answer"):
        return cast("Handler", handler)
    return FunctionTool(name, cast("Callable[..., Any]", handler), definition)


def _row_cases(tool_results: Mapping[str, Any]) -> dict[str, Canned]:
    places = {name: f"tool_results.{name}" for name in tool_results}
    return {name: Canned(read_cases(form, places[name]), places[name]) for name, form in tool_results.items()}


def _join(definitions: Sequence[Definition], more: Sequence[Definition]) -> list[Definition]:
    known = by_name(definitions)
    return [*definitions, *(definition for name, definition in by_name(more).items() if name not in known)]
