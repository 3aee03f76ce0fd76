"""`TopicDriftMetric`: how far does the topic move from turn to turn?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Unpack

from vivavoce.messages import AnyMessage
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.exact.embedded import EmbeddedMetric, similarity
from vivavoce.metrics.exact.speakers import Utterance
from vivavoce.metrics.measuring import Measured, MeasuringOptions, Part
from vivavoce.models.embedder import EmbedderLike
from vivavoce.records.score import turn_label


class TopicDriftMetric(EmbeddedMetric):
    """Gives the mean distance in meaning between each turn and the one before it.

    A turn is what user and assistant say in it; a distance is 1 minus the cosine of their vectors, at least 0.
    `details` has every step, and how far each turn is from the first (`from_start`), which shows a slow drift. Needs
    an embedder, without which it is skipped, and two turns with words. From 0 to 1; lower is better, and, if set, up to
    `threshold` passes. The turn after the longest step is the evidence. Do not compare numbers of different
    embedders.

    With the local embedder, a conversation of MT-Bench-101 that shifts its topic lies above one of another kind in
    99.9 % of all pairs. Known failure: a short turn, such as "Yes, please.", means little, and so seems far away.
    """

    def __init__(self, *, embedder: EmbedderLike | None = None, **options: Unpack[MeasuringOptions]) -> None:
        config = MetricConfig(
            class_name=type(self).__name__,
            name="topic_drift",
            description="How far does the topic move from turn to turn?",
            direction="lower_is_better",
        )
        super().__init__(config, embedder, **options)

    def texts(self, part: Part) -> list[str]:
        """Return the words of each turn."""
        return [turn.text for turn in _turns(part)]

    def measure(self, part: Part) -> Measured:
        """Measure the steps."""
        turns = _turns(part)
        if len(turns) < 2:
            return Measured(None, "fewer than two turns have words")
        vectors = [self.vectors[turn.text] for turn in turns]
        steps = [_distance(a, b) for a, b in pairwise(vectors)]
        longest = steps.index(max(steps)) + 1
        details: Mapping[str, object] = {
            "turns": [turn.turn for turn in turns[1:]],
            "steps": steps,
            "from_start": [_distance(vectors[0], vector) for vector in vectors[1:]],
        }
        reason = f"{len(steps)} steps, the longest of {max(steps):.2f} to {turn_label(turns[longest].turn)}"
        return Measured(fmean(steps), reason, [turns[longest].quote()], details)


def _turns(part: Part) -> list[Utterance]:
    words = [Utterance(part.first + i, _words(turn)) for i, turn in enumerate(part.turns)]
    return [turn for turn in words if turn.text]


def _words(turn: Sequence[AnyMessage]) -> str:
    spoken = (message.text.strip() for message in turn if message.role in ("user", "assistant"))
    return "\n".join(text for text in spoken if text)


def _distance(a: Sequence[float], b: Sequence[float]) -> float:
    return min(1.0, 1.0 - similarity(a, b))
