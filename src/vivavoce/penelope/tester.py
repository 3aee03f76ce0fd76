"""`Tester`: the model that leads the conversation, asked for one step after the other."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field

from vivavoce.comparing.json_values import parse
from vivavoce.errors import ModelFault
from vivavoce.messages import AIMessage, FunctionCall, SystemMessage, ToolCall
from vivavoce.metrics.prompts import Wording
from vivavoce.models.answers import read_answer
from vivavoce.models.model import Model, ModelReply, Request, known_identity
from vivavoce.models.modes import CAPABILITIES
from vivavoce.penelope.context import TestContext
from vivavoce.penelope.memory import Memory
from vivavoce.penelope.prompts import packaged
from vivavoce.penelope.tools.end_conversation import NAME as END
from vivavoce.penelope.tools.target_interaction import NAME as SEND
from vivavoce.penelope.tools.tool import Tool
from vivavoce.penelope.written_step import WrittenStep, step_shape
from vivavoce.records.score import Usage

REASONING = "reasoning"
"""The argument for the model's reason, which is not passed to the tool."""

PROSE_LIMIT = 2
"""After this many answers in a row without a call, a model is asked for JSON in place of tool calls."""

_SPELLINGS = {"name": "tool", "parameters": "arguments"}
"""Parts of a call as some models have learnt to write them, with our names."""

_WORDS = re.compile(r"\W+", re.ASCII)
"""Characters that providers refuse in the name of a tool."""

