"""A cassette: cached replies as a file, so that the same questions can be answered elsewhere, offline.

It is JSONL. The first line says what it is, `{"vivavoce_replies": 1}`; each other one is a reply with the key of its
question: `{"key", "model", "created_at", "reply": {"text", "parsed", "tool_calls", "usage", "applied"}}`. The questions
are not in it.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from vivavoce.errors import Problem, UsageError
from vivavoce.files.rows import read_rows
from vivavoce.models.recording import decode_reply
from vivavoce.records.reply import StoredReply

FORMAT = 1
_HEAD = "vivavoce_replies"


class AllReplies(Protocol):
    """Replies that can be written to a file, such as `Store.replies()`."""

    def all(self, models: Sequence[str] = ()) -> Iterator[StoredReply]:
        """Yield the cached replies, of these models or of all."""
        ...


class KeptReplies(AllReplies, Protocol):
    """Where the replies are, such as `Store.replies()`."""

    def get(self, key: str) -> str | None:
        """Return the reply of a key, None where there is none."""
        ...

    def add(self, more: Iterable[StoredReply], replacing: Collection[str] = ()) -> int:
        """Keep replies, all or none, and return how many were not there before; those of some keys are replaced."""
        ...


def export_replies(store: AllReplies, path: str | os.PathLike[str], models: Sequence[str] = ()) -> int:
    """Write the replies of a store, or of the models of these names in it, and return how many they are.

    An existing file is replaced once everything is written.

    Raises:
        UsageError: the file cannot be written.
        StoreError: the store cannot be read.
    """
    place = Path(path)
    beside = place.with_name(f".{secrets.token_hex(8)}.part")
    count = 0
    try:
        try:
            with beside.open("w", encoding="utf-8", newline="\n") as file:
                file.write(_line({_HEAD: FORMAT}))
                for reply in store.all(models):
                    file.write(_line({**reply._asdict(), "reply": json.loads(reply.reply)}))
                    count += 1
            os.replace(beside, place)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(Problem(f"cannot be written: {error.strerror or error}", place)) from error
    return count


def import_replies(store: KeptReplies, path: str | os.PathLike[str]) -> int:
    """Keep the replies of a file in a store, all or none, and return how many were not there before.

    A reply to a question that has one already changes nothing.

    Raises:
        UsageError: the file cannot be read, or a line is broken; it names file and line.
        StoreError: the store cannot be written.
    """
    return store.add(read_replies(Path(path)))


def read_replies(path: Path) -> Iterator[StoredReply]:
    """Yield the replies of a file.

    Raises:
        UsageError: the file cannot be read, or a line is broken; it names file and line.
    """
    rows = read_rows(path, "jsonl")
    line, head = next(rows, (1, dict[str, Any]()))
    version = head.get(_HEAD)
    if not isinstance(version, int):
        message = f'is not a file of replies: its first line is not {{"{_HEAD}": {FORMAT}}}'
        raise UsageError(Problem(message, path, line))
    if version > FORMAT:
        raise UsageError(Problem("is of a newer vivavoce; upgrade it: pip install --upgrade vivavoce", path, line))
    for line, row in rows:
        try:
            yield _reply(row)
        except ValueError as error:
            raise UsageError(Problem(str(error), path, line)) from error


def _reply(row: dict[str, Any]) -> StoredReply:
    key, model, created_at = row.get("key"), row.get("model"), row.get("created_at")
    if not isinstance(key, str) or not re.fullmatch("[0-9a-f]{32}", key):
        raise ValueError(f"key: 32 hexadecimal digits are needed, got {key!r:.60}")
    if not isinstance(model, str):
        raise ValueError(f"model: a name is needed, got {model!r:.60}")
    if not isinstance(created_at, int | float) or isinstance(created_at, bool):
        raise ValueError(f"created_at: seconds are needed, got {created_at!r:.60}")
    text = json.dumps(row.get("reply"))
    try:
        decode_reply(text)
    except ValueError as error:
        raise ValueError(f"reply: {error}") from error
    return StoredReply(key, model, text, float(created_at))


def _line(data: dict[str, Any]) -> str:
    return json.dumps(data, separators=(",", ":")) + "\n"
