"""What a function written for letta-evals sees of a conversation: messages and state as a Letta server gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

from vivavoce.exchange.letta_messages import letta_turns
from vivavoce.messages import AnyMessage
from vivavoce.plugins import lazy

_CLASSES = {
    "assistant_message": "letta_client.types.agents:AssistantMessage",
    "reasoning_message": "letta_client.types.agents:ReasoningMessage",
    "system_message": "letta_client.types.agents:SystemMessage",
    "tool_call_message": "letta_client.types.agents:ToolCallMessage",
    "tool_return_message": "letta_client.types:ToolReturnMessage",
    "user_message": "letta_client.types.agents:UserMessage",
}


def letta_messages(turns: Sequence[Sequence[AnyMessage]]) -> list[list[Any]]:
    """Return the messages of each turn: objects of the client's classes, or of the same shape if it is missing."""
    return [
        [_message(row) for row in turn] for turn in letta_turns([[one.to_dict() for one in turn] for turn in turns])
    ]


def letta_state(state: Mapping[str, Any] | None) -> Any:
    """Return the memory blocks of an agent as its state has them, None if there are none to see."""
    if state is None:
        return None
    blocks = [SimpleNamespace(label=label, value=value) for label, value in state.items()]
    return SimpleNamespace(blocks=blocks, memory=SimpleNamespace(blocks=blocks))


def _message(row: dict[str, Any]) -> Any:
    try:
        kind = lazy(_CLASSES[row["message_type"]])
    except ImportError:
        return _object(row)
    return kind.construct(**row)


def _object(value: Any) -> Any:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return SimpleNamespace(**{name: _object(one) for name, one in fields.items()})
    return [_object(one) for one in cast("list[Any]", value)] if isinstance(value, list) else value
