"""How numbers and times are written on a page, always in the same way."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from vivavoce.comparing.thresholds import score_text, share_text
from vivavoce.safe_text import safe


def score(value: float | None, digits: int = 2) -> str:
    """Return a score, or a dash if there is none."""
    return "–" if value is None else score_text(value, digits)


def percent(share: float | None) -> str:
    """Return a share between 0 and 1 as a percentage."""
    return "–" if share is None else share_text(share)


def span(seconds: float | None) -> str:
    """Return a duration in seconds as text, in a suitable unit."""
    if seconds is None:
        return "–"
    if seconds < 0.001:
        return "under 1 ms"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def clock(seconds: float) -> str:
    """Return the time of day, of seconds since the epoch."""
    return datetime.fromtimestamp(seconds).strftime("%H:%M")


def day(seconds: float) -> str:
    """Return the day, of seconds since the epoch, with its name."""
    then = datetime.fromtimestamp(seconds)
    return f"{then:%A} {then.day} {then:%B %Y}"


def date(seconds: float) -> str:
    """Return the day without its name, of seconds since the epoch."""
    then = datetime.fromtimestamp(seconds)
    return f"{then.day} {then:%b %Y}"


def indented(data: Any) -> str:
    """Return data as JSON that people read."""
    return safe(json.dumps(data, indent=2, ensure_ascii=False, default=str))
