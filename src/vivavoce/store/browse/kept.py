"""Answers about sets of scores that have ended, kept in memory: what they count and in which order does not change."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import TypeVar, cast

MOST = 300
"""Answers that are kept, those that were asked for last."""

T = TypeVar("T")


class Kept:
    """The last answers; any thread may ask."""

    def __init__(self) -> None:
        self._answers: OrderedDict[Hashable, object] = OrderedDict()
        self._lock = Lock()

    def answer(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the kept answer to what `key` names, computed where there is none; nobody may change it."""
        with self._lock:
            if key in self._answers:
                self._answers.move_to_end(key)
                return cast("T", self._answers[key])
        found = compute()
        with self._lock:
            self._answers[key] = found
            while len(self._answers) > MOST:
                self._answers.popitem(last=False)
        return found
