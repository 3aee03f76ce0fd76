"""Can a simple classifier tell simulated conversations from real ones, and which of them give themselves away?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from vivavoce.features.realism.measuring import Both
from vivavoce.stats.classifier import Scored, cross_validated
from vivavoce.stats.ranking import auroc, auroc_interval
from vivavoce.stats.resampling import Floats

MIN_CONVERSATIONS = 20
"""Independent conversations that each side needs."""
EMBEDDED = 500
"""Conversations of each side whose meaning is read, chosen by their content."""
FIRST_WORDS = 48
"""Words from the beginning of what the user says that an embedder reads, about 64 tokens."""

PENALTY = 10.0
PENALTY_OF_MEANING = 100.0
INFLATION = 2.0
"""How much larger the variance of the area is than that of independent values: scores of one fold depend on the others.
Of simulated sides that are alike it was 1.8 to 1.9 times as large; see bench/realism.py and
docs/decisions/0055-realism.md."""

SAME = "both sides are the same conversations"

By = Literal["manner", "manner and meaning"]


class Apart(BaseModel):
    """How well a classifier tells a simulated conversation from a real one.

    `right` is in which part of all pairs, one of each, it scores the simulated one higher, with its 95% interval: 0.5
    is guessing. It is None where there are too few conversations, and `note` says so. `by` is what it knows: the
    features alone, or the vectors of an embedder as well.
    """

    model_config = ConfigDict(frozen=True)

    by: By
    simulated: int
    real: int
    right: float | None = None
    low: float | None = None
    high: float | None = None
    note: str | None = None

    @property
    def can_tell(self) -> bool | None:
        """Whether it tells them apart beyond chance, None where that is not known."""
        return None if self.low is None else self.low > 0.5


@dataclass(frozen=True)
class Classified:
    """A classifier's figures, and what it says of each conversation, None where there are too few."""

    apart: Apart
    scored: Scored | None


def by_manner(both: Both) -> Classified:
    """Tell them apart by the features alone."""
    return _classify("manner", both, both.rows, np.ones(len(both.sides), dtype=bool), PENALTY)


def by_meaning(both: Both, is_selected: NDArray[np.bool_], vectors: Floats) -> Apart:
    """Tell the chosen conversations apart by features and vectors, one vector for each chosen one."""
    spread = vectors * np.sqrt(vectors.shape[1]) if vectors.size else vectors
    rows = np.hstack([both.rows[is_selected], spread])
    return _classify("manner and meaning", both, rows, is_selected, PENALTY_OF_MEANING).apart


def chosen_for_meaning(both: Both) -> NDArray[np.bool_]:
    """Return which conversations an embedder reads: all, or of many those that come first by their content."""
    is_selected = np.zeros(len(both.sides), dtype=bool)
    for which in (both.is_simulated, ~both.is_simulated):
        places = sorted(np.flatnonzero(which).tolist(), key=lambda place: (both.sides[place].content, place))
        is_selected[places[:EMBEDDED]] = True
    return is_selected


def text_to_embed(messages: Sequence[str]) -> str:
    """Return the beginning of what a user says."""
    return " ".join(" ".join(messages).split()[:FIRST_WORDS])


def _classify(by: By, both: Both, rows: Floats, is_selected: NDArray[np.bool_], penalty: float) -> Classified:
    truth = both.is_simulated[is_selected]
    clusters = [both.clusters[place] for place in np.flatnonzero(is_selected)]
    on_each = [
        {cluster for cluster, there in zip(clusters, truth, strict=True) if there == side} for side in (True, False)
    ]
    plain = Apart(by=by, simulated=int(truth.sum()), real=int((~truth).sum()))
    if on_each[0] == on_each[1]:
        return Classified(plain.model_copy(update={"note": SAME}), None)
    if min(map(len, on_each)) < MIN_CONVERSATIONS:
        there = " and ".join(str(len(clusters_of_side)) for clusters_of_side in on_each)
        lacking = f"it needs {MIN_CONVERSATIONS} independent conversations on each side; there are {there}"
        return Classified(plain.model_copy(update={"note": lacking}), None)
    scored = cross_validated(rows, truth, clusters, penalty)
    low, high = auroc_interval(scored.scores, truth, clusters, inflation=INFLATION) or (None, None)
    right = auroc(scored.scores, truth)
    return Classified(plain.model_copy(update={"right": right, "low": low, "high": high}), scored)
