"""A support bot made of rules: put your own in its place.

A target is a function. It takes `messages`, the conversation so far as a list of dicts with `role` and `content`, and
returns the answer of the bot: a text, or a list of messages if it calls tools.
"""

from __future__ import annotations

import re
from typing import Any

ORDERS = {"1042": ("mugs", 2, 12.45), "1043": ("desk lamp", 1, 49.00)}


def reply(messages: list[dict[str, Any]]) -> str:
    """Answer the last message."""
    said = [str(message["content"]) for message in messages if message["role"] == "user"]
    text = said[-1].lower()
    if "person" in text:
        return "I am connecting you with a colleague."
    if "open" in text:
        return "We are open from 9 to 17, Monday to Friday."
    if any("refund" in one.lower() or "money back" in one.lower() for one in said):
        return refund(said)
    return "I can refund an order, tell you when we are open, or find you a person. What shall it be?"


def refund(said: list[str]) -> str:
    """Refund the order that the customer has named."""
    numbers = re.findall(r"\b\d{4}\b", " ".join(said))
    if not numbers:
        return "Which order is it? Its number has four digits."
    number = numbers[0]  # a mistake for your first run to find: the customer may have corrected the number since
    if number not in ORDERS:
        return f"There is no order {number}. Please look at your e-mail once more."
    item, pieces, price = ORDERS[number]
    return f"I refund your {item} of order {number}: EUR {pieces * price:.2f}"
