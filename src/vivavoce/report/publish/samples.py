"""The tables that a tracker shows: a row for each score of a conversation, and a row for each label of people."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from vivavoce.records.run import AttemptKey, Outcome
from vivavoce.records.score import Score, to_number
from vivavoce.report.graded_run import GradedRun
from vivavoce.safe_text import encodable

COLUMNS = (
    *("sample", "target", "trial", "grader", "state", "score", "passed", "label"),
    *("reason", "conversation", "seconds"),
)
LABEL_COLUMNS = ("sample", "target", "trial", "turn", "grader", "author", "verdict", "note", "blind")
Cell = str | int | float | bool | None


def sample_cells(graded: GradedRun) -> Iterator[tuple[Cell, ...]]:
    """Yield the cells of each row, in the order of `COLUMNS`; the score is text, for metrics score in several ways.

    `label` is what people said of the whole conversation to the question of the grader.
    """
    labels = _verdicts(graded)
    for outcome in graded.outcomes():
        said = _said(outcome)
        scores = {**outcome.scores, **({} if outcome.reward is None else {"reward": outcome.reward})}
        for name, score in scores.items():
            yield _cells(outcome, name, score, labels.get((outcome.attempt.key, name)), said)


def label_cells(graded: GradedRun) -> Iterator[tuple[Cell, ...]]:
    """Yield the cells of each label, in the order of `LABEL_COLUMNS`."""
    for label in graded.store.labels.all(graded.run.id):
        turn = None if label.turn is None else to_number(label.turn)
        place = (label.sample_id, label.target, to_number(label.trial), turn, label.grader or None)
        yield _encodable((*place, label.author, label.verdict, label.note, label.blind))


def _verdicts(graded: GradedRun) -> dict[tuple[AttemptKey, str], str]:
    """Return what people said of whole conversations; several answers stand side by side."""
    found: defaultdict[tuple[AttemptKey, str], set[str]] = defaultdict(set)
    for label in graded.store.labels.all(graded.run.id):
        if label.turn is None:
            found[label.key, label.grader].add(label.verdict)
    return {place: ", ".join(sorted(verdicts)) for place, verdicts in found.items()}


def _cells(outcome: Outcome, name: str, score: Score, label: str | None, said: str) -> tuple[Cell, ...]:
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
        label,
        score.reason,
        said,
        outcome.attempt.trajectory.seconds,
    )
    return _encodable(cells)


def _encodable(cells: tuple[Cell, ...]) -> tuple[Cell, ...]:
    return tuple(encodable(cell) if isinstance(cell, str) else cell for cell in cells)


def _said(outcome: Outcome) -> str:
    return "\n".join(f"{one.role}: {one.text}" for one in outcome.attempt.trajectory.messages if one.text)
