"""Sessions and traces of the OpenAI Agents SDK.

A session is in an SQLite file, with an item of OpenAI's Responses in each row; one with branches
(`AdvancedSQLiteSession`) is a conversation for each branch.
Exporters write an object for a trace and for each of its spans. A conversation is a group of traces (`group_id`), or a
trace without one. Spans of OpenAI's Responses have the id of a response, and messages only if the exporter adds them,
as `input` and `response` or `output`.
Source: the tables that the sessions of the package make; what its traces and spans export.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, cast

from vivavoce.conversations.format import Format, Loss, Member, Place, Record, Row
from vivavoce.conversations.shapes import (
    Message,
    drop_empty,
    fields_in,
    objects_in,
    seconds,
    text_in,
    tool_call,
    tool_names,
)
from vivavoce.errors import Problem, UsageError
from vivavoce.features.formats.dialects import as_text, said_in
from vivavoce.features.formats.openai import RESPONSES
from vivavoce.features.formats.sqlite_file import (
    BEGINS,
    Tables,
    find_problem,
    json_in,
    no_such_tables,
    quote_name,
    records_of,
    tables_in,
)
from vivavoce.features.formats.steps import Kind, Step, hand_down
from vivavoce.features.formats.traced import conversations

_COLUMNS = frozenset(("id", "session_id", "message_data", "created_at"))
_MAIN = "main"
_MESSAGES = "SELECT session_id, '{main}', message_data, created_at FROM {table} ORDER BY session_id, id"
_BRANCHES = """
SELECT s.session_id, s.branch_id, m.message_data, m.created_at FROM message_structure s JOIN {table} m
    ON m.id = s.message_id ORDER BY s.session_id, s.branch_id, s.sequence_number
