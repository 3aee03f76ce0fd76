"""Who of the speakers in a table is the user and who the assistant."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, cast

from vivavoce.comparing.json_values import BrokenJson, parse
from vivavoce.conversations.format import Format, Loss, Member, Place, Record, Row
from vivavoce.conversations.grouping import Group, group_members
from vivavoce.conversations.shapes import (
    Message,
    drop_empty,
    fields_in,
    number_in,
    objects_in,
    set_aside,
    text_in,
    text_of,
    time_in,
    tool_call,
)
from vivavoce.errors import Problem, UsageError, did_you_mean

_USERS = (
    *("user", "human", "customer", "client", "caller", "visitor", "patient", "student", "requester", "usr"),
    *("enduser", "consumer", "guest", "q", "buyer", "shopper", "member"),
)
_ASSISTANTS = (
    *("assistant", "ai", "bot", "gpt", "model", "chatbot", "agent", "operator", "advisor", "support", "rep"),
    *("representative", "csr", "supportagent", "assistantbot", "a", "llm", "chatgpt", "claude", "gemini"),
)
_ROLES = {
    **dict.fromkeys(_USERS, "user"),
    **dict.fromkeys(_ASSISTANTS, "assistant"),
    **dict.fromkeys(("tool", "function", "observation", "toolresult"), "tool"),
    "system": "system",
    "sys": "system",
    "developer": "developer",
}


def roles_of(speakers: Sequence[str], loss: Loss) -> list[tuple[str, bool]]:
    """Return the role of each message of a conversation, and whether the speaker is known by it.

    Someone with a name of their own is the assistant if another is the user, and else the one who begins is the user.
    A `system` that answers, where there is no assistant, is one, as in many sets of dialogues.
    """
    roles = [_ROLES.get("".join(filter(str.isalnum, speaker.lower()))) for speaker in speakers]
    names = list(dict.fromkeys(speaker for speaker, role in zip(speakers, roles, strict=True) if role is None))
    if "assistant" not in roles and not names and "system" in roles[1:] and "user" in roles[: _last(roles, "system")]:
        loss.add_guess("that 'system', which answers the user, is the assistant")
        return [("assistant" if role == "system" else role or "user", True) for role in roles]
    users: set[str] = set()
    if names and "user" not in roles:
        loss.add_guess("who is the user: the one who begins")
        users.add(names[0])
    elif names:
        loss.add_guess("that speakers with names of their own are assistants")
    return [
        (role, True) if role is not None else ("user" if speaker in users else "assistant", False)
        for speaker, role in zip(speakers, roles, strict=True)
    ]


def _last(roles: Sequence[str | None], role: str) -> int:
    return max(index for index, each in enumerate(roles) if each == role)


NAME = "turns"
_NAMES: Mapping[str, tuple[str, ...]] = {
    "content": ("content", "text", "message", "utterance", "body", "msg", "transcript", "messagetext", "sentence"),
    "role": ("role", "speaker", "author", "sender", "from", "participant", "actor", "speakerrole", "authorrole"),
    "id": (
        *("conversationid", "sessionid", "dialogid", "dialogueid", "threadid", "chatid", "convid", "callid"),
        *("ticketid", "conversation", "session", "dialog", "dialogue", "thread", "ticket", "case", "chat"),
        *("caseid", "ticketno", "ticketnumber", "caseno", "casenumber", "conversationno", "conversationnumber"),
    ),
    "order": (
        *("turn", "turnid", "turnindex", "turnidx", "turnnumber", "turnno", "messageindex", "messageidx"),
        *("utteranceidx", "utteranceindex", "position", "step", "seq", "sequence", "order", "index", "idx"),
    ),
    "time": ("timestamp", "time", "createdat", "datetime", "sentat", "date", "ts", "starttime"),
    "name": ("name", "speakername", "sendername", "authorname", "username", "agent", "speaker", "author", "sender"),
    "tool_calls": ("toolcalls",),
    "tool_call_id": ("toolcallid",),
}
"""By what a message has, the names of columns that mean it, without case and without what is not a letter or digit."""
COLUMNS = tuple(_NAMES)
_FEW = 2
"""Values that a column of conversations has at least, where a file holds several."""
_MAX_KEYS = 10_000
"""Values of a column that are kept while it is not known whether one comes again."""
_OF_CONVERSATION = ("goal", "policy", "context", "instructions", "ground_truth", "scenario")


def columns_of(names: Iterable[str], mapping: Mapping[str, str]) -> dict[str, str]:
    """Return by what a message has the column that holds it, those that are given first."""
    columns_by_field = dict(mapping)
    plain = {"".join(filter(str.isalnum, name.lower())): name for name in names}
    for field, spellings in _NAMES.items():
        used_columns = set(columns_by_field.values())
        columns = (
            plain[spelling] for spelling in spellings if spelling in plain and plain[spelling] not in used_columns
        )
        if field not in columns_by_field and (column := next(columns, None)) is not None:
            columns_by_field[field] = column
    return columns_by_field


def _fits(record: Record) -> bool:
    fields = record.fields or {}
    columns = columns_of(fields, {})
    if not {"content", "role"} <= columns.keys():
        return False
    content, role = fields[columns["content"]], fields[columns["role"]]
    return isinstance(role, str) and (isinstance(content, str | None) or _are_text_parts(content))


def _are_text_parts(content: Any) -> bool:
    """Return whether a content is a list of nothing but texts, as many APIs have it."""
    parts = objects_in(content)
    return bool(parts) and len(parts) == len(content) and all(_is_text_part(part) for part in parts)


def _is_text_part(part: Row) -> bool:
    return part.get("type") == "text" and isinstance(part.get("text"), str)


def _read(records: Iterable[Record], loss: Loss, mapping: Mapping[str, str]) -> Iterator[tuple[Place, Row]]:
    table = _Table(mapping, loss)
    for group in group_members(table.members(records), loss):
        place = group.members[0].place
        loss.line, loss.conversation = place.line, table.id_of(group)
        yield place, table.row(group)


class _Keys:
    """The cells of a file, column by column: which columns could say what conversation a row is of."""

    def __init__(self) -> None:
        self._values: dict[str, set[str]] = {}
        self._repeats: set[str] = set()

    def add(self, fields: Row) -> None:
        """Note the cells of a row."""
        for column, cell in fields.items():
            text = text_in(cell)
            values = self._values.setdefault(column, set())
            if text and (column not in self._repeats or len(values) < _FEW):
                if text in values:
                    self._repeats.add(column)
                elif len(values) < _MAX_KEYS:
                    values.add(text)

    def candidates(self, used: Collection[str]) -> list[str]:
        """Return the columns with several values, at least one of them in several rows, that mean nothing else."""
        known = [column for column in self._values if column in self._repeats and column not in used]
        return [column for column in known if len(self._values[column]) >= _FEW and column not in _OF_CONVERSATION]


class _Table:
    """The columns of a table; what is said and by whom is known from the first row on."""

    def __init__(self, mapping: Mapping[str, str], loss: Loss) -> None:
        self._mapping, self._loss = mapping, loss
        self._columns: dict[str, str] = {}
        self._seen: dict[str, None] = {}
        self._alone: dict[Path, _Keys] = {}

    def members(self, records: Iterable[Record]) -> Iterator[Member]:
        """Yield each row with its conversation and its time.

        Raises:
            UsageError: a file has no column of conversations, and others that may be it.
        """
        yield from self._rows(records)
        for file, keys in self._alone.items():
            if candidates := keys.candidates(set(self._columns.values())):
                rule = "no known column names the conversation of a message"
                other = "leave the column out if the file is one conversation"
                hint = f"name it if it is {' or '.join(candidates)}: --field id={candidates[0]}; {other}"
                raise UsageError(Problem(f"{rule}; columns: {', '.join(self._seen)}; {hint}", file))

    def _rows(self, records: Iterable[Record]) -> Iterator[Member]:
        for record in records:
            fields = record.fields
            if fields is None:
                self._loss.add_broken("a row must be an object {…}")
                continue
            if (missing := self._look_at(fields, record.place)) is not None:
                self._loss.add_broken(missing)
                continue
            if not any(self._columns[name] in fields for name in ("content", "role")):
                self._loss.add_broken(
                    f"this row has neither '{self._columns['content']}' nor '{self._columns['role']}'"
                )
                continue
            conversation_id = text_in(fields.get(self._columns.get("id", "")))
            if "id" not in self._columns:
                if record.place.file not in self._alone:
                    self._alone[record.place.file] = _Keys()
                    self._loss.add_guess("that a file is one conversation: no column names one (say which: id=COLUMN)")
                self._alone[record.place.file].add(fields)
            if conversation_id is None and "id" in self._columns:
                self._loss.add_guess("that rows without a conversation are one")
            trace = f"file {record.place.file}" if conversation_id is None else f"id {conversation_id}"
            yield Member(record.place, fields, trace, time=self._time(fields))

    def _look_at(self, fields: Row, place: Place) -> str | None:
        """Find the columns, and again where a row has one that no row had before; return what is wrong with a row."""
        if self._columns and fields.keys() <= self._seen.keys():
            return None
        if not self._columns:
            columns_by_field = self._find_columns(fields, place)
            if (
                missing := next((field for field in ("content", "role") if field not in columns_by_field), None)
            ) is not None:
                there = f"; there are: {', '.join(fields)}" if fields else ""
                rule = f"no column is known to hold the {missing}; say it as {missing}=COLUMN{there}"
                if self._mapping:
                    raise UsageError(Problem(rule, place.file, place.line))
                return rule
            self._columns = columns_by_field
        self._seen |= dict.fromkeys(fields)
        self._columns = columns_of(self._seen, self._columns)
        return None

    def _find_columns(self, fields: Row, place: Place) -> dict[str, str]:
        for field, column in self._mapping.items():
            if column not in fields:
                near = did_you_mean(column, fields)
                raise UsageError(Problem(f"{field}={column}: no such column{near}", place.file, place.line))
        return columns_of(fields, self._mapping)

    def _time(self, fields: Row) -> float | None:
        order = _number(fields.get(self._columns.get("order", "")))
        if order is not None:
            return order
        time = _moment(fields.get(self._columns.get("time", "")))
        return None if time is None else _since_1970(time)

    def id_of(self, group: Group) -> str | None:
        """Return the name of a conversation, None where its rows do not tell it."""
        kind, _, name = group.members[0].trace.partition(" ")
        return name if kind == "id" else None

    def row(self, group: Group) -> Row:
        """Return a conversation; what all its rows say of it is not said of each message."""
        rows = [cast("Row", member.value) for member in group.members]
        used = set(self._columns.values())
        shared = _shared_cells(rows, used)
        roles = [text_in(fields.get(self._columns["role"])) or "" for fields in rows]
        messages = [
            self._message(fields, role, speaker, {**fields, **dict.fromkeys((*used, *shared))})
            for fields, role, speaker in zip(rows, roles_of(roles, self._loss), roles, strict=True)
        ]
        own = {key: value for key, value in shared.items() if key in _OF_CONVERSATION and isinstance(value, str)}
        metadata = {key: value for key, value in shared.items() if key not in own}
        return drop_empty({"id": self.id_of(group), "messages": messages, **own, "metadata": metadata})

    def _message(self, fields: Row, role: tuple[str, bool], speaker: str, rest: Row) -> Message:
        kind, known = role
        message: Message = {"role": kind, "content": self._content(fields.get(self._columns["content"]))}
        if (name := text_in(fields.get(self._columns.get("name", ""))) or ("" if known else speaker)) != "":
            message["name"] = name
        if calls := objects_in(_json(fields.get(self._columns.get("tool_calls", "")))):
            message["tool_calls"] = list(map(_call, calls))
        if answers := text_in(fields.get(self._columns.get("tool_call_id", ""))):
            message["tool_call_id"] = answers
        extra = drop_empty(rest)
        if (time := fields.get(self._columns.get("time", ""))) is not None:
            timestamp = _moment(time)
            if timestamp is None:
                self._loss.aside("times that cannot be read", None)
                extra["time"] = time
            else:
                message["timestamp"] = timestamp
        set_aside(message, NAME, extra)
        return message

    def _content(self, content: Any) -> str:
        if isinstance(content, str):
            return content
        if _are_text_parts(content):
            return text_of(content)
        if content is None or isinstance(content, int | float):
            return "" if content is None else str(content)
        self._loss.add_guess("words of a message that is not text, written as JSON")
        return json.dumps(content, ensure_ascii=False)


def _shared_cells(rows: list[Row], used: set[str]) -> Row:
    """Return the cells that are the same in all rows of a conversation that has several."""
    first, *others = rows
    same = {key: value for key, value in first.items() if key not in used and value is not None}
    for row in others:
        same = {key: value for key, value in same.items() if row.get(key) == value}
    return same if others else {key: same[key] for key in _OF_CONVERSATION if key in same}


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    return number_in(value)


def _moment(value: Any) -> str | None:
    """Return a time as ISO text; in a table the seconds since 1970 are a text too."""
    timestamp = time_in(value)
    return time_in(_number(value)) if timestamp is None and isinstance(value, str) else timestamp


def _since_1970(time: str) -> float:
    moment = datetime.fromisoformat(time)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _json(value: Any) -> Any:
    try:
        return parse(value) if isinstance(value, str) else value
    except BrokenJson:
        return None


def _call(call: Row) -> Row:
    function = fields_in(call.get("function")) or call
    name = text_in(function.get("name")) or ""
    return tool_call(text_in(call.get("id")), name, function.get("arguments", function.get("args")))


def _with_mapping(format_: Format, mapping: Mapping[str, str]) -> Format:
    return replace(format_, read=partial(_read, mapping=mapping))


FORMAT = Format(
    NAME,
    "a table with a message in each row",
    _fits,
    partial(_read, mapping={}),
    is_general=True,
    columns=COLUMNS,
    with_columns=_with_mapping,
)
