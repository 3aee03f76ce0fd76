"""Full-text search in messages and in the reasons of scores.

The index is updated by readers, not by writers: an attempt is marked as unindexed with its rows, which costs a writer
almost nothing, and a search first indexes what is pending, so that it finds everything committed before it started.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, delete, func, insert, select, text, tuple_

from vivavoce.errors import UsageError
from vivavoce.records.run import AttemptKey
from vivavoce.store.browse.keyset import no_cursor
from vivavoce.store.database.database import AnyRow, Database, for_writing, on_postgresql
from vivavoce.store.database.schema import attempts, passages, scores, turns, unread
from vivavoce.store.search.words import Snippet, phrases, snippet, stretches

BATCH = 500
"""Attempts, or gradings of attempts, indexed in one transaction; other writers get their turn in between."""

MOST_WORDS = 16
"""Maximum number of words in a search."""

LAST = 2**63 - 1
"""No passage has a number above it."""

_IN_SQLITE = """
SELECT p.id AS number, p.grading_id, a.id, a.run_id, a.sample_id, a.target, a.trial
FROM passage_words JOIN passages p ON p.id = passage_words.rowid JOIN attempts a ON a.id = p.attempt_id
WHERE passage_words MATCH :wanted AND passage_words.rowid < :before AND (:run IS NULL OR a.run_id = :run)
ORDER BY passage_words.rowid DESC LIMIT :limit
"""
_IN_POSTGRESQL = """
SELECT p.id AS number, p.grading_id, a.id, a.run_id, a.sample_id, a.target, a.trial
FROM passages p JOIN attempts a ON a.id = p.attempt_id
WHERE p.words @@ ({wanted}) AND p.id < :before {of_run} ORDER BY p.id DESC LIMIT :limit
"""


class Hit(NamedTuple):
    """A search hit; `grading_id` is None for a message, else the scores whose reason has the words.

    `turn` is the turn, None for a reason about the whole conversation. `number` is the place in the index, lower for
    older hits.
    """

    run_id: str
    key: AttemptKey
    grading_id: str | None
    turn: int | None
    snippet: Snippet
    number: int


class Searcher:
    """Searches one store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, query: str, run_id: str | None, limit: int, before: int | None) -> list[Hit]:
        """Return the hits with all of the words, newest first; only those `before` a number, if there is one."""
        query_phrases = phrases(query)
        if not query_phrases:
            raise UsageError(f"there is no word to search for in '{query}'")
        if len(query_phrases) > MOST_WORDS:
            raise UsageError(f"search for at most {MOST_WORDS} words at a time, got {len(query_phrases)}")
        self.index_pending()
        make_statement = _postgresql_query if on_postgresql(self._database.engine) else _sqlite_query
        statement, values = make_statement(query_phrases, run_id)
        with self._database.connected() as connection:
            if (
                before is not None
                and not connection.execute(select(passages.c.id).where(passages.c.id == before)).first()
            ):
                raise no_cursor(str(before))
            parameters = {**values, "limit": limit, "before": LAST if before is None else before}
            rows = connection.execute(text(statement), parameters).all()
            pieces = _pieces(connection, [(row.id, row.grading_id) for row in rows])
        return [_hit(row, pieces[row.id, row.grading_id], query_phrases) for row in rows]

    def index_pending(self, until: Callable[[], bool] = lambda: False) -> int:
        """Index what is pending, or stop when `until` returns True; return how many were indexed."""
        number = 0
        with self._database.connected() as connection:
            while not until() and connection.execute(select(unread.c.attempt_id).limit(1)).first():
                connection.rollback()
                with for_writing(connection).begin():
                    number += _read_some(connection)
            if number >= BATCH and on_postgresql(connection):
                connection.rollback()
                with connection.begin():
                    connection.execute(text("SELECT gin_clean_pending_list('passages_by_word')"))
                    connection.execute(text("ANALYZE passages"))
            return number


def forget(connection: Connection, run_id: str) -> None:
    """Delete the index of a run; the caller has the transaction."""
    mine = select(attempts.c.id).where(attempts.c.run_id == run_id)
    connection.execute(delete(passages).where(passages.c.attempt_id.in_(mine)))
    connection.execute(delete(unread).where(unread.c.attempt_id.in_(mine)))


def read_again(connection: Connection) -> None:
    """Rebuild the SQLite index if most of its entries belong to deleted passages."""
    if on_postgresql(connection):
        return
    p = passages.c
    first, last, count = connection.execute(select(func.min(p.id), func.max(p.id), func.count())).one()
    if count and last - first + 1 <= 2 * count:
        return
    connection.execute(text("INSERT INTO passage_words(passage_words) VALUES ('delete-all')"))
    known = select(p.attempt_id, p.grading_id).distinct()
    connection.execute(insert(unread).from_select(["attempt_id", "grading_id"], known))
    connection.execute(delete(passages))


