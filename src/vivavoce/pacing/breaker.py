"""`Breaker`: stop calling a system that fails every call in the same way."""

from __future__ import annotations

import asyncio

from vivavoce.errors import Fault

_REFUSES_EVERYBODY = frozenset((401, 403, 404))
"""Statuses of a wrong key, a missing right, and an address or a model that does not exist."""


class Breaker:
    """Opens after `threshold` calls in a row that failed identically; a success closes it.

    Only failures count that another call would meet as well: no connection, a wrong key, an unknown model. A rate
    limit, a slow answer, a refusal or an answer that cannot be read belongs to one call and changes nothing. While it
    is open no call need be made: the answer is known. Every `rest` seconds one call is let through to see whether that
    still holds. It serves one event loop, whose time it uses.
    """

    def __init__(self, threshold: int = 5, rest: float = 30.0) -> None:
        if threshold < 1:
            raise ValueError(f"a threshold is at least 1, got {threshold}")
        self._threshold = threshold
        self._rest = rest
        self._fault: Fault | None = None
        self._count = 0
        self._next_look = 0.0

    @property
    def is_open(self) -> bool:
        """Whether calls are refused."""
        return self._count >= self._threshold

    def check(self) -> None:
        """Raise the known failure again if the breaker is open; its message says that no call was made."""
        if self._fault is None or not self.is_open:
            return
        now = asyncio.get_running_loop().time()
        if now >= self._next_look:
            self._next_look = now + self._rest
            return
        message = f"{self._fault} (not called: the last {self._threshold} calls failed in this way)"
        again = self._fault.restated(message, retryable=False)
        again.usage = None
        raise again from self._fault.__cause__

    def failed(self, fault: Fault) -> None:
        """Take note of a call that failed for good; retries of one call are one call."""
        if self.is_open or not _meets_everybody(fault):
            return
        same = self._fault is not None and _identity(fault) == _identity(self._fault)
        self._count = self._count + 1 if same else 1
        self._fault = fault
        if self.is_open:
            self._next_look = asyncio.get_running_loop().time() + self._rest

    def succeeded(self) -> None:
        """Take note of a call that succeeded."""
        self._fault = None
        self._count = 0


def _meets_everybody(fault: Fault) -> bool:
    return fault.kind == "connection" or fault.status in _REFUSES_EVERYBODY


def _identity(fault: Fault) -> tuple[str, str, str | None]:
    return fault.kind, str(fault), fault.evidence
