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


def difference_in_words(one: FeatureDifference) -> str:
    """Return a difference with its interval, each with its sign."""
    if one.difference is None:
        return NOTHING
    found = _signed(one.difference, one.unit)
    if one.low is None or one.high is None:
        return found
    return f"{found} [{_signed(one.low, one.unit)}, {_signed(one.high, one.unit)}]"


def pairs_in_words(one: FeatureDifference) -> str:
    """Return in which part of pairs the simulated conversation has more."""
    return NOTHING if one.higher is None else f"{one.higher:.0%}"


def sentence(one: FeatureDifference) -> str:
    """Return a difference as a phrase: `words a message 38.0, of real users 11.0 [9.0, 13.0]`."""
    return (
        f"{one.name} {value_in_words(one.simulated.mean, one.unit)}, of real users {with_interval(one.real, one.unit)}"
    )


def apart_in_words(one: Apart) -> str:
    """Return what a classifier can do, in one sentence."""
    about = f"what they are about (the first {FIRST_WORDS} words of {one.simulated:,} and {one.real:,} conversations)"
    knows = {"manner": "how they are written", "manner and meaning": f"how they are written and {about}"}
    if one.right is None or one.low is None or one.high is None:
        return f"by {knows[one.by]}: not said: {one.note or 'nothing can be said'}"
    figures = f"{one.right:.0%} of pairs [{one.low:.0%}, {one.high:.0%}]"
    verdict = "" if one.can_tell else ", so it cannot distinguish them"
    return f"by {knows[one.by]}, a simple classifier picks the simulated one in {figures}; 50% is guessing{verdict}"


def _signed(value: float, unit: str) -> str:
    text = value_in_words(abs(value), unit)
    return f"{'−' if value < 0 else '+'}{text}"