_OF_CONTEXT = ("goal", "instructions", "scenario", "restrictions", "facts", "context", "max_turns", "min_turns")
_BRIEF = (*_OF_CONTEXT, "persona", "language", "files", "reasoning", "native", "send", "leave", "tools")
"""The variables of the instructions, and those that are fields of a test's context."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call that the model asks for; `arguments` is None where they are not a JSON object."""

    message: AIMessage
    name: str
    arguments: dict[str, Any] | None
    reasoning: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model answered: calls, in order, or only words."""

    calls: Sequence[Call]
    text: str = ""
    usage: Usage | None = None


class _WrittenCall(BaseModel):
    """A call of a tool that is written down."""

    model_config = ConfigDict(extra="ignore")

    reasoning: str = ""
    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict[str, Any])

    @property
    def call(self) -> tuple[str, dict[str, Any], str]:
        """The name of the tool, its arguments, and why."""
        return self.tool, self.arguments, self.reasoning


@dataclass
class Tester:
    """A model with its tools and what it remembers; `settings` such as a temperature go with each request.

    A model that calls tools is offered all of them each time, any other answers a schema. Which kind it is shows when
    it says that tools are unsupported, or answers in prose and JSON helps; later tests in this process know it.
    """

    __test__ = False

    model: Model
    context: TestContext
    tools: Mapping[str, Tool]
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    transparent: bool = True
    tokens: int = 60_000
    _prose: int = 0
    _calls: int = 0

    @cached_property
    def memory(self) -> Memory:
        """What the model sees of the test."""
        return Memory(self._brief(native=True), self.tokens)

    async def next(self) -> Answer:
        """Ask for the next step.

        Raises:
            ModelFault: the model failed.
            BudgetExhausted: a limit on calls or cost is reached.
        """
        identity = known_identity(self.model)
        if self.memory.native and (self._prose >= PROSE_LIMIT or CAPABILITIES.lacks_tools(identity)):
            self._ask_for_json()
        try:
            reply = await self.model.complete(self._request())
        except ModelFault as fault:
            if fault.kind != "unsupported" or not self.memory.native:
                raise
            self._ask_for_json()
            reply = await self.model.complete(self._request())
            CAPABILITIES.note_no_tools(identity)  # only now is it sure that the tools were the trouble
        calls = self._calls_in(reply)
        if calls and not (self.memory.native or reply.tool_calls) and self._calls == len(calls):
            CAPABILITIES.note_no_tools(identity)  # it answered in prose until it was asked for JSON
        self._prose = 0 if calls else self._prose + 1
        return Answer(calls, "" if calls else reply.text, reply.usage)

    @property
    def wanted(self) -> str:
        """What is wrong with an answer that is only words, and what to answer instead."""
        if self.memory.native:
            return "no tool was called, so nothing was sent; call exactly one of the tools"
        return 'nothing was sent; answer with one JSON object that has "message" or "leave"'

    def _ask_for_json(self) -> None:
        self.memory.show_as_json(self._brief(native=False))

    def _brief(self, *, native: bool) -> SystemMessage:
        return SystemMessage(content=brief(self.context, self.tools, self.transparent, native=native))

    def _request(self) -> Request:
        memory = self.memory
        tools, schema = (self._wire, None) if memory.native else ((), self._shape)
        return Request(memory.messages, schema, tools, self.settings, self.context.trial)

    @cached_property
    def _wire(self) -> list[dict[str, Any]]:
        return [_wire(tool, self.transparent) for tool in self.tools.values()]

    @cached_property
    def _shape(self) -> type[WrittenStep]:
        return step_shape(tuple(_to_think(self.tools)), tuple(sorted(self.context.files)), self.transparent)

    def _calls_in(self, reply: ModelReply) -> Sequence[Call]:
        if reply.tool_calls:
            return [self._call(call, reply.text if i == 0 else "") for i, call in enumerate(reply.tool_calls)]
        try:
            step = self._written_step(reply)
            name, arguments, why = step.call
            return [self._call(ToolCall(name=name, args={**arguments, **({REASONING: why} if why else {})}), "")]
        except ValueError:
            return []

    def _written_step(self, reply: ModelReply) -> WrittenStep | _WrittenCall:
        """Return the step that a model wrote down, also where it was offered tools and wrote its step as one object.

        Raises:
            ValueError: there is none.
        """
        if not self.memory.native:
            return self._shape.model_validate(reply.parsed)
        fields = _whole_object(reply.text)
        reasoning = {REASONING} if self.transparent else set[str]()
        if fields is not None and set(fields) in ({*reasoning, "message"}, {*reasoning, "leave"}):
            return self._shape.model_validate(fields)
        return _written_call(reply.text)

    def _call(self, call: ToolCall, text: str) -> Call:
        self._calls += 1
        name = call.name if call.name in self.tools else _WORDS.sub("_", call.name)[:64] or "unknown"
        function = FunctionCall(name=name, arguments=call.function.arguments)
        message = AIMessage(content=text or None, tool_calls=[ToolCall(id=f"call_{self._calls}", function=function)])
        try:
            arguments = call.args
        except (ValueError, RecursionError):
            return Call(message, call.name, None, text)
        tool = self.tools.get(call.name)
        keeps = tool is not None and REASONING in tool.parameters.get("properties", {})
        reasoning = "" if keeps else str(arguments.pop(REASONING, "") or "")
        return Call(message, call.name, arguments, reasoning or text)


def brief(context: TestContext, tools: Mapping[str, Tool], transparent: bool, *, native: bool = True) -> str:
    """Return the instructions for the model, given before the conversation begins.

    A `native` model reads of its tools where they are offered, any other reads of them here.
    """
    values: dict[str, Any] = {name: getattr(context, name) for name in _OF_CONTEXT}
    values |= {"files": list(context.files), "reasoning": transparent, "native": native}
    values |= {"send": Wording(SEND), "leave": Wording(END)}
    persona = context.persona
    values["language"] = " ".join(persona.language.split()) if persona else ""
    values["persona"] = persona.model_copy(update={"language": ""}).spoken().splitlines() if persona else []
    values["tools"] = [
        {"name": Wording(name), "words": Wording(tools[name].documentation), "arguments": dict(tools[name].parameters)}
        for name in _to_think(tools)
    ]
    return packaged("tester", *_BRIEF).render(values)


def brief_hash() -> str:
    """Return a hash of the template of these instructions."""
    return packaged("tester", *_BRIEF).hash


def _wire(tool: Tool, transparent: bool) -> dict[str, Any]:
    schema = dict(tool.parameters)
    properties: dict[str, Any] = schema.get("properties", {})
    if transparent and REASONING not in properties:
        schema["properties"] = {REASONING: {"type": "string"}, **properties}
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.documentation, "parameters": schema},
    }


def _to_think(tools: Mapping[str, Tool]) -> list[str]:
    """Return the names of the tools besides those that send and leave."""
    return [name for name in tools if name not in (SEND, END)]


def _whole_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object that a text is, None where it is anything else or has words around it."""
    try:
        value: object = parse(text)
    except ValueError:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _written_call(text: str) -> _WrittenCall:
    """Return the call in a text, for a model that writes it down instead of making it.

    Raises:
        ValueError: there is none, or more than one.
    """
    found = read_answer(text, {}).parsed
    named = {_SPELLINGS.get(key, key): value for key, value in found.items()}
    return _WrittenCall.model_validate(read_answer(json.dumps(named), _WrittenCall).parsed)
