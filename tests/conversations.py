"""Messages of made-up conversations, as rows hold them."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]


def user(text: str) -> Row:
    return {"role": "user", "content": text}


def says(text: str) -> Row:
    return {"role": "assistant", "content": text}


def calls(*made: tuple[str, str, Any]) -> Row:
    """Return one message with calls, each an id, a name and arguments."""
    return {"role": "assistant", "tool_calls": [{"id": i, "name": n, "arguments": a} for i, n, a in made]}


def result(id_: str, text: str = "ok") -> Row:
    return {"role": "tool", "tool_call_id": id_, "content": text}
