"""What failed in a graded run, without the messages of its conversations, except for the errors of tools."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from sqlalchemy import Connection, or_, select

from vivavoce.records.call_states import error_of
from vivavoce.records.run import AttemptKey, FailureRow, ToolError
from vivavoce.records.score import Finding
from vivavoce.records.trajectory import tool_results
from vivavoce.store.database.database import AnyRow
from vivavoce.store.database.schema import scores, turns
from vivavoce.store.runs.decode import failure_of_text, turn_of
from vivavoce.store.runs.reading import Page, Reader

AT_ONCE = 500
"""Conversations whose turns are read at a time."""


def failing(reader: Reader, grading_id: str) -> Iterator[FailureRow]:
    """Yield the errors and the scores that did not pass, one conversation after the other."""
    s = scores.c
    columns = (s.attempt_id, s.name, s.turn, s.state, s.reason, s.findings, s.failure)
    bad = or_(s.state == "error", s.passed == 0)
    query = select(*columns).where(s.grading_id == grading_id, s.kind == "grade", bad)
    query = query.order_by(s.attempt_id, s.id)

    def read_page(connection: Connection, page: Page) -> list[FailureRow]:
        numbers = [row.id for row in page]
        rows = connection.execute(query.where(s.attempt_id.in_(numbers))).all()
        by_attempt = {number: list(group) for number, group in groupby(rows, attrgetter("attempt_id"))}
        tools = _tool_errors(connection, list(by_attempt))
        found: list[FailureRow] = []
        for one in page:
            key = AttemptKey(one.sample_id, one.target, one.trial)
            if (failure := failure_of_text(one.failure)) is not None:
                found.append(FailureRow(key, None, None, failure.message, failure=failure))
            else:
                found += _of_graders(key, by_attempt.get(one.id, ()), tools.get(one.id, ()))
        return found

    return reader.by_page(read_page)


def _of_graders(key: AttemptKey, rows: Sequence[AnyRow], tools: Sequence[ToolError]) -> Iterator[FailureRow]:
    by_turn = {row.name for row in rows if row.turn is not None}
    for row in rows:
        if row.turn is None and row.name in by_turn:
            continue
        errors = tuple(one for one in tools if row.turn in (None, one.turn))
        failure = failure_of_text(row.failure) if row.state == "error" else None
        listed: list[dict[str, Any]] = json.loads(row.findings or "[]")
        findings = tuple(Finding.model_validate(one) for one in listed if one.get("state") == "fail")
        yield FailureRow(key, row.name, row.turn, row.reason or "", findings, failure, errors)


def _tool_errors(connection: Connection, numbers: Sequence[int]) -> Mapping[int, list[ToolError]]:
    """Return the errors that tools returned, by conversation."""
    found: dict[int, list[ToolError]] = {}
    for start in range(0, len(numbers), AT_ONCE):
        some = numbers[start : start + AT_ONCE]
        query = select(turns).where(turns.c.attempt_id.in_(some)).order_by(turns.c.attempt_id, turns.c.idx)
        for row in connection.execute(query):
            if '"tool_call' in row.messages:
                found.setdefault(row.attempt_id, []).extend(_errors_of(row))
    return found


def _errors_of(row: AnyRow) -> Iterator[ToolError]:
    for call, result in tool_results(turn_of(row).messages):
        if result is not None and (error := error_of(result)) is not None:
            yield ToolError(row.idx, call.function.name, error)
