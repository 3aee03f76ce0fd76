"""Our own rows: the datasets of suites, and conversations of one session or of several.

A row may list sessions instead of an `input` or `messages`:

    {"sessions": [{"user": "ana", "input": "I eat no meat."},
                  {"user": "ana", "input": "What do I eat?", "ground_truth": "no meat"}]}

It becomes a row whose messages of users have a `SessionMark` each, so that whatever reads turns reads sessions as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

from vivavoce.comparing.text import fold
from vivavoce.conversations.format import ROW_FIELDS, Format, Loss, Place, Record, Row, scan_records
from vivavoce.errors import Problem, UsageError, did_you_mean
from vivavoce.files.rows import format_of
from vivavoce.messages import AnyMessage, Message, SessionMark, read_messages, said_by_user
from vivavoce.validation import copy_with

SESSIONS = "sessions"
_MESSAGE_KEYS = ("input", "messages")
_PER_TURN = ("ground_truth", "expect", "reference_tool_calls")
_SESSION_INPUTS = frozenset((*_MESSAGE_KEYS, "prompt", "user_input", "goal"))
"""What a row of others has, in which `sessions` is a number or the like and means something of its own."""
_FIELDS = ("user", *_MESSAGE_KEYS, *_PER_TURN, "secrets")
LONGEST_NAME = 100
"""Characters of the name of a user."""


def with_sessions_joined(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with its `sessions` as one conversation that marks where each begins; a row without them as it is.

    Raises:
        ValueError: a session is not one, or the row says itself what each session says.
    """
    entries = row.get(SESSIONS)
    if entries is None and SESSIONS in row:
        return {name: value for name, value in row.items() if name != SESSIONS}
    if entries is None or not (isinstance(entries, list) or row.keys().isdisjoint(_SESSION_INPUTS)):
        return row
    sessions = _check_sessions(cast("object", entries))
    _check_alone(row, sessions)
    key = _said_in(sessions)
    messages = [_messages(session, key, number) for number, session in enumerate(sessions, 1)]
    joined = {name: value for name, value in row.items() if name != SESSIONS}
    joined[key] = [each for of_session in messages for each in of_session]
    for name in _PER_TURN:
        if any(session.get(name) is not None for session in sessions):
            parts = zip(sessions, messages, strict=True)
            joined[name] = [
                each for n, (session, its) in enumerate(parts, 1) for each in _each_turn(name, session, its, n)
            ]
    if secrets := _secrets(sessions):
        joined["secrets"] = secrets
    return joined


def check_marks(messages: Sequence[Message]) -> None:
    """Check that the sessions of messages fit together; without any there is nothing to check.

    Raises:
        ValueError: a user's message has no session, numbers do not count up, or the names of users are unclear.
    """
    known = [mark for each in messages if each.session is not None and (mark := each.mark) is not None]
    if not known:
        return
    for place, message in enumerate(messages):
        if message.mark is None and message.role == "user":
            raise ValueError(f"message {place} has no 'session', but others have one; add one to each user message")
    if known[0].number != 1:
        raise ValueError(f"the first session has number {known[0].number}; number sessions from 1")
    for before, after in pairwise(known):
        if after.number not in (before.number, before.number + 1):
            raise ValueError(f"session {after.number} follows session {before.number}; number sessions 1, 2, 3, …")
        if after.number == before.number and after.user != before.user:
            raise ValueError(
                f"session {after.number} has two users, '{before.user}' and '{after.user}'; use one user per session"
            )
    _check_asked(messages, known)
    _check_names(known)


def _check_asked(messages: Sequence[Message], known: Sequence[SessionMark]) -> None:
    user_marks = {message.mark for message in messages if message.role == "user"}
    for mark in known:
        if mark not in user_marks:
            raise ValueError(f"session {mark.number} has no user message")


