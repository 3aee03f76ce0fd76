"""The forecast of a run, in words: how many calls it would make, and what it would use as the run before it did."""

from __future__ import annotations

from rich.text import Text

from vivavoce.cli.output import notes, out
from vivavoce.lazy_names import lazy
from vivavoce.report.text import count
from vivavoce.safe_text import safe
from vivavoce.store.database.address import is_postgresql, path_of
from vivavoce.suites.check import Checked, Forecast


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
    if is_postgresql(place) or path_of(place).exists():
        expected_lines = lazy("vivavoce.report.graded_run:expected_lines")
        for line in expected_lines(place, suite.spec.name, found.forecast.conversations):
            out().print(Text(safe(line), style="dim"))
