"""`Breaker`: stop calling a system that fails every time in the same way."""

from __future__ import annotations

import copy

from vivavoce.errors import Fault


class Breaker:
    """Opens after `threshold` calls in a row that failed with the same kind and message; a success closes it.

    While it is open no call need be made: the answer is known.
    """

    def __init__(self, threshold: int = 5) -> None:
        if threshold < 1:
            raise ValueError(f"a threshold is at least 1, got {threshold}")
        self._threshold = threshold
        self._fault: Fault | None = None
        self._count = 0

    @property
    def is_open(self) -> bool:
        """Whether calls are refused."""
        return self._count >= self._threshold

    def check(self) -> None:
        """Raise the known failure again if the breaker is open; its message says that no call was made."""
        if self._fault is None or not self.is_open:
            return
        again = copy.copy(self._fault)
        again.args = (f"{self._fault} (not called: the last {self._threshold} calls failed in this way)",)
        again.retryable = False
        raise again from self._fault.__cause__

    def failed(self, fault: Fault) -> None:
        """Take note of a call that failed for good; retries of one call are one call."""
        if self.is_open:
            return
        same = self._fault is not None and (fault.kind, str(fault)) == (self._fault.kind, str(self._fault))
        self._count = self._count + 1 if same else 1
        self._fault = fault

    def succeeded(self) -> None:
        """Take note of a call that succeeded."""
        self._fault = None
        self._count = 0
