"""`Tester`: the model that leads the conversation, what it sees of the test, and the steps that it writes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Literal, Self, cast

from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

from vivavoce.comparing.json_values import parse
from vivavoce.errors import ModelFault
from vivavoce.messages import AIMessage, AnyMessage, FunctionCall, HumanMessage, SystemMessage, ToolCall, ToolMessage
from vivavoce.metrics.prompts import Wording
from vivavoce.metrics.transcript import CHARACTERS_PER_TOKEN
from vivavoce.models.answers import read_answer
from vivavoce.models.model import Model, ModelReply, Request, known_identity
from vivavoce.models.modes import CAPABILITIES
from vivavoce.penelope.context import TestContext
from vivavoce.penelope.prompts import load_prompt
from vivavoce.penelope.tools.end_conversation import NAME as END
from vivavoce.penelope.tools.target_interaction import NAME as SEND
from vivavoce.penelope.tools.target_interaction import result_text
from vivavoce.penelope.tools.tool import Tool, ToolResult
from vivavoce.penelope.turn import Turn
from vivavoce.records.score import Usage, shorten
from vivavoce.records.trajectory import Step


class WrittenStep(BaseModel):
    """One step: exactly one of `message`, `leave` and `tool` is given; `step_shape` has the fields."""

    model_config = ConfigDict(extra="ignore")

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        ways = [name for name in ("message", "leave", "tool") if name in type(self).model_fields]
        if sum(bool(self._text(name)) for name in ways) != 1:
            raise ValueError(f"give exactly one of {', '.join(ways)}")
        return self

    @property
    def call(self) -> tuple[str, dict[str, Any], str]:
        """The call of a tool that means the same: its name, its arguments, and why."""
        fields, why = self.model_dump(exclude_none=True), self._text("reasoning")
        if self._text("message"):
            return SEND, {name: fields[name] for name in ("message", "files") if fields.get(name)}, why
        if self._text("leave"):
            return END, {"reason": fields["leave"]}, why
        return fields["tool"], fields.get("arguments", {}), why

    def _text(self, name: str) -> str:
        return (getattr(self, name, None) or "").strip()


@lru_cache(maxsize=256)
def step_shape(tools: tuple[str, ...], files: tuple[str, ...], reasoning: bool) -> type[WrittenStep]:
    """Return the shape of a step in a test with these tools, besides sending and leaving, and these files."""
    fields: dict[str, Any] = {"reasoning": (str, ...)} if reasoning else {}
    fields |= {"message": (str | None, None), "leave": (str | None, None)}
    if files:
        file: Any = Literal[files]
        fields["files"] = (list[file] | None, None)
    if tools:
        tool: Any = Literal[tools]
        fields |= {"tool": (tool | None, None), "arguments": (dict[str, Any] | None, None)}
    return create_model("Step", __base__=WrittenStep, **fields)


def write_step(step: Step) -> dict[str, Any]:
    """Return a step as a model writes it."""
    reasoning = {"reasoning": step.reasoning} if step.reasoning else {}
    arguments = step.tool_arguments
    if step.tool_name == SEND:
        return {**reasoning, **arguments}
    if step.tool_name == END:
        return {**reasoning, "leave": arguments.get("reason", "")}
    return {**reasoning, "tool": step.tool_name, "arguments": arguments}


CONDENSED_REPLY = 300
"""Characters of a reply that stay in view when its turn is condensed."""


@dataclass
class Memory:
    """The tester's view of a test, made so that each request begins with the one before it.

    A `native` model sees its calls and their results as such, any other sees its steps as JSON. When the view takes
    more than about `tokens`, the older half of the turns is condensed by rule: every message to the target stays,
    replies are cut, and the steps between are left out.
    """

    brief: SystemMessage
    tokens: int = 60_000
    native: bool = True
    condensed: int = 0
    """How many turns are condensed."""
    _turns: list[list[HumanMessage | Step]] = field(default_factory=list[list[HumanMessage | Step]])
    _messages: list[AnyMessage] = field(default_factory=list[AnyMessage])
    _size: int = 0

    def begin_turn(self, note: str) -> None:
        """Begin a turn with a note for the model."""
        self._turns.append([])
        self._add(HumanMessage(content=note))

    def note(self, text: str) -> None:
        """Add a note for the model."""
        self._add(HumanMessage(content=text))

    def add(self, step: Step) -> None:
        """Add a step that the model took, with its result."""
        self._add(step)

    @property
    def messages(self) -> list[AnyMessage]:
        """The request as messages."""
        if self._size > self.tokens * CHARACTERS_PER_TOKEN:
            self._condense()
        return [self.brief, *self._messages]

    def show_as_json(self, brief: SystemMessage) -> None:
        """Show steps as JSON from now on, after another brief, for a model that calls no tools.

        What it answered in prose before is left out, so that the request is the same where it was known all along that
        it calls none.
        """
        self.native = False
        self.brief = brief
        for entries in self._turns:
            entries[:] = [
                entry for entry in entries if isinstance(entry, HumanMessage) or entry.assistant_message.tool_calls
            ]
        self._rewrite()

    def _add(self, entry: HumanMessage | Step) -> None:
        self._turns[-1].append(entry)
        self._show(entry)

    def _show(self, entry: HumanMessage | Step) -> None:
        messages = [entry] if isinstance(entry, HumanMessage) else _native(entry) if self.native else _as_json(entry)
        self._messages += messages
        self._size += sum(map(_size, messages))

    def _condense(self) -> None:
        upto = max(self.condensed, (self.condensed + len(self._turns)) // 2)
        for entries in self._turns[self.condensed : upto]:
            entries[:] = [_condense(entry) for entry in entries if isinstance(entry, Turn)]
        self.condensed = upto
        self._rewrite()

    def _rewrite(self) -> None:
        self._messages, self._size = [], len(self.brief.text)
        for entries in self._turns:
            for entry in entries:
                self._show(entry)


def _native(step: Step) -> Sequence[AnyMessage]:
    if not step.assistant_message.tool_calls:
        return [step.assistant_message, HumanMessage(content=step.tool_message.text)]
    return [step.assistant_message, step.tool_message]


def _as_json(step: Step) -> Sequence[AnyMessage]:
    if not step.assistant_message.tool_calls:
        return _native(step)
    message = AIMessage(content=json.dumps(write_step(step), ensure_ascii=False))
    label = "The assistant answers" if isinstance(step, Turn) and step.answered else "Result"
    return [message, HumanMessage(content=f"{label}: {step.tool_message.text}")]


def _condense(turn: Turn) -> Turn:
    if not turn.answered:
        return turn
    short = result_text(ToolResult(success=True, output={"response": shorten(turn.reply, CONDENSED_REPLY)}))
    return turn.model_copy(update={"tool_message": turn.tool_message.model_copy(update={"content": short})})


def _size(message: AnyMessage) -> int:
    calls: Sequence[Any] = (message.tool_calls or ()) if isinstance(message, AIMessage) else ()
    argument_length = sum(len(call.function.arguments) for call in calls)
    return len(message.text) + argument_length + (16 if isinstance(message, ToolMessage) else 8)


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
    def retry_advice(self) -> str:
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
    values["persona"] = persona.model_copy(update={"language": ""}).describe().splitlines() if persona else []
    values["tools"] = [
        {"name": Wording(name), "words": Wording(tools[name].documentation), "arguments": dict(tools[name].parameters)}
        for name in _to_think(tools)
    ]
    return load_prompt("tester", *_BRIEF).render(values)


def brief_hash() -> str:
    """Return a hash of the template of these instructions."""
    return load_prompt("tester", *_BRIEF).hash


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
    fields = read_answer(text, {}).parsed
    call_fields = {_SPELLINGS.get(key, key): value for key, value in fields.items()}
    return _WrittenCall.model_validate(read_answer(json.dumps(call_fields), _WrittenCall).parsed)
