"""A sample as a row that Ragas reads: messages by their `type`, tool calls with `name` and `args`.

Ragas knows messages of a person, of the assistant and of tools, each a text, and passes over keys that it does not
know. Ours stand beside its own, so that reading such a row here returns them; what was null in the content of a message
comes back as the empty text.
"""

from __future__ import annotations

from typing import Any

from vivavoce.messages import AIMessage, AnyMessage, TextPart, ToolCall
from vivavoce.samples.evaluation import MultiTurnSample
from vivavoce.samples.evaluation_row import EvaluationSample, filled_row

_TYPES = {"user": "human", "assistant": "ai", "tool": "tool"}


def ragas_row(sample: EvaluationSample) -> dict[str, Any]:
    """Return a sample as plain JSON types that Ragas, from 0.2 on, reads as the same sample.

    Raises:
        ValueError: it holds something that Ragas has no place for.
    """
    row = filled_row(sample)
    if isinstance(sample, MultiTurnSample):
        row["user_input"] = [_message(message, index) for index, message in enumerate(sample.user_input)]
        if sample.reference_tool_calls is not None:
            row["reference_tool_calls"] = [_call(call) for call in sample.reference_tool_calls]
    return row


def _message(message: AnyMessage, index: int) -> dict[str, Any]:
    if message.role not in _TYPES:
        raise ValueError(f"message {index} ({message.role}): Ragas has no such message; leave it out for Ragas")
    content = message.content
    if isinstance(content, list) and not all(isinstance(part, TextPart) for part in content):
        raise ValueError(f"message {index} ({message.role}): Ragas has messages of text alone, and this one holds more")
    keys = message.to_dict()
    if "type" in keys:
        raise ValueError(
            f"message {index} ({message.role}): has a key 'type' of its own, which Ragas reads as the role"
        )
    del keys["role"]
    row = {**keys, "content": message.text, "type": _TYPES[message.role]}
    if isinstance(message, AIMessage) and message.tool_calls is not None:
        row["tool_calls"] = [_call(call) for call in message.tool_calls]
    return row


def _call(call: ToolCall) -> dict[str, Any]:
    keys = call.to_dict()
    del keys["type"], keys["function"]
    return {**keys, "name": call.name, "args": call.args}
