"""The forecast of a run, in words: how many calls it would make."""

from __future__ import annotations

from vivavoce.report.text import count
from vivavoce.suites.forecast import Forecast


def forecast_line(found: Forecast) -> str:
    """Return in words how many calls a run would make."""
    verdicts = f"{'at most ' if found.confirms and not found.led else ''}{count(found.verdicts, 'judge verdict')}"
    if not found.targets:
        held = f"{count(found.conversations, 'recorded conversation')}, {count(found.turns, 'turn')}"
        return f"{held}; no target is called, {verdicts}"
    most = "at most " if found.led else ""
    judging = f", about as many calls to the tester, {most}{verdicts}" if found.led else f", {verdicts}"
    product = " × ".join((count(found.samples, "sample"), count(found.targets, "target"), count(found.trials, "trial")))
    return (
        f"{product} = {count(found.conversations, 'conversation')}; "
        f"{most}{count(found.messages, 'message')} to the target"
        f"{judging}, {found.concurrency} at a time{' for each target' * (found.targets > 1)}"
    )
