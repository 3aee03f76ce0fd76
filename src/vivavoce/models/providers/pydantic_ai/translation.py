"""Requests as objects of pydantic-ai, and its responses as ours."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.tools import ToolDefinition

from vivavoce.errors import ModelFault
from vivavoce.messages import (
    AIMessage,
    AnyMessage,
    ContentPart,
    FunctionCall,
    HumanMessage,
    ImagePart,
    RefusalPart,
    SystemMessage,
    ToolCall,
    ToolMessage,
)
from vivavoce.messages import (
    TextPart as Words,
)
from vivavoce.models.model import Request
from vivavoce.models.structured import allows_strict, wire_schema
from vivavoce.records.score import Usage, reported_usage

REPLY = "reply"
"""The tool whose arguments are the structured reply; underscores follow where that name is taken."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The content of a response: its text, the JSON from the tool for replies, and calls of other tools."""

    text: str
    json: str | None
    calls: Sequence[ToolCall]


def to_library(messages: Iterable[AnyMessage]) -> list[ModelMessage]:
    """Return messages as the library has them: requests, and responses.

    Raises:
        ModelFault: a part of a message cannot be sent (kind `unsupported`).
    """
    translated: list[ModelMessage] = []
    request_parts: list[ModelRequestPart] = []
    tools: dict[str | None, str] = {}
    for message in messages:
        if not isinstance(message, AIMessage):
            request_parts.append(_request_part(message, tools))
            continue
        tools |= {call.id: call.name for call in message.tool_calls or ()}
        if answered := _answered(message):
            if request_parts:
                translated.append(ModelRequest(parts=request_parts))
                request_parts = []
            translated.append(ModelResponse(parts=answered))
    return [*translated, ModelRequest(parts=request_parts)] if request_parts else translated


def parameters(request: Request, native: bool) -> ModelRequestParameters:
    """Return the form of the answer: text, native JSON, or the arguments of a tool."""
    tools = [_tool(tool["function"]) for tool in request.tools]
    if request.schema is None:
        return ModelRequestParameters(function_tools=tools)
    schema = dict(wire_schema(request.schema))
    strict = allows_strict(schema) or None
    if native:
        output = OutputObjectDefinition(json_schema=schema, name=schema.get("title"), strict=strict)
        return ModelRequestParameters(function_tools=tools, output_mode="native", output_object=output)
    reply = ToolDefinition(
        name=_free_name(tool.name for tool in tools),
        parameters_json_schema=schema,
        description="Give the reply.",
        kind="output",
    )
    return ModelRequestParameters(
        function_tools=tools, output_mode="tool", output_tools=[reply], allow_text_output=False
    )


def from_library(response: ModelResponse, request_parameters: ModelRequestParameters) -> Answer:
    """Return the content of a response, without thoughts."""
    replies = {tool.name for tool in request_parameters.output_tools}
    calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
    reply_json = next((_arguments(call) for call in calls if call.tool_name in replies), None)
    others = [
        ToolCall(id=call.tool_call_id, function=FunctionCall(name=call.tool_name, arguments=_arguments(call)))
        for call in calls
        if call.tool_name not in replies
    ]
    return Answer(response.text or "", reply_json, others)


def usage_of_response(response: ModelResponse) -> Usage | None:
    """Return the tokens of a response, None where the provider does not report them, or not as numbers of tokens."""
    usage = response.usage
    if not usage.has_values():
        return None
    return reported_usage(
        usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.output_reasoning_tokens
    )


def _request_part(
    message: SystemMessage | HumanMessage | ToolMessage, tools: Mapping[str | None, str]
) -> ModelRequestPart:
    if isinstance(message, SystemMessage):
        return SystemPromptPart(message.text)
    if isinstance(message, ToolMessage):
        name = tools.get(message.tool_call_id) or message.name or "tool"
        return ToolReturnPart(tool_name=name, content=message.text, tool_call_id=message.tool_call_id or "")
    if isinstance(message.content, list):
        return UserPromptPart([_content(part) for part in message.content])
    return UserPromptPart(message.content or "")


def _answered(message: AIMessage) -> list[ModelResponsePart]:
    text = message.text or message.refusal
    calls = [
        ToolCallPart(tool_name=call.name, args=call.function.arguments, tool_call_id=call.id or "")
        for call in message.tool_calls or ()
    ]
    return [TextPart(text), *calls] if text else [*calls]


def _content(part: ContentPart) -> UserContent:
    if isinstance(part, Words):
        return part.text
    if isinstance(part, RefusalPart):
        return part.refusal
    if isinstance(part, ImagePart) and part.image_url.url.startswith("data:"):
        return BinaryContent.from_data_uri(part.image_url.url)
    # an address is not passed on: the library would fetch some, and a conversation must not cause requests elsewhere
    raise ModelFault(f"a message has a part of type {part.type} that cannot be sent", kind="unsupported")


def _tool(function: Mapping[str, Any]) -> ToolDefinition:
    return ToolDefinition(
        name=function["name"],
        parameters_json_schema=dict(function.get("parameters") or {"type": "object", "properties": {}}),
        description=function.get("description"),
        strict=function.get("strict"),
    )


def _free_name(names_used: Iterable[str]) -> str:
    names, name = set(names_used), REPLY
    while name in names:
        name += "_"
    return name


def _arguments(call: ToolCallPart) -> str:
    return call.args if isinstance(call.args, str) else json.dumps(call.args or {})
