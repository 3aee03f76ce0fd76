"""What realism says, as rows and lines that the terminal and Markdown share."""

from __future__ import annotations

from collections.abc import Iterator

from vivavoce.report.realism.change import Change, FeatureChange
from vivavoce.report.realism.differences import FeatureDifference
from vivavoce.report.realism.kinds import Kind
from vivavoce.report.realism.realism import Realism, Side
from vivavoce.report.realism.wording import (
    apart_in_words,
    difference_in_words,
    pairs_in_words,
    value_in_words,
    with_interval,
)
from vivavoce.report.text import count
from vivavoce.safe_text import safe

HEADS = ("feature", "simulated", "real, 95% interval", "difference, 95% interval", "simulated has more", "differs")
"""What is said of each feature; `simulated has more`: in which part of all pairs."""
CHANGE_HEADS = ("feature", "earlier", "later", "real", "the later run is")

_DIRECTIONS = {"closer": "closer", "farther": "farther", "past": "closer, on the other side"}


def feature_cells(one: FeatureDifference) -> list[str]:
    """Return what is said of a feature, in the order of `HEADS`."""
    return [
        one.name,
        value_in_words(one.simulated.mean, one.unit),
        with_interval(one.real, one.unit),
        difference_in_words(one),
        pairs_in_words(one),
        "yes" if one.differs else "–" if one.p_value is None else "no",
    ]


def change_cells(one: FeatureChange) -> list[str]:
    """Return what is said of a feature that moved, in the order of `CHANGE_HEADS`."""
    values = [value_in_words(value, one.unit) for value in (one.earlier, one.later, one.real)]
    return [one.name, *values, _DIRECTIONS[one.direction]]


def side_line(what: str, side: Side) -> str:
    """Return what one side is."""
    languages = ", ".join(f"{name} {number:,}" for name, number in side.languages.items())
    return f"{what}: {safe(side.name)}, {count(side.conversations, 'conversation')} ({languages})"


def sides(found: Realism) -> Iterator[str]:
    """Yield what both sides are."""
    yield side_line("simulated", found.simulated)
    yield side_line("real, the half that is held back" if found.held_back else "real", found.real)


def apart_lines(found: Realism) -> Iterator[str]:
    """Yield what the classifiers can do."""
    yield from map(apart_in_words, found.apart)


def kind_line(one: Kind) -> str:
    """Return what a kind of real user is, and how many simulated ones are of it."""
    interval = "" if one.simulated_low is None else f" [{one.simulated_low:.0%}, {one.simulated_high:.0%}]"
    rarer = "" if not one.rarer else "; no simulated user is like them" if one.simulated == 0 else "; too few simulated"
    return f"{one.real:.0%} of real users, {one.simulated:.0%}{interval} of simulated ones{rarer}"


def change_lines(change: Change) -> Iterator[str]:
    """Yield what came closer since an earlier run."""
    farther = len([one for one in change.features if one.direction == "farther"])
    closer = count(len(change.features) - farther, "feature")
    yield f"since {safe(change.earlier)} {closer} came closer to real users, {farther:,} went farther"
    if change.after.features is not None and change.before.features is not None:
        features = [_pairs(one.features, one.low, one.high) for one in (change.after, change.before)]
        yield f"on average over features, one side has more in {features[0]}; before, in {features[1]}; 50% is alike"
    after, before = change.after.classifier, change.before.classifier
    if after.right is None or before.right is None:
        yield f"classifier: not said: {after.note or before.note}"
        return
    told = [_pairs(one.right, one.low, one.high) for one in (after, before)]
    yield f"the classifier picks the simulated one in {told[0]}; before, in {told[1]}"


def _pairs(value: float | None, low: float | None, high: float | None) -> str:
    interval = "" if low is None or high is None else f" [{low:.0%}, {high:.0%}]"
    return f"{value:.0%} of pairs{interval}"
