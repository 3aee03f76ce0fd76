"""The scores of a conversation that a tool can keep, and what it cannot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from vivavoce.records.run import Grading
from vivavoce.records.score import Score, to_number
from vivavoce.report.publish.conversation import Conversation, Place, stable_id


class Published(NamedTuple):
    """One score under its name, with the same `id` whenever the same set of scores is published.

    `place` is what it is about, `about` what is known besides: the run, the sample, whether it passed.
    """

    id: str
    name: str
    score: Score
    place: Place
    about: dict[str, Any]


def published(one: Conversation, grading: Grading, left_out: Counter[str]) -> Iterator[Published]:
    """Yield the scores of a conversation, of the whole before its turns; an error and a skip are no scores."""
    scores = dict(one.outcome.scores)
    if one.outcome.reward is not None:
        scores["reward"] = one.outcome.reward
    for name, whole in scores.items():
        for score in (whole, *(whole.turns or ())):
            if score.state == "scored":
                yield _published(one, grading, name, score)
            elif score.turn is None:
                left_out["score that is an error" if score.state == "error" else "score that was skipped"] += 1


def _published(one: Conversation, grading: Grading, name: str, score: Score) -> Published:
    key = one.outcome.attempt.key
    turn = score.turn
    about: dict[str, Any] = {
        "run": grading.run_id,
        "grading": grading.id,
        "sample": key.sample_id,
        "target": key.target,
        "trial": to_number(key.trial),
        "turn": None if turn is None else to_number(turn),
        "passed": score.passed,
        "raw": score.raw,
        "fingerprint": grading.fingerprints.get(name),
    }
    known = {field: value for field, value in about.items() if value is not None}
    return Published(stable_id(grading.id, *key, name, turn), name, score, one.place_of(turn), known)


def is_judged(score: Score) -> bool:
    """Return whether a model decided a score."""
    return bool(score.settings) or score.usage is not None
