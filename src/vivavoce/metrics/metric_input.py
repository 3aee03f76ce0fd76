"""The input of a metric, made from a sample and its conversation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vivavoce.conversation import ConversationHistory
from vivavoce.messages import AnyMessage
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.samples.sample import Sample
from vivavoce.unchecked import unchecked


def metric_input(
    sample: Sample, messages: Sequence[AnyMessage], seconds: Sequence[float | None] = (), **known: Any
) -> MultiTurnEvaluationInput:
    """Return the input of a metric for a sample and its conversation.

    `known` are further fields of the input: `submission`, `state`, `test`, `trial`, and `calls`.
    """
    context, truth = sample.context, sample.ground_truth
    fields = {
        "conversation_history": unchecked(ConversationHistory, {"messages": messages, "conversation_id": sample.id}),
        "goal": sample.goal,
        "instructions": sample.instructions,
        "context": context if context is None or isinstance(context, dict) else {"context": context},
        "policy": sample.policy,
        "reference": truth if isinstance(truth, str) else None,
        "must": tuple(sample.must),
        "must_not": tuple(sample.must_not),
        "turn_seconds": tuple(seconds),
        "sample": sample,
        **known,
    }
    return unchecked(MultiTurnEvaluationInput, fields)