def _check_names(marks: Sequence[SessionMark]) -> None:
    """Check that the same person has one name, and that either all sessions say whose they are or none does."""
    first: dict[str, SessionMark] = {}
    for mark in dict.fromkeys(marks):
        if (mark.user is None) != (marks[0].user is None):
            without = mark.number if mark.user is None else marks[0].number
            raise ValueError(f"session {without} has no 'user', but others have one; name the user of each")
        if mark.user is None:
            continue
        if not mark.user.strip() or len(mark.user) > LONGEST_NAME or not mark.user.isprintable():
            raise ValueError(f"session {mark.number}: a 'user' is a name of one line, up to {LONGEST_NAME} characters")
        known = first.setdefault(fold(mark.user), mark)
        if known.user != mark.user:
            raise ValueError(
                f"sessions {known.number} and {mark.number} name '{known.user}' and '{mark.user}', which "
                "differ only in case, spaces, or encoding; spell one person's name the same way, or give "
                "different people different names"
            )


def _check_sessions(entries: object) -> list[Mapping[str, Any]]:
    if not isinstance(entries, list) or not entries:
        what = "is empty" if entries == [] else f"is a {type(cast('object', entries)).__name__}"
        raise ValueError(f"'sessions' {what}; list one conversation or more, each with its 'input' or its 'messages'")
    for number, session in enumerate(cast("list[object]", entries), 1):
        if not isinstance(session, Mapping):
            raise ValueError(f"session {number} is a {type(session).__name__}; write an object with an 'input'")
        for name in cast("Mapping[str, object]", session):
            if name not in _FIELDS:
                raise ValueError(f"session {number}: unknown key '{name}'{did_you_mean(name, _FIELDS)}")
    return cast("list[Mapping[str, Any]]", entries)


def _check_alone(row: Mapping[str, Any], sessions: Sequence[Mapping[str, Any]]) -> None:
    for name in (*_MESSAGE_KEYS, "ground_truth", "reference_tool_calls", "secrets"):
        if row.get(name) is not None:
            raise ValueError(f"a row with 'sessions' cannot have its own '{name}'; write it into a session")
    own, theirs = row.get("expect"), any(session.get("expect") is not None for session in sessions)
    if isinstance(own, list) or (own is not None and theirs):
        rule = "a list of turns in a session, or in the row a mapping such as {all: [...]} for all sessions"
        raise ValueError(f"a row with 'sessions' has 'expect' either as {rule}")


def _said_in(sessions: Sequence[Mapping[str, Any]]) -> str:
    """Return under which name the sessions have what was said: all are to be asked, or all are recorded."""
    used: dict[str, int] = {}
    for number, session in enumerate(sessions, 1):
        names = [name for name in _MESSAGE_KEYS if session.get(name) is not None]
        if len(names) == 2:
            raise ValueError(f"session {number} has both 'input' (to send) and 'messages' (to replay); keep one")
        if not names or session[names[0]] in ("", []):
            raise ValueError(f"session {number} is empty; add 'input', or 'messages' if it was recorded")
        used.setdefault(names[0], number)
    if len(used) == 2:
        rule = "use the same key in all sessions"
        raise ValueError(f"session {used['input']} has 'input' and session {used['messages']} has 'messages'; {rule}")
    return next(iter(used))


def _messages(session: Mapping[str, Any], key: str, number: int) -> list[AnyMessage]:
    """Return the messages of a session; those of its user, and what was said before, have its mark."""
    content, user = session[key], session.get("user")
    name = str(user) if isinstance(user, int) and not isinstance(user, bool) else user
    if name is not None and not isinstance(name, str):
        raise ValueError(f"session {number}: 'user' is a name, got {name!r}")
    rows = cast("list[Any]", content) if isinstance(content, list) else [content]
    try:
        read = read_messages([said_by_user(row) if isinstance(row, str) else row for row in rows])
    except (ValueError, TypeError) as error:
        raise ValueError(f"session {number}: {error}") from error
    if key == "input" and (other := next((each.role for each in read if each.role != "user"), None)):
        raise ValueError(f"session {number}: 'input' must be user messages, got role '{other}'")
    if all(message.role != "user" for message in read):
        raise ValueError(f"session {number} has no user message")
    mark = SessionMark(number=number, user=name)
    first = next(place for place, message in enumerate(read) if message.role == "user")
    return [
        copy_with(message, {"session": mark}) if place < first or message.role == "user" else message
        for place, message in enumerate(read)
    ]


