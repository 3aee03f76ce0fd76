"""Messages in the form of a Letta server: one row for each thing said, thought, called or returned.

Source of the shapes: the types of `letta-client`, under `letta_client/types/agents`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from vivavoce.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

UNKNOWN = "1970-01-01T00:00:00Z"
"""The date of a message of which nobody noted the time; Letta's messages must have one."""


def letta_turns(turns: Sequence[Sequence[AnyMessage]]) -> list[list[dict[str, Any]]]:
    """Return the messages of each turn as rows with `message_type`, `id`, `date` and what the type has."""
    return [
        [
            {"id": f"message-{turn}-{place}", **row}
            for place, row in enumerate(row for message in messages for row in _rows(message))
        ]
        for turn, messages in enumerate(turns)
    ]


def _rows(message: AnyMessage) -> Iterator[dict[str, Any]]:
    time = message.timestamp
    date = UNKNOWN if time is None else time.isoformat()
    for kind, fields in _parts(message):
        yield {"date": date, "message_type": kind, **fields}


def _parts(message: AnyMessage) -> Iterator[tuple[str, dict[str, Any]]]:
    match message:
        case AIMessage():
            if reasoning := getattr(message, "reasoning_content", None):
                yield "reasoning_message", {"reasoning": str(reasoning)}
            if message.content or not message.tool_calls:
                yield "assistant_message", {"content": message.text}
            for call in message.tool_calls or ():
                one = {"name": call.name, "arguments": call.function.arguments, "tool_call_id": call.id or ""}
                yield "tool_call_message", {"tool_call": one, "tool_calls": [one]}
        case ToolMessage():
            failed = (message.metadata or {}).get("status") == "error"
            fields = {"tool_call_id": message.tool_call_id or "", "tool_return": message.text}
            yield "tool_return_message", {"status": "error" if failed else "success", **fields}
        case HumanMessage():
            yield "user_message", {"content": message.text}
        case _:
            yield "system_message", {"content": message.text}
