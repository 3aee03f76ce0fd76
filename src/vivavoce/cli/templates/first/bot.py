"""The bot under test: put your own in its place.

A target is a function. It takes `messages`, the conversation so far as a list of dicts with `role` and `content`, and
returns the answer of the bot: a text, or a list of messages if it calls tools.
"""

from __future__ import annotations

import re
from typing import Any


def reply(messages: list[dict[str, Any]]) -> str:
    """Answer the last message."""
    text = messages[-1]["content"].lower()
    if "what is my name" in text:
        # A mistake for your first run to find: only the last message is searched for the name.
        # With `messages` in place of `messages[-1:]` the suite passes.
        return f"Your name is {name_in(messages[-1:])}."
    if "my name is" in text:
        return f"Nice to meet you, {name_in(messages)}."
    if "open" in text:
        return "We are open from 9 to 17, Monday to Friday."
    return "Hello! I can tell you when we are open."


def name_in(messages: list[dict[str, Any]]) -> str:
    """Return the name that the user gave in these messages."""
    for message in reversed(messages):
        if message["role"] == "user" and (found := re.search(r"my name is (\w+)\.", message["content"])):
            return found[1]
    return "not known to me"
