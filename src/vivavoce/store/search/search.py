"""Full-text search in messages and in the reasons of scores, and beside it in comments.

The index is updated by readers, not by writers: an attempt is marked as unindexed with its rows, which costs a writer
almost nothing, and a search first indexes what is pending, so that it finds everything committed before it started.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, and_, bindparam, delete, func, insert, select, text

from vivavoce.records.run import AttemptKey
from vivavoce.store.browse.keyset import no_cursor
from vivavoce.store.database.database import AnyRow, AnySelect, Database, for_writing, on_postgresql
from vivavoce.store.database.schema import attempts, passages, unread
from vivavoce.store.search.candidates import LAST, Candidates, Kind, mark_of
from vivavoce.store.search.pieces import Piece, pieces_of
from vivavoce.store.search.query import Query, parse_query
from vivavoce.store.search.remarked import remarked
from vivavoce.store.search.sieve import Sieve
from vivavoce.store.search.vocabulary import Vocabulary, check_names, vocabulary
from vivavoce.store.search.which_runs import runs_of, told_of
from vivavoce.store.search.words import Snippet, snippet, stretches, words_in

BATCH = 500
"""Attempts, or gradings of attempts, indexed in one transaction; other writers get their turn in between."""

MANY = 5000
"""So many indexed at once, PostgreSQL counts anew how frequent words are: a tenth of a second of its processor."""

MOST_RUNS = 200
"""Runs up to which the index is asked for those runs alone; beyond, each candidate is looked at."""

FIRST_STEP, MOST_READ = 60, 400
"""Candidates that are looked at first, and at most, for one page with operators that only records can answer."""


class Hit(NamedTuple):
    """A search hit: in a reason of the scores `grading_id`, in the comment of the id `comment`, or else in a message.

    `turn` is the turn, None for what is about the whole conversation. `by` is the role of the message, the grader of
    the reason, or the author of the comment. `number` is the place in the index, lower for older hits.
    """

    run_id: str
    key: AttemptKey
    grading_id: str | None
    turn: int | None
    snippet: Snippet
    number: int
    by: str | None = None
    comment: int | None = None


class Found(NamedTuple):
    """Some hits, the newest first; the search goes on before the number `next`, None where it has come to its end.

    With operators that only records can answer, a page may have few hits or none although more follow.
    """

    hits: list[Hit]
    next: int | None


class Searcher:
    """Searches one store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(
        self,
        query: str | Query,
        *,
        run_id: str | None = None,
        kind: Kind | None = None,
        limit: int = 20,
        before: int | None = None,
    ) -> Found:
        """Return some hits with all of the words, newest first; only those `before` a number, if there is one.

        `run_id` is a single run to search, `kind` the only kind of hits; without it there are no comments among them.

        Raises:
            UsageError: the query cannot be read, names something unknown, or there is no hit with that number.
        """
        asked = parse_query(query) if isinstance(query, str) else query
        if kind == "comment":
            return self._comments(asked, run_id, limit, before)
        self.index_pending()
        with self._database.connected() as connection:
            last = None if before is None else _passage(connection, before)
            among = _among(connection, asked, run_id)
            if among == []:
                return Found([], None)
            narrow = among if among is not None and len(among) <= MOST_RUNS else None
            candidates = Candidates(connection, asked, kind, narrow)
            sieve = Sieve(connection, asked, None if narrow is not None else among)
            found = _found(candidates, sieve, limit, last)
            if not found.hits and found.next is None and last is None:
                check_names(connection, asked)
            return found

    def runs(self, query: str | Query) -> list[str]:
        """Return the ids of all runs whose id, suite, target, title, notes or tags fit a query, newest first.

        A query about conversations, such as one with `state:`, fits no run.

        Raises:
            UsageError: the query cannot be read, or names something unknown.
        """
        asked = parse_query(query) if isinstance(query, str) else query
        if not asked.is_of_runs:
            return []
        with self._database.connected() as connection:
            return told_of(connection, asked)

    def _comments(self, asked: Query, run_id: str | None, limit: int, before: int | None) -> Found:
        with self._database.connected() as connection:
            among = _among(connection, asked, run_id)
            rows, following = remarked(connection, asked, among, limit, before)
        hits: list[Hit] = []
        for row in rows:
            shown = snippet(row.text, asked.words) or Snippet("", 0, 0)
            key = AttemptKey(row.sample_id, row.target, row.trial)
            hits.append(Hit(row.run_id, key, None, row.turn, shown, row.id, row.author, row.id))
        return Found(hits, following)

    def vocabulary(self) -> Vocabulary:
        """Return the names that operators of a query may have: those of the newest runs."""
        with self._database.connected() as connection:
            return vocabulary(connection)

    def index_pending(self, until: Callable[[], bool] = lambda: False) -> int:
        """Index what is pending, or stop when `until` returns True; return how many were indexed."""
        return self._index(select(unread), until)

    def index_run(self, run_id: str) -> int:
        """Index what is pending of one run; return how many were indexed."""
        of_attempt = select(attempts.c.run_id).where(attempts.c.id == unread.c.attempt_id).scalar_subquery()
        return self._index(select(unread).where(of_attempt == run_id))

    def _index(self, pending: AnySelect, until: Callable[[], bool] = lambda: False) -> int:
        number = 0
        with self._database.apart() as connection:
            while not until() and connection.execute(pending.limit(1)).first():
                connection.rollback()
                with for_writing(connection).begin():
                    number += _read_some(connection, pending)
            if number >= BATCH and on_postgresql(connection):
                connection.rollback()
                with connection.begin():
                    connection.execute(text("SELECT gin_clean_pending_list('passages_by_word')"))
                    if number >= MANY:
                        connection.execute(text("ANALYZE passages"))
            return number


