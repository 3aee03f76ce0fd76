"""Results of metrics as tables, and a test with its turns and what was judged of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from vivavoce.metrics.evaluation import EvaluationReport
from vivavoce.records.score import Score
from vivavoce.samples.table import Table, table_of

if TYPE_CHECKING:
    from vivavoce.penelope.result import TestResult
    from vivavoce.penelope.turn import Turn

_METRICS = {
    "metric": "string",
    "state": "string",
    "score": "string",
    "value": "double",
    "passed": "bool",
    "confidence": "double",
    "reason": "string",
    "failure_kind": "string",
    "failure_message": "string",
}
_TURNS = {
    "turn": "int32",
    "user": "string",
    "assistant": "string",
    "tool": "string",
    "reasoning": "string",
    "seconds": "double",
    "failure_kind": "string",
    "failure_message": "string",
}


def report_table(report: EvaluationReport, name: str) -> Table:
    """Return the one table of a report: a row for each metric."""
    del name
    return _metrics(report)


def tested_table(result: TestResult, name: str) -> Table:
    """Return a table of a test: `turns` or `metrics`."""
    return table_of(map(_turn, result.history), _TURNS) if name == "turns" else _metrics(result.evaluation)


def _metrics(results: Mapping[str, Score]) -> Table:
    return table_of(({"metric": name, **_metric(score)} for name, score in results.items()), _METRICS)


def _metric(score: Score) -> dict[str, object]:
    failure = score.failure
    return {
        **score.model_dump(include={"state", "value", "passed", "confidence", "reason"}),
        "score": None if score.raw is None else str(score.raw),
        "failure_kind": failure and failure.kind,
        "failure_message": failure and failure.message,
    }


def _turn(turn: Turn) -> dict[str, object]:
    failure = turn.exchange.failure
    return {
        "turn": turn.turn_number,
        "user": turn.message,
        "assistant": turn.reply or None,
        "tool": turn.tool_name,
        "reasoning": turn.reasoning or None,
        "seconds": turn.exchange.seconds,
        "failure_kind": failure and failure.kind,
        "failure_message": failure and failure.message,
    }
