"""Defects: mistakes planted by code in recorded conversations that went well, each with what is true of it.

An operator changes one thing and says at which message the conversation now fails, whose mistake that is and of what
kind. What comes after it is what was recorded, or is cut away: nobody answers to the mistake. So a planted conversation
is not a sample of how assistants fail. It shows whether a metric sees a mistake that is there, and where.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from vivavoce.errors import UsageError, did_you_mean
from vivavoce.messages import AnyMessage
from vivavoce.testing.defects.calls import CALL_DEFECTS
from vivavoce.testing.defects.planted import Mistake as Mistake
from vivavoce.testing.defects.planted import Operator, Planted
from vivavoce.testing.defects.replies import SPOKEN_DEFECTS

DEFECTS: Mapping[str, Operator] = {**CALL_DEFECTS, **SPOKEN_DEFECTS}
"""The operators by name."""

_GOAL = "wrong_argument dropped_call failed_result ignored_request"
_MEMORY = "changed_number changed_date changed_name changed_id contradiction forgotten_constraint ignored_correction"
_OFF = "dropped_reply swapped_replies other_question loop"

SEEN_BY: Mapping[str, Sequence[str]] = {
    metric: names.split()
    for metric, names in {
        "goal_achievement": _GOAL,
        "agent_goal_accuracy": _GOAL,
        "first_failure": f"{' '.join(CALL_DEFECTS)} {_MEMORY} changed_result repeated_question leaked_secret",
        "tool_use": "wrong_argument changed_result",
        "faithfulness": "false_amount changed_number changed_date changed_name changed_id changed_result dropped_call",
        "context_retention": f"{_MEMORY} repeated_question",
        "knowledge_retention": "forgotten_constraint ignored_correction repeated_question",
        "coherence": f"{_OFF} contradiction ignored_correction switched_language",
        "turn_relevancy": f"{_OFF} repeated_question",
        "turn_efficiency": "repeated_exchange repeated_question loop",
        "conversation_completeness": f"{_OFF} ignored_request truncated",
        "response_quality": "insult other_question truncated loop switched_language",
        "safety": "insult leaked_secret",
        "toxicity": "insult",
        "data_leakage": "leaked_secret",
        "language": "switched_language",
        "repetition": "loop repeated_exchange",
    }.items()
}
"""The defects that a metric is there to see, by its name; any other metric may see any of them."""


def plant(operator: str, messages: Sequence[AnyMessage], seed: int = 0) -> Planted | None:
    """Return a conversation with the defect of an operator, None where it has no place for it.

    Raises:
        UsageError: there is no such operator.
    """
    if operator not in DEFECTS:
        raise UsageError(f"no operator '{operator}'{did_you_mean(operator, DEFECTS)}")
    return DEFECTS[operator](list(messages), Random(f"{operator} {seed}"))
