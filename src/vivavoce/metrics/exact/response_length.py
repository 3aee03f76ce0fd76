"""`ResponseLengthMetric`: how long are the answers?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Unpack, get_args

from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.exact.speakers import STATISTICS, Statistic, chosen, summary, utterances
from vivavoce.metrics.measuring import ExactMetric, Measured, MeasuringOptions, Part

Unit = Literal["words", "characters"]
UNITS: tuple[Unit, ...] = get_args(Unit)


class ResponseLengthMetric(ExactMetric):
    """Counts the words of each answer; the score is their mean, or the `statistic` that is asked for.

    A word is text between white space with a letter or a digit. Needs an assistant message with words. From
    0 up; shorter is better, and, if set, up to `threshold` passes. Known failure: Chinese, Japanese, Thai and the like
    use no spaces; count them with `unit="characters"`, which leaves out white space.
    """

    def __init__(
        self, *, statistic: Statistic = "mean", unit: Unit = "words", **options: Unpack[MeasuringOptions]
    ) -> None:
        config = MetricConfig(
            class_name=type(self).__name__,
            name="response_length",
            description="How long are the answers?",
            direction="lower_is_better",
            maximum=None,
        )
        super().__init__(config, **options)
        self.statistic: Statistic = chosen(self.name, "statistic", statistic, STATISTICS)
        self.unit: Unit = chosen(self.name, "unit", unit, UNITS)

    @property
    def parameters(self) -> Mapping[str, object]:
        """The statistic and the unit."""
        return {"statistic": self.statistic, "unit": self.unit}

    def measure(self, part: Part) -> Measured:
        """Count words; the longest answer is the evidence."""
        answers = utterances(part, "assistant")
        if not answers:
            return Measured(None, "no assistant message has words")
        lengths = [words(answer.text) if self.unit == "words" else characters(answer.text) for answer in answers]
        score = summary(lengths, self.statistic)
        longest = answers[lengths.index(max(lengths))]
        return Measured(
            score,
            f"{self.statistic} of {len(answers)} answers: {score:g} {self.unit}",
            [longest.quote()],
            {"lengths": lengths, "turns": [answer.turn for answer in answers]},
        )


def words(text: str) -> int:
    """Count what stands between white space and holds a letter or a digit."""
    return sum(any(map(str.isalnum, piece)) for piece in text.split())


def characters(text: str) -> int:
    """Count the characters that are not white space."""
    return sum(map(len, text.split()))
