"""`Reading`: the input of metrics with its transcripts, each written once for all metrics."""

from __future__ import annotations

from collections.abc import Iterable

from vivavoce.metrics.evidence import Checker
from vivavoce.metrics.transcript import Shown, Transcript, transcript
from vivavoce.metrics.types import MultiTurnEvaluationInput


class Reading:
    """The input of metrics, with the transcripts of its conversation; each is written when it is first needed.

    Where a conversation is judged by turns or windows, the first `since` turns have been judged already.
    """

    __slots__ = ("_checkers", "_transcripts", "metric_input", "since")

    def __init__(self, metric_input: MultiTurnEvaluationInput, since: int = 0) -> None:
        self.metric_input = metric_input
        self.since = since
        self._transcripts: dict[Shown, Transcript] = {}
        self._checkers: dict[Shown, Checker] = {}

    @property
    def transcripts(self) -> Iterable[Transcript]:
        """The transcripts that have been written so far."""
        return self._transcripts.values()

    def transcript(self, shown: Shown) -> Transcript:
        """Return the transcript with what is shown of the conversation."""
        cached = self._transcripts.get(shown)
        if cached is None:
            cached = self._transcripts[shown] = transcript(self.metric_input.messages, shown, self.metric_input.policy)
        return cached

    def checker(self, shown: Shown) -> Checker:
        """Return the checker of evidence that was quoted from that transcript."""
        checker = self._checkers.get(shown)
        if checker is None:
            checker = self._checkers[shown] = Checker(self.metric_input.messages, self.transcript(shown))
        return checker

    def after(self, since: int) -> Reading:
        """Return the same conversation, of which the first `since` turns have been judged."""
        return self._sharing(self.metric_input, since)

    def knowing(self, **more: object) -> Reading:
        """Return the same conversation with something else known about it."""
        return self._sharing(self.metric_input.model_copy(update=more), self.since)

    def _sharing(self, metric_input: MultiTurnEvaluationInput, since: int) -> Reading:
        reading = Reading(metric_input, since)
        reading._transcripts, reading._checkers = self._transcripts, self._checkers
        return reading
