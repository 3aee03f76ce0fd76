"""How long the system under test took, and how long the conversation lasted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Unpack

from vivavoce.messages import AIMessage, AnyMessage
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.exact.speakers import STATISTICS, Statistic, chosen, summary
from vivavoce.metrics.measuring import ExactMetric, Measured, MeasuringOptions, Part
from vivavoce.records.score import turn_label


class ResponseTimeMetric(ExactMetric):
    """Gives the seconds that the system took for a turn: their mean, or the `statistic` that is asked for.

    The time of a turn is what the run measured (`turn_seconds`), else the time between the timestamps of its user
    message and of its last assistant message. Needs one of the two for at least one turn; `details["seconds"]` has None
    for a turn without. From 0 up, in seconds; less is better, and, if set, up to `threshold` passes. Known failures:
    timestamps of a log may be the time of writing, and a turn in which the system never answered has no time.
    """

    def __init__(self, *, statistic: Statistic = "mean", **options: Unpack[MeasuringOptions]) -> None:
        config = MetricConfig(
            class_name=type(self).__name__,
            name="response_time",
            description="How many seconds does the system take for a turn?",
            direction="lower_is_better",
            maximum=None,
        )
        super().__init__(config, **options)
        self.statistic: Statistic = chosen(self.name, "statistic", statistic, STATISTICS)

    @property
    def parameters(self) -> Mapping[str, object]:
        """The statistic."""
        return {"statistic": self.statistic}

    def measure(self, part: Part) -> Measured:
        """Take the time of each turn that has one."""
        times = [time_of(part.metric_input.turn_seconds, part.first + i, turn) for i, turn in enumerate(part.turns)]
        measured = [seconds for seconds in times if seconds is not None]
        if not measured:
            return Measured(None, "no turn has a time, neither measured nor by timestamps")
        score = summary(measured, self.statistic)
        slowest = part.first + times.index(max(measured))
        reason = (
            f"{self.statistic} of {len(measured)} of {len(times)} turns: {score:.3g} s; slowest: {turn_label(slowest)}"
        )
        return Measured(score, reason, details={"seconds": times})


class ConversationDurationMetric(ExactMetric):
    """Gives the seconds from the first to the last timestamp, thinking and typing of the user included.

    Needs timestamps on at least two messages, all with a time zone or all without. From 0 up, in seconds; less is
    better, and, if set, up to `threshold` passes. Known failure: a user who comes back the next day makes a long
    conversation of two short ones.
    """

    def __init__(self, **options: Unpack[MeasuringOptions]) -> None:
        config = MetricConfig(
            class_name=type(self).__name__,
            name="conversation_duration",
            description="How many seconds did the conversation last?",
            direction="lower_is_better",
            maximum=None,
        )
        super().__init__(config, **options)

    def measure(self, part: Part) -> Measured:
        """Return latest minus earliest timestamp."""
        stamps = [message.timestamp for message in part.messages if message.timestamp is not None]
        if len(stamps) < 2:
            return Measured(None, "fewer than two messages have a timestamp")
        if len({stamp.tzinfo is None for stamp in stamps}) > 1:
            return Measured(None, "some timestamps have a time zone and others do not")
        first, last = min(stamps), max(stamps)
        seconds = (last - first).total_seconds()
        return Measured(seconds, f"{seconds:.3g} s, from {first.isoformat()} to {last.isoformat()}")


def time_of(measured: Sequence[float | None], number: int, turn: Sequence[AnyMessage]) -> float | None:
    """Return the seconds of a turn, a number from 0: as `measured`, else by its timestamps, else None."""
    if number < len(measured) and (seconds := measured[number]) is not None:
        return seconds
    start, end = turn[0].timestamp, _answered(turn)
    if start is None or end is None or (start.tzinfo is None) != (end.tzinfo is None):
        return None
    seconds = (end - start).total_seconds()
    return seconds if seconds >= 0 else None


def _answered(turn: Sequence[AnyMessage]) -> datetime | None:
    stamps = [message.timestamp for message in turn if isinstance(message, AIMessage)]
    return stamps[-1] if stamps else None
