"""A graded run as tables: its samples, its scores, its turns, and what people labelled.

Turns and trials count from 1, as in the flat rows. A table of samples or of turns has two columns for each grader,
`score.NAME` and `passed.NAME`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing

from vivavoce.messages import HumanMessage
from vivavoce.records.run import Outcome
from vivavoce.records.score import Score, to_number
from vivavoce.records.trajectory import Trajectory, Turn, assistant_texts, made_calls
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.rows import TYPES, flat_rows
from vivavoce.report.strict_json import strict_json
from vivavoce.run.summary import RunResult
from vivavoce.samples.table import Table, table_of
from vivavoce.store.store import Store

Cells = dict[str, object]

_CONVERSATION = {"run": "string", "grading": "string", "sample_id": "string", "target": "string", "trial": "int32"}
_USED = {
    "seconds": "double",
    "input_tokens": "int64",
    "output_tokens": "int64",
    "cost": "double",
    "failure_kind": "string",
    "failure_message": "string",
}
_SAMPLES = {
    **_CONVERSATION,
    "scenario": "string",
    "started_at": "double",
    "turns": "int32",
    "user": "string",
    "assistant": "string",
    **_USED,
}
_TURNS = {
    **_CONVERSATION,
    "turn": "int32",
    "user": "string",
    "assistant": "string",
    "tool_calls": "string",
    **_USED,
}
_LABELS = {
    **_CONVERSATION,
    "turn": "int32",
    "grader": "string",
    "author": "string",
    "verdict": "string",
    "note": "string",
    "blind": "bool",
    "created_at": "double",
}


def result_table(result: RunResult, name: str) -> Table:
    """Return a table of a result, read from its store."""
    with closing(Store.open(result.place, create=False)) as store:
        return run_table(GradedRun(store, result.run, result.grading), name)


def run_table(graded: GradedRun, name: str) -> Table:
    """Return a table of a graded run: `samples`, `scores`, `turns` or `labels`."""
    return _MAKERS[name](graded)


def _scores(graded: GradedRun) -> Table:
    return table_of((row._asdict() for row in flat_rows(graded.store, graded.run, graded.grading)), TYPES)


def _samples(graded: GradedRun) -> Table:
    outcomes = ({**_place(graded, one), **_sample(one)} for one in graded.outcomes())
    return _with_graders(outcomes, _SAMPLES)


def _turns(graded: GradedRun) -> Table:
    rows = (
        {**_place(graded, one), **_turn(turn), **_scored(_of_turn(one, turn.index))}
        for one in graded.outcomes()
        for turn in one.attempt.trajectory.turns
    )
    return _with_graders(rows, _TURNS)


def _labels(graded: GradedRun) -> Table:
    known = {"run": graded.run.id, "grading": graded.grading.id}
    rows = (
        {
            **label.model_dump(),
            **known,
            "trial": to_number(label.trial),
            "turn": None if label.turn is None else to_number(label.turn),
        }
        for label in graded.store.labels.all(graded.run.id)
    )
    return table_of(rows, _LABELS)


_MAKERS: Mapping[str, Callable[[GradedRun], Table]] = {
    "samples": _samples,
    "scores": _scores,
    "turns": _turns,
    "labels": _labels,
}


def _with_graders(rows: Iterable[Cells], types: Mapping[str, str]) -> Table:
    """Return a table with a column for each grader next to those of `types`."""
    kept = list(rows)
    graders = dict.fromkeys(column for row in kept for column in row if column not in types)
    found = {column: "bool" if column.startswith("passed.") else "double" for column in graders}
    return table_of(kept, {**types, **found})


def _place(graded: GradedRun, outcome: Outcome) -> Cells:
    key = outcome.attempt.key
    names = {"run": graded.run.id, "grading": graded.grading.id, "sample_id": key.sample_id, "target": key.target}
    return {**names, "trial": to_number(key.trial)}


def _sample(outcome: Outcome) -> Cells:
    attempt, talk = outcome.attempt, outcome.attempt.trajectory
    used = talk.usage if any(turn.usage for turn in talk.turns) else None
    scores = outcome.scores if outcome.reward is None else {**outcome.scores, "reward": outcome.reward}
    return {
        "scenario": attempt.scenario,
        "started_at": attempt.started_at,
        "turns": len(talk.turns),
        **_said(talk.turns[-1] if talk.turns else None),
        **_used(talk),
        "input_tokens": used and used.input_tokens,
        "output_tokens": used and used.output_tokens,
        "cost": used and used.cost,
        **_scored(scores.items()),
    }


def _turn(turn: Turn) -> Cells:
    calls = made_calls(turn.messages)
    return {
        "turn": to_number(turn.index),
        **_said(turn),
        "tool_calls": strict_json([call.function for call in calls]) if calls else None,
        **_used(turn),
        "input_tokens": turn.usage and turn.usage.input_tokens,
        "output_tokens": turn.usage and turn.usage.output_tokens,
        "cost": turn.usage and turn.usage.cost,
    }


def _said(turn: Turn | None) -> Cells:
    """Return what the user and the assistant said last."""
    messages = [] if turn is None else turn.messages
    user = next((message.text for message in messages if isinstance(message, HumanMessage)), None)
    return {"user": user, "assistant": "\n".join(filter(None, assistant_texts(messages))) or None}


def _used(held: Turn | Trajectory) -> Cells:
    failure = held.failure
    kind, message = (None, None) if failure is None else (failure.kind, failure.message)
    return {"seconds": held.seconds, "failure_kind": kind, "failure_message": message}


def _of_turn(outcome: Outcome, index: int) -> Iterator[tuple[str, Score]]:
    for name, score in outcome.scores.items():
        yield from ((name, turn) for turn in score.turns or () if turn.turn == index)


def _scored(scores: Iterable[tuple[str, Score]]) -> Cells:
    cells: Cells = {}
    for name, score in scores:
        if score.measured is not None:
            cells[f"measured.{name}"] = score.measured
        else:
            cells |= {f"score.{name}": score.value, f"passed.{name}": score.passed}
    return cells
