"""Histograms of a run as drawings: bars of equal width, with the ends of their axis and all counts in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vivavoce.records.details import dollars
from vivavoce.report.html.wording import score, span
from vivavoce.safe_text import safe
from vivavoce.store.browse.listing import Histogram

WIDTH, HEIGHT = 160, 48
"""Size of the area of the bars, in pixels."""

_NAMES = {"seconds": "Time", "tokens": "Tokens", "cost": "Cost"}


@dataclass(frozen=True, slots=True)
class Bars:
    """A histogram as drawn: `path` has its bars, `label` all of it in words."""

    name: str
    low: str
    high: str
    path: str
    most: int
    label: str


def drawn(found: Sequence[Histogram], graders: int) -> list[Bars]:
    """Return histograms as drawings; the first `graders` are of scores."""
    return [_bars(one, is_score=place < graders) for place, one in enumerate(found) if any(one.counts)]


def _bars(one: Histogram, *, is_score: bool) -> Bars:
    kind, most, wide = "score" if is_score else one.name, max(one.counts), WIDTH / len(one.counts)
    name = safe(one.name) if is_score else _NAMES[one.name]
    edges = [_said(one.low + (one.high - one.low) * at / len(one.counts), kind) for at in range(len(one.counts) + 1)]
    path = "".join(
        f"M{at * wide + 1:g} {HEIGHT}v-{max(1.0, HEIGHT * number / most):.1f}h{wide - 2:g}V{HEIGHT}z"
        for at, number in enumerate(one.counts)
        if number
    )
    counted = [f"{number:,} from {edges[at]} to {edges[at + 1]}" for at, number in enumerate(one.counts) if number]
    return Bars(name, edges[0], edges[-1], path, most, f"{name}: {', '.join(counted)}")


def _said(value: float, kind: str) -> str:
    match kind:
        case "seconds":
            return span(value)
        case "cost":
            return dollars(value)
        case "tokens":
            return f"{value:,.0f}"
        case _:
            return score(value)
