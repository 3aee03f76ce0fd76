"""Failures for these tests, and how well groups fit the planted causes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import cast

from report.cases import outcome
from vivavoce.records.run import Outcome
from vivavoce.records.score import Score


def planted_causes(part: str) -> dict[str, list[str]]:
    """Return reasons by their cause."""
    read = json.loads((Path(__file__).parent / "planted.json").read_text())
    return cast("dict[str, list[str]]", read[part])


def fails(sample: str, reason: str, grader: str = "judge") -> Outcome:
    """Return a conversation that failed for a reason."""
    return outcome(sample, {grader: Score(value=0.0, reason=reason)})


def pairs_right(groups: Sequence[int], causes: Sequence[int]) -> tuple[float, float]:
    """Return which part of pairs in one group have one cause, and which part of pairs of one cause are in one group."""
    together = {pair for pair in combinations(range(len(groups)), 2) if groups[pair[0]] == groups[pair[1]]}
    alike = {pair for pair in combinations(range(len(causes)), 2) if causes[pair[0]] == causes[pair[1]]}
    return len(together & alike) / max(1, len(together)), len(together & alike) / len(alike)
