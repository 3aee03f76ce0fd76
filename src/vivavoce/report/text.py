"""Text from models and targets made safe for a terminal: no control sequences, and one line where one is wanted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what only shows text need not load the engine
    from vivavoce.run.check import Forecast

_CONTROL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[@-_]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)


def safe(text: str) -> str:
    """Return a text without control characters, escape sequences and marks that reverse the reading direction."""
    return _CONTROL.sub("", text).encode("utf-8", "replace").decode()


def count(number: int, noun: str) -> str:
    """Return a number with its noun: `1 sample`, `2 samples`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def forecast_line(found: Forecast) -> str:
    """Return in words what a run would call."""
    verdicts = f"{count(found.verdicts, 'verdict')} of judges"
    if not found.targets:
        held = f"{count(found.conversations, 'recorded conversation')}, {count(found.turns, 'turn')}"
        return f"{held}; no target is called, {verdicts}"
    product = " × ".join((count(found.samples, "sample"), count(found.targets, "target"), count(found.trials, "trial")))
    return (
        f"{product} = {count(found.conversations, 'conversation')}; {count(found.messages, 'message')} to the target, "
        f"{verdicts}, {found.concurrency} at a time"
    )


def one_line(text: str, width: int = 100) -> str:
    """Return a text as one line of at most `width` characters."""
    line = " ".join(safe(text).split())
    return line if len(line) <= width else line[: width - 1] + "…"
