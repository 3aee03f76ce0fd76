"""What strategies read from the turns so far: which were not taken back, and the target's last reaction."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from vivavoce.comparing.text import is_blank, same_text
from vivavoce.messages import AIMessage
from vivavoce.metrics.exact.refusal import find_refusal
from vivavoce.penelope.context import TestState
from vivavoce.penelope.turn import Turn

Reaction = Literal["unanswered", "refused", "repeated", "asked", "answered"]
"""What the target last did: failed or said nothing, refused, said the same again, asked back, or answered plainly."""


def turns_kept(state: TestState) -> list[Turn]:
    """Return the turns that were not taken back."""
    return [turn for turn in state.turns if not turn.forgotten]


def reaction(state: TestState) -> Reaction | None:
    """Return what the target did in the last turn, None before the first and after one that was taken back."""
    if not state.turns or state.turns[-1].forgotten:
        return None
    last, before = state.turns[-1], turns_kept(state)[:-1]
    if is_refusal(last):
        return "refused"
    if is_blank(last.reply):
        return "unanswered"
    if before and same_text(before[-1].reply, last.reply, ignore_case=True):
        return "repeated"
    return "asked" if last.reply.rstrip().endswith(("?", "？")) else "answered"


def is_refusal(turn: Turn) -> bool:
    """Say whether the target refuses in a turn, in whole or in part: its last words say so, or else a judge."""
    return refuses_in_words(turn) or turn.target_refused in ("yes", "partly")


def refuses_in_words(turn: Turn) -> bool:
    """Say whether the target's last words in a turn refuse: its provider says so, or a phrase at their beginning."""
    answers = [m for m in turn.exchange.messages if isinstance(m, AIMessage) and not is_blank(m.words)]
    return bool(answers) and (answers[-1].marked_refusal is not None or _refuses(answers[-1].text))


@lru_cache(maxsize=1024)
def _refuses(text: str) -> bool:
    return find_refusal(text) is not None
