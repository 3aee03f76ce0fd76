"""`Tester`: the model that leads the conversation, asked for one step after the other."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from vivavoce.errors import ModelFault
from vivavoce.messages import AIMessage, FunctionCall, SystemMessage, ToolCall
from vivavoce.metrics.prompts import Wording
from vivavoce.models.answers import read_answer
from vivavoce.models.capabilities import CAPABILITIES
from vivavoce.models.model import Model, ModelReply, Request, known_identity
from vivavoce.penelope.context import TestContext
from vivavoce.penelope.memory import Memory
from vivavoce.penelope.prompts import packaged
from vivavoce.penelope.tools.tool import Tool
from vivavoce.records.usage import Usage

REASONING = "reasoning"
"""The argument for the model's reason, which is not passed to the tool."""

PROSE_LIMIT = 2
"""After this many answers in a row without a call, a model is asked for JSON in place of tool calls."""

_SPELLINGS = {"name": "tool", "parameters": "arguments"}
"""Parts of a call as some models have learnt to write them, with our names."""

_WORDS = re.compile(r"\W+", re.ASCII)
"""Characters that providers refuse in the name of a tool."""

_BRIEF = (
    "goal instructions scenario persona restrictions facts context files max_turns min_turns reasoning tools".split()  # noqa: SIM905
)


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


class _Step(BaseModel):
    """One step; subclasses know the tools."""

    model_config = ConfigDict(extra="ignore")

    reasoning: str = ""
    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict[str, Any])


@dataclass
class Tester:
    """A model with its tools and what it remembers; `settings` such as a temperature go with each request.

    A model that calls tools is offered them, any other answers a schema. Which kind it is shows when it says that tools
    are unsupported, which later tests know, or answers in prose, which holds for this test.
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
        return Memory(SystemMessage(content=brief(self.context, self.tools, self.transparent)), self.tokens)

    async def next(self, offered: Collection[str]) -> Answer:
        """Ask for the next step; only the tools offered may be called.

        Raises:
            ModelFault: the model failed.
            BudgetExhausted: a limit on calls or cost is reached.
        """
        identity = known_identity(self.model)
        if self.memory.native and CAPABILITIES.lacks_tools(identity):
            self.memory.show_as_json()
        try:
            reply = await self.model.complete(self._request(offered))
        except ModelFault as fault:
            if fault.kind != "unsupported" or not self.memory.native:
                raise
            self.memory.show_as_json()
            reply = await self.model.complete(self._request(offered))
            CAPABILITIES.note_no_tools(identity)  # only now is it sure that the tools were the trouble
        calls = list(self._calls_in(reply))
        self._prose = 0 if calls else self._prose + 1
        if self._prose >= PROSE_LIMIT and self.memory.native:
            self.memory.show_as_json()
        return Answer(calls, "" if calls else reply.text, reply.usage)

    def _request(self, offered: Collection[str]) -> Request:
        messages = self.memory.messages
        if not self.memory.native:
            shape = _shape(tuple(sorted(offered)))
            return Request(messages, schema=shape, settings=self.settings, trial=self.context.trial)
        wire = [self._wire[name] for name in self.tools if name in offered]
        return Request(messages, tools=wire, settings=self.settings, trial=self.context.trial)

    @cached_property
    def _wire(self) -> dict[str, dict[str, Any]]:
        return {name: _wire(tool, self.transparent) for name, tool in self.tools.items()}

    def _calls_in(self, reply: ModelReply) -> Sequence[Call]:
        if reply.tool_calls:
            return [self._call(call, reply.text if i == 0 else "") for i, call in enumerate(reply.tool_calls)]
        parsed = reply.parsed if reply.parsed is not None else _written_call(reply.text)
        if parsed is None:
            return []
        try:
            step = _Step.model_validate(parsed)
            arguments = {**step.arguments, REASONING: step.reasoning} if step.reasoning else step.arguments
            call_in_text = ToolCall(name=step.tool, args=arguments)
        except ValidationError:
            return []
        return [self._call(call_in_text, "")]

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


def brief(context: TestContext, tools: Mapping[str, Tool], transparent: bool) -> str:
    """Return the instructions for the model, given before the conversation begins."""
    persona = context.persona
    values = {name: getattr(context, name) for name in ("goal", "instructions", "scenario", "restrictions", "facts")}
    values |= {"context": context.context, "files": list(context.files), "reasoning": transparent}
    values |= {"max_turns": context.max_turns, "min_turns": context.min_turns}
    values["persona"] = persona.model_dump(exclude_defaults=True) if persona else None
    values["tools"] = [(Wording(name), Wording(tool.documentation)) for name, tool in tools.items()]
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
        "function": {"name": tool.name, "description": tool.description, "parameters": schema},
    }


@cache
def _shape(names: tuple[str, ...]) -> type[BaseModel]:
    choice: Any = Literal[names]
    return create_model("Step", __base__=_Step, tool=(choice, ...), reasoning=(str, ...))


def _written_call(text: str) -> dict[str, Any] | None:
    """Return the call in a text, for a model that writes it down instead of making it."""
    try:
        found = read_answer(text, {}).parsed
        named = {_SPELLINGS.get(key, key): value for key, value in found.items()}
        return read_answer(json.dumps(named), _Step).parsed
    except ValueError:
        return None
