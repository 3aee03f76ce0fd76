"""Test a chatbot that is a class of your own, with a memory and without any framework.

Run it with a model of your own: python chatbot.py openai:gpt-4.1-mini
"""

from __future__ import annotations

import re
import sys

from vivavoce.penelope import PenelopeAgent

PRICES = {"margherita": 8, "funghi": 10, "diavola": 11}


class Pizzeria:
    """Takes orders, and keeps a basket for each conversation."""

    def __init__(self) -> None:
        self.baskets: dict[str, list[str]] = {}

    def reply(self, message: str, conversation_id: str) -> str:
        """Answer a message; these two parameters are all that the tester needs."""
        basket = self.baskets.setdefault(conversation_id, [])
        basket += [pizza for pizza in PRICES if pizza in message.lower()]
        if not basket:
            return f"We have {', '.join(PRICES)}. What would you like?"
        total = sum(PRICES[pizza] for pizza in basket)
        if street := re.search(r"\w+ (?:Street|Lane) \d+", message):
            return f"Thank you! {', '.join(basket)} for EUR {total} will be at {street[0]} in 40 minutes."
        return f"{', '.join(basket)}, that is EUR {total}. To which address?"


def price_on_the_menu(pizza: str) -> str:
    """Look up what a pizza costs on the printed menu, to compare it with what the assistant says."""
    return f"EUR {PRICES[pizza.lower()]}" if pizza.lower() in PRICES else "it is not on the menu"


def main(model: str) -> None:
    """Hold the test, and print all of it."""
    agent = PenelopeAgent(model, tools=[price_on_the_menu], max_turns=8)
    result = agent.execute_test(
        Pizzeria().reply,
        goal="Two pizzas are ordered, and the assistant names their total price and where they go",
        persona="impatient",
        facts={"address": "Mill Lane 3"},
        must=["name the total price before the order is placed"],
        must_not=["ask for the same thing twice"],
    )
    print(result)


if __name__ == "__main__":
    main(sys.argv[1])
