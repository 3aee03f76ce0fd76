"""`Reading`: a conversation as its judges read it, written once for all who ask about it."""

from __future__ import annotations

from collections.abc import Iterable

from vivavoce.metrics.evidence import Checker
from vivavoce.metrics.transcript import Shown, Transcript, transcript
from vivavoce.metrics.types import MultiTurnEvaluationInput


class Reading:
    """What metrics are given, with the transcripts of the conversation; each is written when it is first asked for.

    Of a conversation that is judged by turns or windows, the first `since` turns have been asked about already.
    """

    __slots__ = ("_checkers", "_written", "given", "since")

    def __init__(self, given: MultiTurnEvaluationInput, since: int = 0) -> None:
        self.given = given
        self.since = since
        self._written: dict[Shown, Transcript] = {}
        self._checkers: dict[Shown, Checker] = {}

    @property
    def transcripts(self) -> Iterable[Transcript]:
        """Those that have been written."""
        return self._written.values()

    def transcript(self, shown: Shown) -> Transcript:
        """Return the transcript with what is shown of the conversation."""
        written = self._written.get(shown)
        if written is None:
            written = self._written[shown] = transcript(self.given.messages, shown)
        return written

    def checker(self, shown: Shown) -> Checker:
        """Return what looks up the evidence of whoever read that transcript."""
        checker = self._checkers.get(shown)
        if checker is None:
            checker = self._checkers[shown] = Checker(self.given.messages, self.transcript(shown))
        return checker

    def after(self, since: int) -> Reading:
        """Return the same conversation, of which the first `since` turns have been asked about."""
        return self._sharing(self.given, since)

    def knowing(self, **more: object) -> Reading:
        """Return the same conversation with something else known about it."""
        return self._sharing(self.given.model_copy(update=more), self.since)

    def _sharing(self, given: MultiTurnEvaluationInput, since: int) -> Reading:
        made = Reading(given, since)
        made._written, made._checkers = self._written, self._checkers
        return made
