"""A sample as a row that Ragas reads, in the shape of `exchange/ragas.py`.

Ragas knows messages of a person, of the assistant and of tools, each a text; anything else is refused. Reading such a
row here returns the sample; what was null in the content of a message comes back as the empty text.
"""

from __future__ import annotations

from typing import Any

from vivavoce.exchange.ragas import TYPES, ragas_call, ragas_message
from vivavoce.messages import AnyMessage, TextPart
from vivavoce.samples.evaluation import MultiTurnSample
from vivavoce.samples.evaluation_row import EvaluationSample, filled_row


def ragas_row(sample: EvaluationSample) -> dict[str, Any]:
    """Return a sample as plain JSON types that Ragas, from 0.2 on, reads as the same sample.

    Raises:
        ValueError: it holds something that Ragas has no place for.
    """
    row = filled_row(sample)
    if isinstance(sample, MultiTurnSample):
        row["user_input"] = [_message(message, index) for index, message in enumerate(sample.user_input)]
        if sample.reference_tool_calls is not None:
            row["reference_tool_calls"] = [ragas_call(call.to_dict()) for call in sample.reference_tool_calls]
    return row


def _message(message: AnyMessage, index: int) -> dict[str, Any]:
    if message.role not in TYPES:
        raise ValueError(f"message {index} ({message.role}): Ragas has no such message; leave it out for Ragas")
    content = message.content
    if isinstance(content, list) and not all(isinstance(part, TextPart) for part in content):
        raise ValueError(f"message {index} ({message.role}): Ragas has messages of text alone, and this one holds more")
    keys = message.to_dict()
    if "type" in keys:
        raise ValueError(
            f"message {index} ({message.role}): has a key 'type' of its own, which Ragas reads as the role"
        )
    return ragas_message(keys)
