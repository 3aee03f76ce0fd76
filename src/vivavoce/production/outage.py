"""`Outage`: while a judge answers nobody, what waits for it waits on, in place of becoming an error."""

from __future__ import annotations

import time

from vivavoce.records.run import Outcome

FAILURES = 5
"""Conversations in a row after which a judge is taken to answer nobody."""
LOOKS_EVERY = 60.0
"""Seconds between two conversations that are given to it meanwhile, to see whether it answers again."""

_MEETS_OTHERS = frozenset(("connection", "http", "rate_limit", "timeout"))
"""Kinds of failures that are likely to meet the next conversation as well."""


class Outage:
    """Whether the judges of what comes in answer, as far as the last conversations tell."""

    def __init__(self) -> None:
        self._failed = 0
        self._next_look = 0.0

    @property
    def lasts(self) -> bool:
        """Whether a judge answers nobody."""
        return self._failed >= FAILURES

    def hear(self, outcome: Outcome) -> bool:
        """Take note of a conversation; return whether it is the one by which an outage begins or ends."""
        before, scores = self.lasts, outcome.scores.values()
        failures = [score.failure for score in scores if score.failure is not None and score.failure.blame == "judge"]
        if any(one.kind in _MEETS_OTHERS for one in failures):
            self._failed += 1
        elif failures or any(score.usage is not None for score in scores):  # it answered, whatever it said
            self._failed = 0
        if self.lasts and not before:
            self._next_look = time.monotonic() + LOOKS_EVERY
        return self.lasts != before

    def lets_one_through(self) -> bool:
        """Return whether a conversation is to be given to a judge now."""
        now = time.monotonic()
        if self.lasts and now < self._next_look:
            return False
        self._next_look = now + LOOKS_EVERY
        return True
