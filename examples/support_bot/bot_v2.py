"""Release 2 of the support bot: four small changes, each of which looks harmless by itself.

Read what each one was meant to do, guess what it breaks, then run the suite: `./demo.sh`.
"""

from __future__ import annotations

import bot_v1
from bot_v1 import Wire
from shop import RETURN_DAYS, TODAY, Order


def reply(messages: list[Wire]) -> list[Wire]:
    """Answer the last message of a conversation, with the tool calls made on the way."""
    return SupportBot(messages).reply()


class SupportBot(bot_v1.SupportBot):
    """The bot of release 1 with a shorter memory, quicker refunds, and friendlier refusals."""

    def remembered(self) -> list[str]:
        """Remember the last two messages only: long prompts are expensive."""
        return super().remembered()[-2:]

    def agrees(self) -> bool:
        """Take everything but a no for a yes: customers are in a hurry."""
        return not self.mentions("no", "not", "don't", "only one")

    def open_offer(self) -> tuple[str, str] | None:
        """Keep to the amount that was offered first: the customer has seen it."""
        return super().open_offer() and self.offers_in(self.messages)[0]

    def refusal(self, order: Order) -> str | None:
        """Tell a customer who is late how late."""
        late = (TODAY - order.delivered).days - RETURN_DAYS
        if late > 0:
            return f"I am sorry, the {RETURN_DAYS} days for a refund ended {late} days ago."
        return super().refusal(order)
