"""The per-turn grades that `GradeResult.metadata` repeats: left out when stored, put back when read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vivavoce.records.score import GradeResult, TurnGrade

KEY = "per_turn_grades"
FOLDED = "vivavoce:rows"
"""What stands for the repeated grades."""


def own_metadata(grade: GradeResult) -> dict[str, Any]:
    """Return the metadata of a grade without the grades of its turns, which it repeats."""
    if repeats(grade.metadata, grade.per_turn_grades):
        return {key: value for key, value in grade.metadata.items() if key != KEY}
    return grade.metadata


def repeats(metadata: Mapping[str, Any], grades: Sequence[TurnGrade] | None) -> bool:
    """Say whether metadata holds these grades a second time."""
    return bool(grades) and metadata.get(KEY) == [grade.spelled() for grade in grades]


def fold(metadata: dict[str, Any], grades: Sequence[TurnGrade] | None) -> dict[str, Any]:
    """Return metadata without the grades it repeats; where it says something else under that key, it stays."""
    return {**metadata, KEY: FOLDED} if repeats(metadata, grades) else metadata


def unfold(metadata: dict[str, Any], grades: Sequence[TurnGrade] | None) -> dict[str, Any]:
    """Undo `fold`."""
    if grades and metadata.get(KEY) == FOLDED:
        return {**metadata, KEY: [grade.spelled() for grade in grades]}
    return metadata
