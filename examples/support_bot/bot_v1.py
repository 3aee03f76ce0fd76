"""Release 1 of the support bot: rules instead of a model, so that the demo gives the same result everywhere."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from shop import ORDERS, RETURN_DAYS, SHIPPING, TODAY, Order, look_up_order, refund_order

Wire = dict[str, Any]
"""A message in the shape of the OpenAI chat wire."""

OFFER = re.compile(r"Shall I refund EUR (\d+\.\d\d) for order (\d+)\?")


def reply(messages: list[Wire]) -> list[Wire]:
    """Answer the last message of a conversation, with the tool calls made on the way."""
    return SupportBot(messages).reply()


class SupportBot:
    """One answer to a conversation; everything the bot knows of its customer stands in the messages."""

    def __init__(self, messages: list[Wire]) -> None:
        self.messages = messages
        self.said: str = messages[-1]["content"].lower()
        self.steps: list[Wire] = []

    def reply(self) -> list[Wire]:
        """Return the tool calls, their results, and the words at the end."""
        words = self.answer()
        return [*self.steps, {"role": "assistant", "content": words}]

    def answer(self) -> str:
        """Decide what the customer wants; while an offer is open, it may be a yes, a no, or something about it."""
        offer = self.open_offer()
        if offer is None:
            return self.inform()
        if self.agrees():
            return self.refund(*offer)
        if self.mentions("no", "not", "don't"):
            return "All right, I have not refunded anything."
        if self.mentions("only one"):
            return self.offer_refund(pieces=1)
        return f"{self.inform()} {self.question(*offer)}"

    def inform(self) -> str:
        """Answer a question, or begin a refund."""
        if self.mentions("shipping costs"):
            return "Shipping costs are not paid back, only the price of the goods."
        if self.mentions("shipping", "ship"):
            return self.shipping()
        if self.mentions("refund", "return", "money back"):
            return self.offer_refund()
        if self.mentions("order", "where", r"\d{4}"):
            return self.status()
        return "I can look up an order, refund it, or tell you how long shipping takes."

    def shipping(self) -> str:
        """Tell the shipping time of a country."""
        for country, time in SHIPPING.items():
            if country in self.said:
                return f"Shipping to {country.title()} takes {time}."
        return f"We ship to {', '.join(country.title() for country in SHIPPING)}."

    def status(self) -> str:
        """Tell where an order is."""
        number = self.order_number()
        if number is None:
            return "Which order is it? The number has four digits."
        found = self.call(look_up_order, order=number)
        if "error" in found:
            return f"I cannot find an order {number}. Please check the number."
        return f"Order {number} ({found['pieces']} × {found['item']}) is {found['status']}."

    def offer_refund(self, pieces: int | None = None) -> str:
        """Offer to refund so many pieces of an order, or say why not."""
        number = self.order_number()
        if number is None or number not in ORDERS:
            return self.status()
        self.call(look_up_order, order=number)
        order = ORDERS[number]
        refusal = self.refusal(order)
        amount = (pieces or order.pieces) * order.price
        return refusal or self.question(f"{amount:.2f}", number)

    def question(self, amount: str, number: str) -> str:
        """Ask for a yes."""
        return f"Shall I refund EUR {amount} for order {number}?"

    def refusal(self, order: Order) -> str | None:
        """Say why an order cannot be refunded, None when it can."""
        if order.delivered is None:
            return "It is still on its way. You can send it back once it has arrived."
        if (TODAY - order.delivered).days > RETURN_DAYS:
            return f"I am sorry, we refund within {RETURN_DAYS} days of delivery, and those are over."
        return None

    def refund(self, amount: str, number: str) -> str:
        """Pay the money back."""
        self.call(refund_order, order=number, amount=float(amount))
        return f"Done. EUR {amount} for order {number} will be on your account in three days."

    def order_number(self) -> str | None:
        """Return the order number that the customer said last."""
        numbers = re.findall(r"\b\d{4}\b", " ".join(self.remembered()))
        return numbers[-1] if numbers else None

    def remembered(self) -> list[str]:
        """Return what the customer said, from the beginning of the conversation."""
        return [message["content"] for message in self.messages if message["role"] == "user"]

    def open_offer(self) -> tuple[str, str] | None:
        """Return the amount and the order of the refund that the bot has just offered."""
        offers = self.offers_in(self.messages[-2:])
        return offers[-1] if offers else None

    def offers_in(self, messages: list[Wire]) -> list[tuple[str, str]]:
        """Return every amount and order that the bot offered to refund."""
        return [offer for m in messages if m["role"] == "assistant" for offer in OFFER.findall(m["content"] or "")]

    def agrees(self) -> bool:
        """Say whether the customer said yes."""
        return self.mentions("yes", "go ahead")

    def mentions(self, *words: str) -> bool:
        """Say whether the customer used one of these words; they may be regular expressions."""
        return re.search(rf"\b({'|'.join(words)})\b", self.said) is not None

    def call(self, tool: Callable[..., Wire], **arguments: Any) -> Wire:
        """Call a tool, and keep the call and its result as messages, as a model would."""
        call_id = f"call_{len(self.messages)}_{len(self.steps)}"
        function = {"name": tool.__name__, "arguments": json.dumps(arguments)}
        result = tool(**arguments)
        call = {"id": call_id, "type": "function", "function": function}
        self.steps.append({"role": "assistant", "content": None, "tool_calls": [call]})
        self.steps.append({"role": "tool", "tool_call_id": call_id, "content": json.dumps(result)})
        return result