def _among(connection: Connection, query: Query, run_id: str | None) -> list[str] | None:
    """Return the runs that a query allows, None for all."""
    among = runs_of(connection, query)
    if run_id is None:
        return among
    return [run_id] if among is None or run_id in among else []


def _passage(connection: Connection, number: int) -> AnyRow:
    p = passages.c
    row = connection.execute(select(p.id, p.attempt_id, p.grading_id).where(p.id == number)).first()
    if row is None:
        raise no_cursor(str(number))
    return row


def _found(candidates: Candidates, sieve: Sieve, limit: int, last: AnyRow | None) -> Found:
    """Go through candidates, in growing steps where the sieve may drop some, until a page is full."""
    hits: list[Hit] = []
    seen = None if last is None else (last.attempt_id, last.grading_id)
    before = LAST if last is None else last.id
    read, step = 0, min(limit + 1, MOST_READ) if sieve.is_open else FIRST_STEP
    while True:
        rows = candidates.before(before, step)
        new: list[AnyRow] = []
        for row in rows:  # long texts have several passages, one after the other
            if (row.id, row.grading_id) != seen:
                new.append(row)
            seen = (row.id, row.grading_id)
        for row, pieces in sieve.kept(new):
            if len(hits) == limit:
                return Found(hits, hits[-1].number)
            hits.append(_hit(row, pieces, sieve.query.words))
        if len(rows) < step:
            return Found(hits, None)
        before, read = rows[-1].number, read + len(rows)
        if not sieve.is_open and read >= MOST_READ:
            return Found(hits, before)
        step = step if sieve.is_open else min(step * 2, MOST_READ - read)


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


def _read_some(connection: Connection, pending: AnySelect) -> int:
    """Index some of what is pending, or wait where others are indexing all of it."""
    some = pending.order_by(*unread.primary_key).limit(BATCH)
    rows = [(row.attempt_id, row.grading_id) for row in connection.execute(some.with_for_update(skip_locked=True))]
    if not rows:
        connection.execute(some.limit(1).with_for_update())
        return 0
    pieces = pieces_of(connection, rows)
    numbers = list({number for number, _ in rows})
    run_of = dict(connection.execute(select(attempts.c.id, attempts.c.run_id).where(attempts.c.id.in_(numbers))).all())
    passages_read = [
        (number, grading_id, words, mark_of(run_of[number]))
        for number, grading_id in rows
        if number in run_of
        for words in stretches(piece.text for piece in pieces[number, grading_id])
        if words.strip()
    ]
    if passages_read:
        (_into_postgresql if on_postgresql(connection) else _into_sqlite)(connection, passages_read)
    one = and_(unread.c.attempt_id == bindparam("number"), unread.c.grading_id == bindparam("grading"))
    connection.execute(delete(unread).where(one), [{"number": number, "grading": grading} for number, grading in rows])
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


def _hit(row: AnyRow, pieces: Sequence[Piece], query_phrases: Sequence[str]) -> Hit:
    key = AttemptKey(row.sample_id, row.target, row.trial)
    where = (row.run_id, key, row.grading_id or None)
    for piece in sorted(pieces, key=lambda one: -words_in(one.text, query_phrases)) if query_phrases else pieces:
        if (shown := snippet(piece.text, query_phrases)) is not None:
            return Hit(*where, piece.turn, shown, row.number, piece.by)
    return Hit(*where, None, Snippet("", 0, 0), row.number)
