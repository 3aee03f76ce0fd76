"""An insurance bot made of rules, as the target of the tests in this folder."""

from __future__ import annotations

import re
from typing import Any

TERMS = {
    "car": "Car insurance costs EUR 30 a month; of each damage you pay EUR 300 yourself.",
    "home": "Home insurance costs EUR 12 a month and covers fire, water and theft.",
    "life": "Life insurance costs EUR 20 a month at the age of 30.",
    "discount": "There are no discounts; every customer pays the same.",
}


def reply(messages: list[dict[str, Any]]) -> str:
    """Answer the last message of a conversation."""
    said = [str(message["content"]) for message in messages if message["role"] == "user"]
    for word, terms in TERMS.items():
        if re.search(rf"\b{word}\b", said[-1], re.IGNORECASE):
            return terms
    if "my name" in said[-1].lower():
        named = [found[1] for text in said if (found := re.search(r"I am (\w+)", text))]
        return f"Your name is {named[0]}." if named else "You have not told me your name."
    return "Hello! We insure cars, homes and lives. What may I tell you about?"
