"""Progress in a notebook: one line below the cell, which says how many conversations are done."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from html import escape
from typing import Any

from vivavoce.records.run import AttemptEnded, Event, Listener, Outcome, RunEnded, RunStarted
from vivavoce.safe_text import safe

PAUSE = 0.2
"""Seconds between two changes of the line."""


def notebook_progress() -> list[Listener]:
    """Return what shows the progress of a run in this notebook; nothing where there is none."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return [NotebookProgress(sys.modules["IPython"].display)] if hasattr(shell, "kernel") else []


class NotebookProgress:
    """Shows how far a run is; `display` is the module `IPython.display`."""

    def __init__(self, display: Any, clock: Callable[[], float] = time.monotonic) -> None:
        self._display, self._clock = display, clock
        self._handle: Any = None
        self._run, self._planned = "", None
        self._done = self._failed = self._errors = 0
        self._shown_at = 0.0

    async def on(self, event: Event) -> None:
        """Count an event, and show it if the line has stood for a while."""
        if isinstance(event, RunStarted):
            self._run, self._planned, self._done = event.run.id, event.planned, event.done
            self._handle = self._display.display(self._line(), display_id=True)
        elif isinstance(event, AttemptEnded):
            self._count(event.outcome)
            if self._clock() - self._shown_at >= PAUSE:
                self._show()
        elif isinstance(event, RunEnded):
            self._show()

    def _count(self, outcome: Outcome) -> None:
        self._done += 1
        scores = outcome.scores.values()
        if outcome.attempt.failure is not None or any(score.state == "error" for score in scores):
            self._errors += 1
        elif any(score.passed is False for score in scores):
            self._failed += 1

    def _show(self) -> None:
        self._shown_at = self._clock()
        if self._handle is not None:
            self._handle.update(self._line())

    def _line(self) -> Any:
        planned = "" if self._planned is None else f" of {self._planned:,}"
        counts = f"{self._done:,}{planned} done · {self._failed:,} failed · {self._errors:,} with an error"
        bar = f"<progress max={self._planned} value={self._done}></progress> " if self._planned else ""
        return self._display.HTML(f"{bar}<code>{escape(safe(self._run))}</code> {counts}")