"""


def _records(path: Path) -> Iterator[Record | Problem]:
    """Yield each session of a database, with one session in memory at a time."""

    def sessions(database: sqlite3.Connection) -> Iterator[Record]:
        tables = tables_in(database)
        if (wrong := _wrong(tables)) is not None:
            raise UsageError(Problem(wrong, path))
        ordered = database.execute(_query(tables))
        for number, ((session, branch), rows) in enumerate(groupby(ordered, key=lambda row: row[:2]), 1):
            yield Record(Place(path, number), _session(session, branch, list(rows)))

    return records_of(path, sessions)


def _wrong(tables: Tables) -> str | None:
    if any(columns >= _COLUMNS for columns in tables.values()):
        return None
    return no_such_tables("an OpenAI Agents SDK SQLite file needs a table with session_id and message_data", tables)


def _query(tables: Tables) -> str:
    of_items = next(name for name, columns in tables.items() if columns >= _COLUMNS)
    query = _BRANCHES if "message_structure" in tables else _MESSAGES
    return query.format(table=quote_name(of_items), main=_MAIN)


def _session(session: Any, branch: Any, rows: list[tuple[Any, ...]]) -> Row:
    known: Row = {"created_at": rows[0][3], "updated_at": rows[-1][3]}
    if branch != _MAIN:
        known["branch"] = branch
    identity = str(session) if branch == _MAIN else f"{session}/{branch}"
    return {"id": identity, "items": [json_in(data) for _, _, data, _ in rows], "session_id": session, **known}


SESSIONS = Format(
    "openai-agents",
    "sessions of the OpenAI Agents SDK",
    lambda record: False,  # what its files begin with, and their tables, say what they are
    RESPONSES.read,
    begins=BEGINS,
    wrong_with=lambda path: find_problem(path, lambda database: _wrong(tables_in(database))),
    records=_records,
)


NAME = "openai-agents-traces"
_TRACE, _SPAN = "trace", "trace.span"
_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("generation", "response"), "model"),
    **dict.fromkeys(("agent", "task", "turn"), "agent"),
    "function": "tool",
    **dict.fromkeys(("handoff", "guardrail"), "other"),
}
_OF_SPAN = frozenset(("object", "id", "trace_id", "parent_id", "started_at", "ended_at", "span_data", "error"))
ONLY_AN_ID = "model input and output: the trace has only the response id"


def _fits(record: Record) -> bool:
    return any(map(_is_item, _items(record.fields or {})))


def _is_item(item: Row) -> bool:
    match item.get("object"):
        case "trace":
            return "workflow_name" in item
        case "trace.span":
            return isinstance(item.get("span_data"), dict)
        case _:
            return False


def _items(fields: Row) -> list[Row]:
    """Return the traces and spans of a record: itself, or those that an exporter sent at once."""
    return [fields] if "object" in fields else objects_in(fields.get("data"))


def _read(records: Iterable[Record], loss: Loss) -> Iterator[tuple[Place, Row]]:
    return conversations(_members(records, loss), _steps, _beside, loss)


def _members(records: Iterable[Record], loss: Loss) -> Iterator[Member]:
    for record in records:
        items = _items(record.fields or {})
        if not items:
            loss.add_broken("a record is neither a trace nor a span of the OpenAI Agents SDK")
        for item in items:
            trace = text_in(item.get("id" if item.get("object") == _TRACE else "trace_id"))
            if not _is_item(item) or trace is None:
                loss.add_broken("an object is neither a trace nor a span of the OpenAI Agents SDK")
            elif item["object"] == _TRACE:
                yield Member(record.place, item, trace, text_in(item.get("group_id")), _TRACE)
            else:
                identity, parent = text_in(item.get("id")), text_in(item.get("parent_id"))
                yield Member(record.place, item, trace, None, identity, parent, seconds(item.get("started_at")))


def _spans(of_group: list[Member]) -> Iterator[tuple[Member, Row, Row]]:
    for member in of_group:
        item = cast("Row", member.value)
        if item["object"] == _SPAN:
            yield member, item, cast("Row", item["span_data"])


def _steps(of_group: list[Member], loss: Loss) -> list[Step]:
    steps = [_step(member, span, data, loss) for member, span, data in _spans(of_group)]
    hand_down(steps)
    return steps


def _step(member: Member, span: Row, data: Row, loss: Loss) -> Step:
    loss.stands_at(member.place)
    kind = _KINDS.get(_type_of(data) or "")
    if kind is None:
        loss.add_dropped(f"a span of the type {text_in(data.get('type'))}")
    identity = member.identity or f"line {member.place.line}"
    step = Step(member.trace, identity, member.parent, kind or "other", member.time, seconds(span.get("ended_at")))
    match kind:
        case "model":
            step.inputs, step.outputs = said_in(data.get("input"), "input", loss), _output_messages(data, loss)
            if not step.has_messages and text_in(data.get("response_id")):
                loss.add_dropped(ONLY_AN_ID)
        case "agent" if data.get("type") == "agent":
            step.agent, step.tools = text_in(data.get("name")), tool_names(data.get("tools"))
        case "tool":
            step.call = tool_call(None, text_in(data.get("name")) or "unknown", data.get("input"))
            step.result = None if data.get("output") is None else as_text(data["output"])
        case "other" if data.get("type") == "handoff":
            sender, receiver = text_in(data.get("from_agent")), text_in(data.get("to_agent"))
            step.handoff = None if sender is None or receiver is None else (sender, receiver)
        case _:
            pass
    step.about = _about(span, data)
    for key in span.keys() - _OF_SPAN if kind != "model" else ():
        loss.add_dropped(f"'{key}' of a span")
    return step


def _type_of(data: Row) -> str | None:
    """Return the type of a span; those of runs and of their turns are written as custom ones."""
    return text_in(fields_in(data.get("data")).get("sdk_span_type")) or text_in(data.get("type"))


def _output_messages(data: Row, loss: Loss) -> list[Message]:
    response = fields_in(data.get("response"))
    return said_in(data.get("output") or response.get("output"), "output", loss)


def _about(span: Row, data: Row) -> Row:
    usage, wrong = fields_in(data.get("usage")), fields_in(span.get("error"))
    counts = {name: usage[name] for name in ("input_tokens", "output_tokens") if type(usage.get(name)) is int}
    others = {key: value for key, value in span.items() if key not in _OF_SPAN}
    return drop_empty(
        {
            "model": text_in(data.get("model")) or text_in(fields_in(data.get("response")).get("model")),
            "usage": counts,
            "response_id": text_in(data.get("response_id")),
            "error": text_in(wrong.get("message")) or ("error" if wrong else None),
            **others,
        }
    )


def _beside(of_group: list[Member], loss: Loss) -> Row:
    metadata: Row = {}
    guardrails: list[Row] = []
    for member in of_group:
        item = cast("Row", member.value)
        if item["object"] == _TRACE:
            others = {key: value for key, value in item.items() if key not in ("object", "id", "group_id", "metadata")}
            metadata |= drop_empty({**fields_in(item.get("metadata")), **others})
    for _, _, data in _spans(of_group):
        if data.get("type") == "guardrail":
            guardrails.append({key: value for key, value in data.items() if key != "type"})
            loss.aside("what a guardrail found")
    return {"metadata": drop_empty({**metadata, "guardrails": guardrails})}


TRACES = Format(NAME, "traces of the OpenAI Agents SDK", _fits, _read, lists=(("data",),))
