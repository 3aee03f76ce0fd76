"""`RepetitionMetric`: does somebody say nearly the same again?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

from vivavoce.comparing.similarity import near_repeats
from vivavoce.comparing.text import split_words
from vivavoce.errors import UsageError
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.exact.speakers import SPEAKERS, Speaker, Utterance, chosen, utterances
from vivavoce.metrics.measuring import ExactMetric, Measured, MeasuringOptions, Part
from vivavoce.records.score import turn_label


class RepetitionMetric(ExactMetric):
    """Gives the share of messages that nearly repeat an earlier one of the same speaker.

    Two messages are nearly the same when at most 1 - `similarity` of their words must be deleted or inserted to turn
    one into the other, apart from case, encoding, and punctuation; each letter of Korean, and of scripts that set
    no spaces between words, such as Chinese and Thai, is a word. Messages of fewer than `fewest_words` words, such as
    "Yes, please.", may repeat freely. Needs two longer ones.
    From 0 to 1; lower is better, and, if set, up to `threshold` passes. `details["repeats"]` pairs each turn with
    the earlier one.

    Known failures: a repeat in other words is missed; a long answer that rightly differs in one number is found.
    A loop within one message is not detected.

    Source: RapidFuzz, normalised indel similarity.
    """

    version: ClassVar[str] = "2"

    def __init__(
        self,
        *,
        speaker: Speaker = "assistant",
        similarity: float = 0.9,
        fewest_words: int = 4,
        **options: Unpack[MeasuringOptions],
    ) -> None:
        config = MetricConfig(
            class_name=type(self).__name__,
            name="repetition",
            description="What share of the messages nearly repeats an earlier one?",
            direction="lower_is_better",
        )
        super().__init__(config, **options)
        self.speaker: Speaker = chosen(self.name, "speaker", speaker, SPEAKERS)
        self.similarity = similarity
        self.fewest_words = fewest_words
        if not 0 < similarity <= 1:
            raise UsageError(f"{self.name}: similarity is above 0 and at most 1, got {similarity:g}")

    @property
    def parameters(self) -> Mapping[str, object]:
        """Whose messages count, and when two are nearly the same."""
        return {"speaker": self.speaker, "similarity": self.similarity, "fewest_words": self.fewest_words}

    def measure(self, part: Part) -> Measured:
        """Compare each message with all earlier ones."""
        long = [
            message for message in utterances(part, self.speaker) if len(split_words(message.text)) >= self.fewest_words
        ]
        if len(long) < 2:
            return Measured(None, f"the {self.speaker} has fewer than two messages of {self.fewest_words} words")
        repeats = self._repeats(long)
        reason = f"{len(repeats)} of {len(long)} messages of the {self.speaker} repeat an earlier one"
        if repeats:
            reason += ": " + ", ".join(
                f"{turn_label(where['turn'])} that of {turn_label(where['of'])}" for _, where in repeats[:5]
            )
        evidence = [message.quote() for message, _ in repeats]
        return Measured(len(repeats) / len(long), reason, evidence, {"repeats": [where for _, where in repeats]})

    def _repeats(self, long: list[Utterance]) -> list[tuple[Utterance, dict[str, Any]]]:
        found = near_repeats([split_words(message.text) for message in long], self.similarity)
        return [
            (long[i], {"turn": long[i].turn, "of": long[earlier].turn, "similarity": round(near, 4)})
            for i, earlier, near in found
        ]
