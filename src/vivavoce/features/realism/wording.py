"""Figures of realism in words, for every reader alike."""

from __future__ import annotations

from vivavoce.features.realism.differences import FeatureDifference, Figure
from vivavoce.features.realism.telling_apart import FIRST_WORDS, Apart

NOTHING = "–"


def value_in_words(value: float | None, unit: str) -> str:
    """Return a value of a feature: a share in percent, a count with a decimal place unless it is large or whole."""
    if value is None:
        return NOTHING
    if unit == "share":
        return f"{value:.0%}" if value in (0, 1) or abs(value) >= 0.1 else f"{value:.1%}"
    if unit == "ratio":
        return f"{value:.2f}"
    return f"{value:.0f}" if abs(value) >= 100 or value == round(value) else f"{value:.1f}"


def with_interval(figure: Figure, unit: str) -> str:
    """Return a mean with its interval: `11.0 [9.0, 13.0]`."""
    mean = value_in_words(figure.mean, unit)
    if figure.low is None or figure.high is None:
        return mean
    return f"{mean} [{value_in_words(figure.low, unit)}, {value_in_words(figure.high, unit)}]"


def difference_in_words(change: FeatureDifference) -> str:
    """Return a difference with its interval, each with its sign."""
    if change.difference is None:
        return NOTHING
    value, low, high = (
        None if number is None else _format_signed(number, change.unit)
        for number in (change.difference, change.low, change.high)
    )
    return f"{value}" if low is None or high is None else f"{value} [{low}, {high}]"


def pairs_in_words(difference: FeatureDifference) -> str:
    """Return in which part of pairs the simulated conversation has more."""
    return NOTHING if difference.higher is None else f"{difference.higher:.0%}"


def sentence(difference: FeatureDifference) -> str:
    """Return a difference as a phrase: `words a message 38.0, of real users 11.0 [9.0, 13.0]`."""
    simulated = value_in_words(difference.simulated.mean, difference.unit)
    return f"{difference.name} {simulated}, real users {with_interval(difference.real, difference.unit)}"


def apart_in_words(apart: Apart) -> str:
    """Return what a classifier can do, in one sentence."""
    about = (
        f"what they are about (the first {FIRST_WORDS} words of {apart.simulated:,} and {apart.real:,} conversations)"
    )
    knows = {"manner": "how they are written", "manner and meaning": f"how they are written and {about}"}
    if apart.right is None or apart.low is None or apart.high is None:
        return f"by {knows[apart.by]}: no result: {apart.note or 'too little data'}"
    figures = f"{apart.right:.0%} of pairs [{apart.low:.0%}, {apart.high:.0%}]"
    verdict = "" if apart.can_tell else ", so it cannot distinguish them"
    return f"by {knows[apart.by]}, a simple classifier picks the simulated one in {figures}; 50% is guessing{verdict}"


def _format_signed(value: float, unit: str) -> str:
    text = value_in_words(abs(value), unit)
    return f"{'−' if value < 0 else '+'}{text}"
