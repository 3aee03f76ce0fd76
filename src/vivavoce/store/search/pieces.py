"""The texts that search reads of a conversation or of its scores, each with its turn and who said it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, select

from vivavoce.records.score import State
from vivavoce.store.database.any_of import any_of
from vivavoce.store.database.schema import scores, turns


class Piece(NamedTuple):
    """A text; `by` is the role of a message, or the grader of a reason, whose score has `state` and `passed`.

    `turn` is None for a reason about a whole conversation.
    """

    turn: int | None
    text: str
    by: str
    state: State | None = None
    passed: int | None = None


Pieces = dict[tuple[int, str], list[Piece]]
"""By attempt and grading, which is empty for what was said: the texts in their order."""


def pieces_of(connection: Connection, which: Sequence[tuple[int, str]]) -> Pieces:
    """Return the texts of attempts and of gradings of attempts."""
    found: Pieces = {one: [] for one in which}
    said = [number for number, grading_id in which if not grading_id]
    t = turns.c
    query = select(t.attempt_id, t.idx, t.messages).where(any_of(connection, t.attempt_id, said))
    for row in connection.execute(query.order_by(t.attempt_id, t.idx)):
        found[row.attempt_id, ""] += [Piece(row.idx, text, role) for role, text in _message_texts(row.messages)]
    s = scores.c
    judged = list({number for number, grading_id in which if grading_id})
    query = select(s.attempt_id, s.grading_id, s.turn, s.reason, s.name, s.state, s.passed).order_by(s.id)
    query = query.where(any_of(connection, s.attempt_id, judged), s.reason.is_not(None))
    for row in connection.execute(query):
        if (pieces := found.get((row.attempt_id, row.grading_id))) is not None:
            pieces.append(Piece(row.turn, row.reason, row.name, row.state, row.passed))
    return found


def _message_texts(messages: str) -> Iterator[tuple[str, str]]:
    held: list[dict[str, Any]] = json.loads(messages)
    for message in held:
        content: str | list[dict[str, Any]] | None = message.get("content")
        parts = [{"text": content}] if isinstance(content, str) else content or ()
        yield from ((message.get("role", ""), part["text"]) for part in parts if part.get("text"))
