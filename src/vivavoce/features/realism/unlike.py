"""The simulated conversations that look least like real ones, and the real ones that no simulated one looks like."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from vivavoce.features.realism.features import FEATURES, Feature
from vivavoce.features.realism.measuring import Both
from vivavoce.features.realism.wording import value_in_words
from vivavoce.report.graded_run import show_command
from vivavoce.report.text import one_line
from vivavoce.stats.classifier import Scored
from vivavoce.stats.resampling import Floats

MAX_CONVERSATIONS = 5
REASONS = 3
USUAL = (5.0, 95.0)
"""Percentiles between which a value is usual."""
MAX_QUOTE_CHARS = 160


class Unlike(BaseModel):
    """A conversation that is unlike those of the other side.

    `odds` is its probability to be a simulated one, as the classifier of manner sees it where both sides are equally
    many. `reasons` are the features that say so, each with what is usual on the other side. `says` is the beginning of
    the user's first message; `command` shows the conversation, None of a file.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    odds: float
    reasons: list[str]
    says: str
    command: str | None = None


def least_likely(both: Both, scored: Scored, options: tuple[str, ...] = ()) -> list[Unlike]:
    """Return the simulated conversations that look least like real ones, the least likely first."""
    places = np.flatnonzero(both.is_simulated)
    order = places[np.argsort(-scored.scores[places], kind="stable")]
    run = both.simulated.run
    return [
        _unlike(both, scored, int(place), None if run is None else show_command(run, both.sides[place].name, options))
        for place in _one_of_each(both, order)
    ]


def least_resembled(both: Both, scored: Scored) -> list[Unlike]:
    """Return the real conversations that look least like simulated ones, the least resembled first."""
    places = np.flatnonzero(~both.is_simulated)
    order = places[np.argsort(scored.scores[places], kind="stable")]
    run = both.real.run
    return [
        _unlike(both, scored, int(place), None if run is None else show_command(run, both.sides[place].name))
        for place in _one_of_each(both, order)
    ]


def _one_of_each(both: Both, order: NDArray[np.intp]) -> list[int]:
    """Return the first places, of those that came of one sample, or begin alike, the first alone."""
    places: list[int] = []
    seen: set[str] = set()
    for place in map(int, order):
        like = {both.clusters[place], both.sides[place].messages[0]}
        if not like & seen:
            places.append(place)
        seen |= like
        if len(places) == MAX_CONVERSATIONS:
            break
    return places


def _unlike(both: Both, scored: Scored, place: int, command: str | None) -> Unlike:
    side = both.sides[place]
    return Unlike(
        name=side.name,
        odds=float(1 / (1 + np.exp(-np.clip(scored.scores[place], -30, 30)))),
        reasons=list(_reasons(both, scored, place)),
        says=one_line(side.messages[0], MAX_QUOTE_CHARS),
        command=command,
    )


def _reasons(both: Both, scored: Scored, place: int) -> Iterator[str]:
    """Yield the features that count most for the side that a conversation is on, and are unusual on the other one."""
    simulated = bool(both.is_simulated[place])
    towards = scored.contributions[place] * (1 if simulated else -1)
    others = both.rows[both.is_simulated != simulated]
    number = 0
    for column in map(int, np.argsort(-towards, kind="stable")):
        if towards[column] <= 0 or number == REASONS:
            break
        reason = _reason(FEATURES[column], float(both.rows[place, column]), others[:, column])
        if reason is not None:
            number += 1
            yield reason
    if not number:
        yield "no single feature is unusual; together they are"


def _reason(feature: Feature, value: float, others: Floats) -> str | None:
    """Return a value next to what is usual on the other side, None where it is that itself."""
    known = others[~np.isnan(others)]
    if not len(known):
        return None
    low, high = map(float, np.percentile(known, USUAL))
    if low <= value <= high:
        return None
    ends = [value_in_words(end, feature.unit) for end in (low, high)]
    usual = " to ".join(dict.fromkeys(ends))
    return f"{feature.name}: {value_in_words(value, feature.unit)} (usual: {usual})"
