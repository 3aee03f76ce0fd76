"""The forecast of a run, in words: how many calls it would make, and what it would use as the run before it did."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from vivavoce.cli.output import notes, out
from vivavoce.errors import UsageError
from vivavoce.lazy_names import lazy
from vivavoce.records.details import by_role
from vivavoce.report.details import latency_lines
from vivavoce.report.text import count
from vivavoce.run.summary import Summary
from vivavoce.safe_text import safe
from vivavoce.suites.check import Checked
from vivavoce.suites.forecast import Forecast

if TYPE_CHECKING:  # there may be no store yet
    from vivavoce.store.store import Store


def forecast_line(found: Forecast) -> str:
    """Return in words how many calls a run would make."""
    fewer = found.depends and not (found.led or found.early)
    verdicts = f"{'at most ' if fewer else ''}{count(found.verdicts, 'judge verdict')}"
    if not found.targets:
        held = f"{count(found.conversations, 'recorded conversation')}, {count(found.turns, 'turn')}"
        return f"{held}; no target is called, {verdicts}"
    most = "at most " if found.led or found.early else ""
    tested = ", about as many calls to the tester" if found.led else ""
    judging = f"{tested}, {most if found.verdicts else ''}{verdicts}"
    early = "at most " if found.early else ""
    trials = f"{early}{count(found.trials, 'trial')}"
    product = " × ".join((count(found.samples, "sample"), count(found.targets, "target"), trials))
    return (
        f"{product} = {early}{count(found.conversations, 'conversation')}; "
        f"{most}{count(found.messages, 'message')} to the target{'s' * (found.targets > 1)}"
        f"{judging}, {_at_a_time(found)}"
    )


def _at_a_time(found: Forecast) -> str:
    if found.targets == 1:
        return f"{next(iter(found.fewer.values()), found.concurrency)} at a time"
    fewer = "".join(f", {most} for {safe(name)}" for name, most in found.fewer.items())
    return f"{found.concurrency} at a time for each target{fewer}"


def print_forecast(found: Checked, place: str) -> None:
    """Print how many calls a run of a suite would make, and what it would use; `place` is the store."""
    suite = found.prepared.suite
    for note in suite.notes:
        notes().print(note, style="dim", soft_wrap=True)
    out().print(forecast_line(found.forecast))
    for line in expected_lines(place, suite.spec.name, found.forecast.conversations):
        out().print(Text(safe(line), style="dim"))


def expected_lines(place: str, suite: str, conversations: int) -> Iterator[str]:
    """Yield what a run would use, and how long replies would take, by the latest complete run of its suite.

    Nothing where there is no such run, or no store.
    """
    try:
        store: Store = lazy("vivavoce.store.store:Store").open(place, create=False)
    except UsageError:
        return  # there is no store yet, and so no run before
    with store:
        before = next((run for run in store.runs() if run.suite == suite and run.status == "finished"), None)
        grading = None if before is None else store.grading(before.id)
    if before is None or grading is None or grading.summary is None:
        return
    summary = Summary.model_validate(grading.summary)
    times = conversations / max(summary.attempts, 1)
    if used := by_role({role: one.times(times) for role, one in summary.usage.items()}):
        yield f"as run {before.id}: about {used}"
    yield from (f"as run {before.id}: {line}" for line in latency_lines(summary))
