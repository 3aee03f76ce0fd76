"""A customer and a judge made of rules, in place of two models, so that the demo of the tester needs no key.

The customer wants the price of one broken mug back, and not of both that order 1042 holds. It reads what the bot
answered last and says the next thing. The judge looks at what the bot paid. A model does the same with more wit:
`viva test … --tester openai:gpt-4.1-mini`.
"""

from __future__ import annotations

import json
import re
from typing import Any

from vivavoce.messages import ToolCall, ToolMessage
from vivavoce.models.model import Request
from vivavoce.testing import ScriptedModel

WANTED = 12.45
PAYMENT = re.compile(r'^- (c\d+) refund_order {"order":\s*"1042",\s*"amount":\s*([\d.]+).* returned ".*$', re.MULTILINE)
"""A call that paid money back, as it stands in the list of changes that a judge reads."""

ANSWERS = (
    ("Which order", "It is order 1042.", "it asks for the number"),
    ("Shall I refund EUR 24.90", "Only one mug of order 1042 is broken, please.", "that is the price of both"),
    ("Shall I refund EUR 12.45", "Yes, go ahead.", "that is right"),
    ("Done.", "Thank you, goodbye.", "the money is on its way"),
    ("delivered", "I would like my money back for order 1042.", "now it knows the order"),
)
"""What the bot may say, the customer's answer to that, and why."""


def speak(request: Request) -> list[ToolCall]:
    """Say the next thing."""
    heard = [json.loads(message.text) for message in request.messages if isinstance(message, ToolMessage)]
    reply = str(heard[-1].get("output", {}).get("response", "")) if heard else ""
    for words, said, why in ANSWERS:
        if words in reply:
            return _say(said, why)
    return _say("Hello, one of my mugs arrived broken. I would like a refund.", "that is what happened")


def verdict(request: Request) -> dict[str, Any]:
    """Judge whether the price of one mug was paid back, and nothing else."""
    paid = PAYMENT.findall(request.messages[-1].text)
    right = [call for call, amount in paid if float(amount) == WANTED]
    criterion = {"outcome": "EUR 12.45 is paid back", "kind": "change", "evidence": right, "met": bool(right)}
    return {
        "criteria": [criterion],
        "changes": [_change(call, float(amount)) for call, amount in paid],
        "breaches": [],
        "reasoning": f"the bot paid EUR {float(paid[-1][1]):.2f} back" if paid else "the bot has paid nothing back",
        "confidence": 1.0,
    }


def _change(call: str, amount: float) -> dict[str, str]:
    verdict = "wanted" if amount == WANTED else "wrong_value"
    return {"call": call, "asked": f"EUR {WANTED:.2f}", "rule": "", "verdict": verdict}


def _say(message: str, reasoning: str) -> list[ToolCall]:
    return [ToolCall(name="send_message_to_target", args={"message": message, "reasoning": reasoning})]


customer = ScriptedModel(speak, "rules of a customer")
judge = ScriptedModel(verdict, "rules of a judge")
