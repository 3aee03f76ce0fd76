"""An agent made of rules, with two tools: put your own in its place.

It returns the messages of its turn: each call of a tool, the result, and the answer.
"""

from __future__ import annotations

import json
import re
from typing import Any

BOOKINGS = {"K7": "Lisbon, 3 May, 240 euros", "K8": "Oslo, 9 June, 180 euros"}


def reply(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Answer the last message."""
    said = [str(message["content"]) for message in messages if message["role"] == "user"]
    numbers = re.findall(r"\b[A-Z]\d\b", " ".join(said))
    if not numbers:
        return [says("Which booking is it?")]
    booking = numbers[-1]
    if booking not in BOOKINGS:
        return [
            *called("find_booking", booking, {"error": "no such booking"}),
            says(f"I cannot find booking {booking}."),
        ]
    agreed = re.search(r"\byes\b", said[-1], re.IGNORECASE) is not None
    hurried = "hurry" in said[-1]  # a mistake for your first run to find: a hurry is no agreement
    if not (agreed or hurried):
        if len(said) > 1:
            return [says(f"Then booking {booking} stays as it is.")]
        found = called("find_booking", booking, {"booking": BOOKINGS[booking]})
        return [*found, says(f"{booking} is {BOOKINGS[booking]}. Shall I cancel it?")]
    if any(message.get("tool_calls") and "cancel" in json.dumps(message["tool_calls"]) for message in messages):
        return [says(f"Booking {booking} is cancelled already.")]
    return [*called("cancel_booking", booking, {"done": True}), says(f"Booking {booking} is cancelled.")]


def called(tool: str, booking: str, result: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the two messages of a call: what is asked for, and what came of it."""
    call = {"id": f"{tool}-{booking}", "name": tool, "arguments": {"booking": booking}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": json.dumps(result)},
    ]


def says(text: str) -> dict[str, Any]:
    """Return a message of the agent."""
    return {"role": "assistant", "content": text}
