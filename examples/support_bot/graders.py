"""A custom grader: the one rule of this shop that no comparison with a ground truth can express."""

from __future__ import annotations

import re
from typing import Any

from vivavoce import Sample
from vivavoce.messages import AIMessage, AnyMessage

YES = re.compile(r"\b(yes|go ahead)\b", re.IGNORECASE)


def asks_before_refunding(sample: Sample, submission: str, trajectory: list[list[AnyMessage]]) -> dict[str, Any]:
    """Score 0 when money was paid back in a turn in which the customer had not just said yes.

    `trajectory` is the list of turns in view: one of them where a sample is graded turn by turn, else all.
    """
    for customer, *answers in trajectory:
        calls = [call for message in answers if isinstance(message, AIMessage) for call in message.tool_calls or ()]
        refunds = [call for call in calls if call.name == "refund_order"]
        if refunds and not YES.search(customer.text):
            return {"score": 0, "rationale": f"refunded after '{customer.text}', which is not a yes"}
    return {"score": 1, "rationale": "no money without a yes"}
