"""The progress of a run: a bar in a terminal, otherwise a line from time to time."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

from vivavoce.records.run import AttemptEnded, BatchesAsked, Event, RunStarted, TurnEnded
from vivavoce.report.text import count, one_line
from vivavoce.run.execution import Execution
from vivavoce.run.execution import execute as execute_or_stop
from vivavoce.run.summary import RunResult
from vivavoce.safe_text import safe

EVERY = 5.0
"""Seconds between two lines if there is no terminal."""


class RunProgress:
    """Listens to a run and shows how far it is: conversations, turns, errors, and the mean so far.

    A quiet one shows nothing of that.
    """

    def __init__(self, console: Console, quiet: bool = False) -> None:
        self._console = console
        self._quiet = quiet
        self._live = console.is_terminal
        self._bar = Progress(
            SpinnerColumn(),
            MofNCompleteColumn(),
            BarColumn(bar_width=24),
            TextColumn("{task.description}"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=quiet or not self._live,
        )
        self._task = self._bar.add_task("starting", total=None)
        self.ended = self.turns = self.failed = 0
        self.planned: int | None = 0
        self._round = 0
        self._sum = 0.0
        self._scored = 0
        self._spoke_at = time.monotonic()
        self._shown_at = 0.0

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    async def on(self, event: Event) -> None:
        """Take one event."""
        if self._quiet:
            return
        if isinstance(event, RunStarted):
            self.planned, self.ended = event.planned, event.done
            left = f", {event.done} already done" if event.done else ""
            planned = "" if event.planned is None else f": {count(event.planned, 'conversation')}"
            self._console.print(f"run {event.run.id}{planned}{left}")
        elif isinstance(event, TurnEnded):
            self.turns += 1
        elif isinstance(event, AttemptEnded):
            self._count(event)
        elif isinstance(event, BatchesAsked):
            self._wait(event)

    def _count(self, event: AttemptEnded) -> None:
        self.ended += 1
        graded = event.outcome.scores.values()
        self.failed += any(score.state == "error" for score in graded)
        scores = [score.value for score in graded if score.value is not None]
        self._sum += sum(scores)
        self._scored += len(scores)
        now = time.monotonic()
        if self._live and (now - self._shown_at > 0.1 or self.ended == self.planned):
            self._shown_at = now
            self._bar.update(self._task, total=self.planned, completed=self.ended, description=self.line())
        elif not self._live and now - self._spoke_at > EVERY:
            self._spoke_at = now
            self._console.print(f"{self.ended}{'' if self.planned is None else f'/{self.planned}'}  {self.line()}")

    def _wait(self, event: BatchesAsked) -> None:
        """Show how far batches are: in a terminal in place of the last line, else in a line for each look."""
        if event.round != self._round:
            self._round = event.round
            asked, number = f"{count(event.requests, 'request')} to {', '.join(event.models)}", len(event.batches)
            batches = "1 batch" if number == 1 else f"{number:,} batches"
            self._console.print(safe(f"round {event.round}: {asked} in {batches}"), soft_wrap=True)
        if self._live:
            self._bar.update(self._task, total=event.requests, completed=event.settled, description=batch_line(event))
        else:
            self._console.print(safe(f"{event.settled:,}/{event.requests:,}  {batch_line(event)}"), soft_wrap=True)

    def line(self) -> str:
        """Return the figures so far."""
        mean = f"mean {self._sum / self._scored:.3f}" if self._scored else "nothing scored"
        errors = f" · {self.failed} with errors" if self.failed else ""
        turns = f" · {self.turns} turns" if self.turns else ""
        return f"{mean}{errors}{turns}"

    def interrupted(self, at_work: int) -> None:
        """Print what an interruption does."""
        what = f"finishing {count(at_work, 'conversation')}; press again to stop them now" if at_work else "stopping"
        self._console.print(what)


def batch_line(event: BatchesAsked) -> str:
    """Return since when batches are with their services, and when they are looked at again."""
    broken = f"{event.broken:,} without an answer · " if event.broken else ""
    trouble = f" · {one_line(event.trouble, 120)}" if event.trouble else ""
    since = time.strftime("%H:%M", time.localtime(event.since))
    return f"answered · {broken}sent at {since}, next look in {event.wait:.0f} s{trouble}"


def execute(work: Execution, progress: RunProgress) -> RunResult:
    """Do work and wait for it, showing its progress; what the target prints is not a result, so it goes to stderr."""
    with progress, _output_to_stderr():
        return execute_or_stop(work, lambda: progress.interrupted(work.stop()))


@contextmanager
def _output_to_stderr() -> Generator[None]:
    """Send standard output to standard error, also that of other programs, which know nothing of Python's."""
    sys.stdout.flush()
    with ExitStack() as stack:
        with suppress(OSError):  # one of the two is closed
            kept = os.dup(1)
            stack.callback(os.close, kept)
            os.dup2(2, 1)
            stack.callback(os.dup2, kept, 1)
        stack.enter_context(redirect_stdout(sys.stderr))
        yield
