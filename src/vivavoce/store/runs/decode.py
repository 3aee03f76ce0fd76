"""Rows as records: the reverse of `encode`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from vivavoce.records.run import Attempt, Drawn, Grading, Run
from vivavoce.records.score import Failure, Score, State, Usage, measured_of
from vivavoce.records.trajectory import Turn
from vivavoce.store.browse.status import split_tags
from vivavoce.store.database.database import AnyRow, values_of

Parse: TypeAlias = Callable[[str], Any]


def run_of(row: AnyRow, parse: Parse = json.loads) -> Run:
    """Return a row of `runs` as a record; `parse` may keep the texts that runs of a suite share."""
    texts = {"spec": parse(row.spec), "options": parse(row.options), "tags": split_tags(row.tags)}
    return Run.model_validate({**values_of(row), **texts})


def grading_of(row: AnyRow, parse: Parse = json.loads) -> Grading:
    """Return a row of `gradings` as a record; `parse` may keep the texts that gradings share."""
    held = {name: getattr(row, name) for name in ("spec", "fingerprints", "summary")}
    texts = {name: None if text is None else parse(text) for name, text in held.items()}
    return Grading.model_validate({**values_of(row), **texts, "passed_added": bool(row.passed_added)})


def attempt_of(row: AnyRow, turns: Iterable[AnyRow]) -> Attempt:
    """Return a row of `attempts` and its rows of `turns` as a record."""
    trajectory = {
        "opening": _json(row.opening) or [],
        "turns": [_turn(turn) for turn in turns],
        "session_id": row.session_id,
        "state": _json(row.state),
        "test": _json(row.test),
        "failure": _json(row.failure),
        "seconds": row.seconds,
    }
    drawn = drawn_of(row.stratum, row.probability)
    return Attempt.model_validate(
        {
            "key": (row.sample_id, row.target, row.trial),
            "scenario": row.scenario,
            "sample": row.sample,
            "trajectory": trajectory,
            "started_at": row.started_at,
            "position": row.position,
            **({} if drawn is None else {"drawn": drawn}),
        }
    )


def drawn_of(stratum: int | None, probability: float | None) -> Drawn | None:
    """Return how a conversation was drawn, None where all of a dataset run."""
    return None if stratum is None or probability is None else Drawn(stratum, probability)


def turn_of(row: AnyRow) -> Turn:
    """Return a row of `turns` as a record."""
    return Turn.model_validate(_turn(row))


def scores_of(rows: Sequence[AnyRow]) -> tuple[dict[str, Score], Score | None]:
    """Return the rows of `scores` of one attempt, in the order of their ids, as scores by name and the reward."""
    apart: dict[str, list[Score]] = {}
    for row in rows:
        if row.turn is not None:
            apart.setdefault(row.name, []).append(score_of(row))
    whole = [row for row in rows if row.turn is None]
    found = {row.name: score_of(row, apart.get(row.name, ())) for row in whole if row.kind == "grade"}
    return found, next((score_of(row) for row in whole if row.kind == "reward"), None)


def _turn(row: AnyRow) -> dict[str, Any]:
    return {
        "index": row.idx,
        "messages": json.loads(row.messages),
        "started_at": row.started_at,
        "seconds": row.seconds,
        "usage": _json(row.usage),
        "failure": _json(row.failure),
    }


def score_of(row: AnyRow, turns: Sequence[Score] = ()) -> Score:
    """Return a row of `scores` as a record; `turns` are the scores of its turns."""
    return Score(
        name=row.name,
        turn=row.turn,
        state=row.state,
        value=row.value,
        raw=_json(row.raw),
        passed=None if row.passed is None else bool(row.passed),
        reason=row.reason,
        confidence=row.confidence,
        findings=_json(row.findings) or (),
        other_evidence=_json(row.other_evidence) or (),
        turns=None if row.turns is None else tuple(turns),
        submission=row.submission or "",
        ground_truth=_json(row.ground_truth),
        extra=_json(row.extra) or {},
        failure=failure_of_text(row.failure),
        usage=usage_of_text(row.usage),
        fingerprint=row.fingerprint,
        settings=_json(row.settings) or {},
    )


def measured_in(state: State, value: float | None, raw: str | None) -> float | None:
    """Return the number of a score that is a measurement, from its cells; None for any other score."""
    return None if raw is None or value is not None else measured_of(state, value, _json(raw))


def _json(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def failure_of_text(text: str | None) -> Failure | None:
    """Return the JSON text of a failure as a record, None if there was none."""
    return None if text is None else Failure.model_validate(json.loads(text))


def usage_of_text(text: str | None) -> Usage | None:
    """Return the JSON text of what was used as a record, None if nothing is known."""
    return None if text is None else Usage.model_validate(json.loads(text))