def _each_turn(name: str, session: Mapping[str, Any], messages: Sequence[AnyMessage], number: int) -> list[Any]:
    """Return what a session says of each of its turns; a single truth is that of the last."""
    turns, value = sum(message.role == "user" for message in messages), session.get(name)
    if name == "ground_truth" and not isinstance(value, list):
        return [*[None] * (turns - 1), value]
    if value is None:
        return [None] * turns
    if not isinstance(value, list):
        raise ValueError(f"session {number}: '{name}' is a list with an entry for each turn (null skips a turn)")
    entries = cast("list[Any]", value)
    if len(entries) != turns:
        problem = f"session {number} has {turns} turn{'s' * (turns != 1)} and {name} has {len(entries)}"
        raise ValueError(f"{problem}; give one per turn (null skips a turn)")
    return entries


def _secrets(sessions: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return what is only for the one who said it, by the names of users."""
    secrets: dict[str, list[str]] = {}
    for number, session in enumerate(sessions, 1):
        entries = session.get("secrets")
        if entries is None:
            continue
        texts = cast("list[object]", entries) if isinstance(entries, list) else [entries]
        if not all(isinstance(text, str) and text.strip() for text in texts):
            raise ValueError(f"session {number}: 'secrets' must be a list of texts")
        if session.get("user") is None:
            raise ValueError(f"session {number} has 'secrets' but no 'user'; name their user")
        secrets.setdefault(str(session["user"]), []).extend(cast("list[str]", texts))
    return secrets


_ROLES = ("system", "developer", "user", "assistant", "tool")
_TASK_KEYS = frozenset(("input", "prompt", "user_input", "goal"))
OTHER_NAMES = frozenset(
    (
        *(
            "sample_id",
            "prompt",
            "reference",
            "user_input",
            "response",
            "multi_responses",
            "rubrics",
            "rubric_path",
            "policy_path",
        ),
        *("retrieved_contexts", "reference_contexts", "retrieved_context_ids", "reference_context_ids"),
        *("reference_topics", "persona_name", "query_style", "query_length", "prompt_content", "expected_response"),
        *("test_type", "test_configuration", "restrictions", "instruction", "expected"),
    )
)
"""What fields of a row are called in letta-evals, Ragas and Rhesis, whose rows are read as ours."""
_CONVERSED = ("messages", *sorted(_TASK_KEYS), "sessions", "prompt_content", "test_configuration")
_OTHER_DELIMITERS = {";": "semicolons", "\t": "tabs", "|": "bars"}
_PARTS = ("text", "image_url", "input_audio", "file", "refusal")


def is_native(value: Any) -> bool:
    """Return whether a record is a row of ours and nothing in it speaks for another format."""
    if not isinstance(value, Mapping):
        return False
    row = cast("Mapping[str, Any]", value)
    messages = row.get("messages")
    if messages is None:
        return any(_is_asked(row.get(key)) for key in _TASK_KEYS) or _are_sessions(row.get("sessions"))
    return isinstance(messages, list) and all(map(is_native_message, cast("list[Any]", messages)))


def _is_asked(value: Any) -> bool:
    """Return whether a value is what a row may ask: a text, or texts and messages of a user one after the other."""
    if not isinstance(value, list):
        return isinstance(value, str) or is_native_message(value)
    return all(
        not isinstance(item, Mapping) or (cast("Row", item).get("role") == "user" and is_native_message(item))
        for item in cast("list[Any]", value)
    )


def _are_sessions(value: Any) -> bool:
    """Return whether a value is what a row of several sessions has of them."""
    if not isinstance(value, list):
        return False
    sessions = cast("list[Any]", value)
    return bool(sessions) and all(isinstance(session, Mapping) and is_native(session) for session in sessions)


def is_native_message(value: Any) -> bool:
    """Return whether a value is a message of ours, in plain data."""
    if not isinstance(value, Mapping):
        return False
    message: Mapping[str, Any] = value  # pyright: ignore[reportUnknownVariableType]  # a cast is a call
    content = message.get("content")
    if message.get("role") not in _ROLES or "parts" in message:
        return False
    if isinstance(content, list):
        parts = cast("list[Any]", content)
        return all(isinstance(part, Mapping) and cast("Row", part).get("type") in _PARTS for part in parts)
    return content is None or isinstance(content, str)


def conversation_problem(row: Row) -> str | None:
    """Say why a row is not a conversation and does not ask for one, None where it is or does."""
    messages: object = row.get("messages")
    if messages is None or messages == []:
        asks = any(row.get(key) not in (None, "", []) for key in _CONVERSED if key != "messages")
        return None if asks else "a row needs 'messages' or 'input'"
    if not isinstance(messages, list):
        return f"the messages of a row are a list, not {type(messages).__name__}"
    try:
        read_messages(cast("list[Row]", messages))
    except ValueError as error:
        return str(error)
    return None


def check_columns(path: Path, loss: Loss, fields: Iterable[str] = ()) -> None:
    """Look at the columns of a table of rows of ours, and tell the report which of them are unknown.

    `fields` are those that the caller has named columns for.

    Raises:
        UsageError: none can be a conversation, or what is asked; or the table cannot be opened.
    """
    if format_of(path) not in ("csv", "parquet", "arrow"):
        return
    first = next(iter(scan_records(path)), None)
    if not isinstance(first, Record) or first.fields is None:
        return  # empty, or broken: the reader reports that
    columns = first.fields.keys()
    if columns.isdisjoint(_CONVERSED) and not {*fields} & {*_CONVERSED}:
        rule = "no column can be a message, a turn or an input"
        hint = "name those of a table with a message in each row: --field content=COLUMN --field role=COLUMN"
        other = f"or call a column one of {', '.join(_CONVERSED[:-2])}"
        problem = _delimiter_problem(columns) or f"{rule}; there are: {', '.join(columns)}; {hint}; {other}"
        raise UsageError(Problem(problem, path))
    loss.stands_at(Place(path, 1))
    for column in columns:
        if column not in ROW_FIELDS and column not in OTHER_NAMES:
            loss.unknown(column)


def _delimiter_problem(columns: Collection[str]) -> str:
    """Return that the cells of a table are not separated by commas, in words; empty where they seem to be."""
    header = next(iter(columns), "")
    mark = next((mark for mark in _OTHER_DELIMITERS if mark in header), None)
    if len(columns) != 1 or mark is None:
        return ""
    names = ", ".join(name.strip() for name in header.split(mark))
    rule = f"cells are separated by {_OTHER_DELIMITERS[mark]}, but CSV needs commas"
    return f"{rule}: save it again with commas; the columns would be: {names}"


def _read(records: Iterable[Record], loss: Loss) -> Iterator[tuple[Place, Row]]:
    for record in records:
        if record.fields is None:
            loss.add_broken("a row must be an object {…}")
        else:
            try:
                yield record.place, _with_recorded_sessions(record.fields)
            except ValueError as error:
                loss.add_broken(str(error))


def _with_recorded_sessions(row: Row) -> Row:
    """Return a row whose recorded sessions are one list of messages; one that is still to be asked as it is."""
    joined = with_sessions_joined(row)
    if joined is row or "messages" not in joined:
        return row
    return {**joined, "messages": [message.to_dict() for message in cast("list[Message]", joined["messages"])]}


def _write(rows: Iterable[Row], loss: Loss) -> Iterator[Row]:
    return iter(rows)


FORMAT = Format("vivavoce", "our own rows", lambda record: is_native(record.value), _read, _write)
