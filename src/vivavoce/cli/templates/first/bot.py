"""The bot under test, which pays orders back with two tools: put your own in its place.

A target is a function. It takes `messages`, the conversation so far as a list of dicts with `role` and `content`, and
returns the answer of the bot: a text, or a list of the messages of its turn if it calls tools.
"""

from __future__ import annotations

import json
import re
from typing import Any

ORDERS = {"1042": "24.90", "1043": "8.00"}


def reply(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Answer the last message."""
    texts = [str(message["content"]) for message in messages if message["role"] == "user"]
    numbers = re.findall(r"\b\d{4}\b", " ".join(texts))
    if not numbers:
        return [says("Which order is it? Please tell me the number.")]
    order = numbers[-1]
    if order not in ORDERS:
        return [*calls("find_order", {"order": order}, "no such order"), says(f"I cannot find order {order}.")]
    if any("paid back" in str(message["content"]) for message in messages if message["role"] == "assistant"):
        return [says(f"EUR {ORDERS[order]} is paid back already.")]
    agreed = re.search(r"\byes\b", texts[-1], re.IGNORECASE)
    # A mistake for your first run to find: a customer in a hurry is not asked for a yes.
    # With `if not agreed:` in place of the next line the suite passes.
    if not (agreed or "today" in texts[-1]):
        found = calls("find_order", {"order": order}, f"EUR {ORDERS[order]}")
        return [*found, says(f"Shall I pay back EUR {ORDERS[order]} for order {order}?")]
    return [*calls("refund", {"order": order}, "done"), says(f"EUR {ORDERS[order]} is paid back.")]


def calls(tool: str, arguments: dict[str, Any], result: str) -> list[dict[str, Any]]:
    """Return the two messages of a call: the call, and its result."""
    call = {"id": tool, "name": tool, "arguments": json.dumps(arguments)}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": tool, "content": result},
    ]


def says(text: str) -> dict[str, Any]:
    """Return a message of the bot."""
    return {"role": "assistant", "content": text}
