"""The table of samples that a tracker shows: a row for each score of a conversation, with what was said."""

from __future__ import annotations

from collections.abc import Iterator

from vivavoce.records.counting import to_number
from vivavoce.records.run import Outcome
from vivavoce.records.score import Score
from vivavoce.report.graded_run import GradedRun
from vivavoce.safe_text import encodable

COLUMNS = ("sample", "target", "trial", "grader", "state", "score", "passed", "reason", "conversation", "seconds")
Cell = str | int | float | bool | None


def sample_cells(graded: GradedRun) -> Iterator[tuple[Cell, ...]]:
    """Yield the cells of each row, in the order of `COLUMNS`; the score is text, for metrics score in several ways."""
    for outcome in graded.outcomes():
        said = _said(outcome)
        scores = {**outcome.scores, **({} if outcome.reward is None else {"reward": outcome.reward})}
        for name, score in scores.items():
            yield _cells(outcome, name, score, said)


def _cells(outcome: Outcome, name: str, score: Score, said: str) -> tuple[Cell, ...]:
    key = outcome.attempt.key
    value = score.raw if isinstance(score.raw, str) or score.value is None else score.value
    cells: tuple[Cell, ...] = (
        key.sample_id,
        key.target,
        to_number(key.trial),
        name,
        score.state,
        None if value is None else str(value),
        score.passed,
        score.reason,
        said,
        outcome.attempt.trajectory.seconds,
    )
    return tuple(encodable(cell) if isinstance(cell, str) else cell for cell in cells)


def _said(outcome: Outcome) -> str:
    return "\n".join(f"{one.role}: {one.text}" for one in outcome.attempt.trajectory.messages if one.text)
