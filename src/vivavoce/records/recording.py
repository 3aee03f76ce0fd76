"""Recordings: what was answered once, as a file, so that it can be answered again.

It is JSONL. The first line says what it is and where it is from: `{"vivavoce_recording": 2, "suite", "run", "dataset",
"version"}`. Each other one is an answer of a `kind`, in the order of the conversation: `{"kind": "tool", …}` is a
`RecordedCall`, `{"kind": "reply", …}` a `RecordedReply`. `{"kind": "end"}` is the last line; a file without it was cut
off. Files of version 1 have results of tools alone, a first line that says no more, and no last one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_serializer, model_validator

from vivavoce.errors import Problem, UsageError
from vivavoce.files.rows import read_rows
from vivavoce.messages import AIMessage, AnyMessage, Content, StoredMessages, ToolMessage, describe
from vivavoce.records.score import Usage, turn_label

FORMAT = 2
HEAD = "vivavoce_recording"
END = {"kind": "end"}
"""The last line."""

UNRECORDED = "unrecorded"
"""The kind of the failure of a conversation that a recording could not answer."""


class RecordingHead(BaseModel):
    """Where a recording is from: the suite, the run, a hash of the dataset, the version that wrote it.

    What is not known is None.
    """

    model_config = ConfigDict(frozen=True)

    suite: str | None = None
    run: str | None = None
    dataset: str | None = None
    version: str | None = None


class _Line(BaseModel):
    """An answer; what is not known of it is not written."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def _dump_fields(self) -> dict[str, Any]:
        return {name: value for name in type(self).model_fields if (value := getattr(self, name)) is not None}


class RecordedCall(_Line):
    """A call of a tool and what came back; `sample` is the row in which it was made, `seconds` how long it took.

    `trial` and `turn` count from 0. `changed_state` says whether it changed the state of the row, None for unknown.
    """

    kind: Literal["tool"] = "tool"
    sample: str | None = None
    trial: int | None = Field(default=None, ge=0)
    turn: int | None = Field(default=None, ge=0)
    name: Annotated[str, Field(min_length=1)]
    arguments: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    result: JsonValue = None
    error: str | None = None
    changed_state: bool | None = None
    seconds: float | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _one_outcome(self) -> Self:
        if ("result" in self.model_fields_set) == (self.error is not None):
            raise ValueError("needs either result or error")
        return self

    @model_serializer
    def _line(self) -> dict[str, Any]:
        return self._dump_fields() | ({"result": self.result} if self.error is None else {})


class RecordedReply(_Line):
    """What a target did in answer to what the user `said`: its messages in order, or the `error` that ended the turn.

    `trial` and `turn` count from 0. The first reply of a conversation may have the `opening` before it, and the last
    one the `state` of the row as the tools left it.
    """

    kind: Literal["reply"] = "reply"
    sample: str
    target: str
    trial: int = Field(default=0, ge=0)
    turn: int = Field(ge=0)
    said: Content
    opening: StoredMessages = Field(default_factory=list[AnyMessage])
    messages: StoredMessages = Field(default_factory=list[AnyMessage])
    error: str | None = None
    state: dict[str, JsonValue] | None = None
    usage: Usage | None = None
    seconds: float | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _one_outcome(self) -> Self:
        if bool(self.messages) == (self.error is not None):
            raise ValueError("needs either messages or error")
        if wrong := next(
            (message.role for message in self.messages if not isinstance(message, AIMessage | ToolMessage)), None
        ):
            raise ValueError(f"messages: a reply has messages of assistant and tools, got one of {wrong}")
        return self

    @model_serializer
    def _line(self) -> dict[str, Any]:
        message_lists = {
            name: [message.to_dict() for message in getattr(self, name)] for name in ("opening", "messages")
        }
        words = self.said if isinstance(self.said, str) else [part.to_dict() for part in self.said]
        usage = {} if self.usage is None else {"usage": self.usage.model_dump(exclude_defaults=True)}
        plain = {name: value for name, value in self._dump_fields().items() if name not in ("usage", *message_lists)}
        return {
            **plain,
            "said": words,
            **{name: entries for name, entries in message_lists.items() if entries},
            **usage,
        }