def _read_some(connection: Connection) -> int:
    some = select(unread).order_by(*unread.primary_key).limit(BATCH).with_for_update(skip_locked=True)
    rows = [(row.attempt_id, row.grading_id) for row in connection.execute(some)]
    pieces = _pieces(connection, rows)
    numbers = list({number for number, _ in rows})
    run_of = dict(connection.execute(select(attempts.c.id, attempts.c.run_id).where(attempts.c.id.in_(numbers))).all())
    passages_read = [
        (number, grading_id, words, mark_of(run_of[number]))
        for number, grading_id in rows
        if number in run_of
        for words in stretches(piece for _, piece in pieces[number, grading_id])
        if words.strip()
    ]
    if passages_read:
        (_into_postgresql if on_postgresql(connection) else _into_sqlite)(connection, passages_read)
    connection.execute(delete(unread).where(tuple_(*unread.primary_key).in_(rows)))
    return len(rows)


def _into_sqlite(connection: Connection, passages_read: Sequence[tuple[int, str, str, str]]) -> None:
    last = connection.execute(text("SELECT seq FROM sqlite_sequence WHERE name = 'passages'")).scalar() or 0
    numbered = list(enumerate(passages_read, last + 1))
    connection.exec_driver_sql(
        "INSERT INTO passages (id, attempt_id, grading_id) VALUES (?, ?, ?)",
        [(number, attempt, grading) for number, (attempt, grading, _, _) in numbered],
    )
    connection.exec_driver_sql(
        "INSERT INTO passage_words (rowid, words, run) VALUES (?, ?, ?)",
        [(number, words, run) for number, (_, _, words, run) in numbered],
    )


def _into_postgresql(connection: Connection, passages_read: Sequence[tuple[int, str, str, str]]) -> None:
    connection.exec_driver_sql(
        "INSERT INTO passages (attempt_id, grading_id, words) "
        "VALUES (%s, %s, to_tsvector('simple', %s) || array_to_tsvector(ARRAY[%s]))",
        [(attempt, grading, words, f"run:{run}") for attempt, grading, words, run in passages_read],
    )


def _sqlite_query(query_phrases: Sequence[str], run_id: str | None) -> tuple[str, dict[str, Any]]:
    match = "words : (" + " AND ".join(f'"{phrase}"' for phrase in query_phrases) + ")"
    if run_id is not None:
        match += f' AND run : "{mark_of(run_id)}"'
    return _IN_SQLITE, {"wanted": match, "run": run_id}


def _postgresql_query(query_phrases: Sequence[str], run_id: str | None) -> tuple[str, dict[str, Any]]:
    words = {f"word_{number}": phrase for number, phrase in enumerate(query_phrases)}
    tsquery = " && ".join(f"phraseto_tsquery('simple', :{name})" for name in words)
    if run_id is None:
        return _IN_POSTGRESQL.format(wanted=tsquery, of_run=""), words
    tsquery += " && CAST(:mark AS tsquery)"
    statement = _IN_POSTGRESQL.format(wanted=tsquery, of_run="AND a.run_id = :run")
    return statement, {**words, "mark": f"'run:{mark_of(run_id)}'", "run": run_id}


def mark_of(run_id: str) -> str:
    """Return the token of a run in the index, so that a search in one run reads nothing else."""
    return hashlib.sha256(run_id.encode(errors="surrogatepass")).hexdigest()[:16]


Pieces = dict[tuple[int, str], list[tuple[int | None, str]]]
"""By attempt and grading: the turns and their texts."""


def _pieces(connection: Connection, which: Sequence[tuple[int, str]]) -> Pieces:
    found: Pieces = {one: [] for one in which}
    conversation_ids = [number for number, grading_id in which if not grading_id]
    t = turns.c
    query = (
        select(t.attempt_id, t.idx, t.messages).where(t.attempt_id.in_(conversation_ids)).order_by(t.attempt_id, t.idx)
    )
    for row in connection.execute(query):
        found[row.attempt_id, ""] += [(row.idx, piece) for piece in _message_texts(row.messages)]
    s = scores.c
    judged = {number for number, grading_id in which if grading_id}
    query = select(s.attempt_id, s.grading_id, s.turn, s.reason).order_by(s.id)
    query = query.where(s.attempt_id.in_(judged), s.reason.is_not(None))
    for row in connection.execute(query):
        if (pieces := found.get((row.attempt_id, row.grading_id))) is not None:
            pieces.append((row.turn, row.reason))
    return found


def _message_texts(messages: str) -> Iterator[str]:
    held: list[dict[str, Any]] = json.loads(messages)
    for message in held:
        content: str | list[dict[str, Any]] | None = message.get("content")
        parts = [{"text": content}] if isinstance(content, str) else content or ()
        yield from (part["text"] for part in parts if part.get("text"))


def _hit(row: AnyRow, pieces: Iterable[tuple[int | None, str]], query_phrases: list[str]) -> Hit:
    key = AttemptKey(row.sample_id, row.target, row.trial)
    for turn, piece in pieces:
        if (shown := snippet(piece, query_phrases)) is not None:
            return Hit(row.run_id, key, row.grading_id or None, turn, shown, row.number)
    return Hit(row.run_id, key, row.grading_id or None, None, Snippet("", 0, 0), row.number)
