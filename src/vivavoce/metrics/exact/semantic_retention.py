"""`SemanticRetentionMetric`: do the answers stay near what was said before?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, Unpack

from vivavoce.comparing.text import is_blank
from vivavoce.errors import UsageError
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.exact.embedded import EmbeddedMetric, similarity
from vivavoce.metrics.exact.speakers import Utterance, numbered
from vivavoce.metrics.measuring import Measured, MeasuringOptions, Part
from vivavoce.models.embedder import EmbedderLike, Vector
from vivavoce.records.score import turn_label


class SemanticRetentionMetric(EmbeddedMetric):
    """Gives the mean closeness in meaning of each answer to the conversation before.

    The context of an answer is the sum of the vectors of all earlier messages with words, the last one in full and each
    earlier one with `decay` times the weight of the next; closeness is the cosine of the answer's vector and that sum,
    at least 0. Answers of the first turn have no earlier turn, and do not count. Needs an embedder, without
    which it is skipped, and an answer after the first turn. From 0 to 1; higher is better, and, if set, `threshold` or
    more passes. `details["answers"]` has each answer, and the farthest one is the evidence.

    With the local embedder its rank correlation with people's "maintains context" on 324 replies of USR Topical-Chat is
    .44; that of reply length is .32, of one person .57. Known failures: an answer that
    repeats what was said is nearest of all, and one that contradicts it is near; only a judge sees that.
    """

    def __init__(
        self, *, embedder: EmbedderLike | None = None, decay: float = 0.5, **options: Unpack[MeasuringOptions]
    ) -> None:
        config = MetricConfig(
            class_name=type(self).__name__,
            name="semantic_retention",
            description="Do the answers stay near what was said before?",
        )
        super().__init__(config, embedder, **options)
        self.decay = decay
        if not 0 <= decay <= 1:
            raise UsageError(f"{self.name}: decay must be from 0 to 1, got {decay:g}")

    @property
    def parameters(self) -> Mapping[str, object]:
        """The embedder, and how fast messages lose weight."""
        return {**super().parameters, "decay": self.decay}

    def texts(self, part: Part) -> list[str]:
        """Return the words of each message."""
        return [utterance.text for utterance, _ in _spoken(part)]

    def measure(self, part: Part) -> Measured:
        """Compare each answer with the sum of what came before it."""
        context: Vector = ()
        answers: list[tuple[Utterance, float]] = []
        for utterance, is_answer in _spoken(part):
            vector = self.vectors[utterance.text]
            if is_answer and utterance.turn is not None and utterance.turn > part.first:
                answers.append((utterance, max(0.0, similarity(vector, context))))
            context = _added(context, vector, self.decay)
        if not answers:
            return Measured(None, "no answer comes after the first turn")
        farthest, least = min(answers, key=lambda answer: answer[1])
        details: dict[str, Any] = {
            "answers": [{"turn": utterance.turn, "nearness": near} for utterance, near in answers]
        }
        reason = f"{len(answers)} answers, the farthest of {least:.2f} in {turn_label(farthest.turn)}"
        return Measured(fmean(near for _, near in answers), reason, [farthest.quote()], details)


def _spoken(part: Part) -> list[tuple[Utterance, bool]]:
    """Return the utterances, each with whether it is the assistant's."""
    return [
        (Utterance(turn, message.text), message.role == "assistant")
        for turn, message in numbered(part)
        if message.role in ("user", "assistant") and not is_blank(message.text)
    ]


def _added(context: Sequence[float], vector: Vector, decay: float) -> Vector:
    return [decay * old + new for old, new in zip(context, vector, strict=True)] if context else vector