@dataclass(frozen=True, slots=True)
class RecordedConversation:
    """A conversation of a row with a target, turn by turn."""

    sample: str
    target: str
    trial: int
    turns: Sequence[RecordedReply]

    @property
    def answered_count(self) -> int:
        """How many turns the target answered; a log may end with words of the user, and a turn with an error."""
        return sum(turn.error is None for turn in self.turns)

    @property
    def messages(self) -> list[AnyMessage]:
        """What the target did in all turns, without the words of the user."""
        return [message for turn in self.turns for message in turn.messages]


@dataclass(frozen=True)
class Recording:
    """A recording that was read; `place` is the name of its file."""

    place: str
    head: RecordingHead
    calls: Sequence[RecordedCall]
    replies: Sequence[RecordedReply]

    @cached_property
    def conversations(self) -> Mapping[str, Sequence[RecordedConversation]]:
        """The conversations of each row, in the order of the file."""
        turns: dict[tuple[str, str, int], list[RecordedReply]] = {}
        for reply in self.replies:
            turns.setdefault((reply.sample, reply.target, reply.trial), []).append(reply)
        conversations_by_row: dict[str, list[RecordedConversation]] = {}
        for key, replies in turns.items():
            conversations_by_row.setdefault(key[0], []).append(RecordedConversation(*key, replies))
        return conversations_by_row


def same_words(first: Content | None, other: Content | None) -> bool:
    """Say whether two messages say the same, whitespace aside."""
    if isinstance(first, str) and isinstance(other, str):
        return first.split() == other.split()
    return (first or "") == (other or "")


def read_recording(path: Path) -> Recording:
    """Read a file.

    Raises:
        UsageError: it cannot be read, is empty or cut off, or a line is broken; it names file and line.
    """
    rows = read_rows(path, "jsonl")
    line, first = next(rows, (0, dict[str, Any]()))
    if not line:
        raise UsageError(Problem("is empty; create a recording with viva export RUN --format recordings", path, 1))
    version = first.get(HEAD)
    if not isinstance(version, int) or isinstance(version, bool):
        raise UsageError(Problem(f'is not a recording: its first line is not {{"{HEAD}": {FORMAT}}}', path, line))
    if version > FORMAT:
        raise UsageError(
            Problem("was written by a newer vivavoce; upgrade it: pip install --upgrade vivavoce", path, line)
        )
    calls: list[RecordedCall] = []
    replies: list[RecordedReply] = []
    turns: dict[tuple[str, str, int], int] = {}
    ended = version == 1
    for line, row in rows:
        ended = row == END or version == 1
        if row == END:
            continue
        entry = _read(row, path, line)
        if isinstance(entry, RecordedCall):
            calls.append(entry)
            continue
        _check_turn(entry, turns, path, line)
        replies.append(entry)
    if not ended:
        raise UsageError(Problem("is cut off: its last line is missing; write it again with viva export", path, line))
    if not calls and not replies:
        raise UsageError(Problem("has no answers: its run has no replies and no tool calls", path, line))
    head = _valid(RecordingHead, {key: value for key, value in first.items() if key != HEAD}, path, 1)
    return Recording(path.name, head, calls, replies)


def _check_turn(reply: RecordedReply, turns: dict[tuple[str, str, int], int], path: Path, line: int) -> None:
    """Check that a turn follows the one before it."""
    key = (reply.sample, reply.target, reply.trial)
    due = turns.get(key, 0)
    if reply.turn != due:
        rule = "occurs here twice" if reply.turn < due else f"occurs here without {turn_label(due)}"
        raise UsageError(Problem(f"{turn_label(reply.turn)} of row '{reply.sample}' {rule}", path, line))
    turns[key] = due + 1


def _read(row: Mapping[str, Any], path: Path, line: int) -> RecordedCall | RecordedReply:
    kind = row.get("kind")
    if kind == "tool":
        return _valid(RecordedCall, row, path, line)
    if kind == "reply":
        return _valid(RecordedReply, row, path, line)
    raise UsageError(Problem(f"kind: must be 'tool', 'reply' or 'end', got {kind!r:.60}", path, line))


Read = TypeVar("Read", bound=BaseModel)


def _valid(kind: type[Read], row: Mapping[str, Any], path: Path, line: int) -> Read:
    try:
        return kind.model_validate(row)
    except ValidationError as error:
        raise UsageError(Problem(describe(error), path, line)) from error
