"""The per-turn grades that `GradeResult.metadata` repeats: left out when stored, put back when read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vivavoce.records.score import TurnGrade

KEY = "per_turn_grades"
FOLDED = "vivavoce:rows"
"""What stands for the repeated grades."""


def fold(metadata: dict[str, Any], grades: Sequence[TurnGrade] | None) -> dict[str, Any]:
    """Return metadata without the grades it repeats; where it says something else under that key, it stays."""
    if grades and metadata.get(KEY) == [grade.spelled() for grade in grades]:
        return {**metadata, KEY: FOLDED}
    return metadata


def unfold(metadata: dict[str, Any], grades: Sequence[TurnGrade] | None) -> dict[str, Any]:
    """Undo `fold`."""
    if grades and metadata.get(KEY) == FOLDED:
        return {**metadata, KEY: [grade.spelled() for grade in grades]}
    return metadata
