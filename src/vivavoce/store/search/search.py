"""Search: conversations that may contain a text, and those that do."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from sqlalchemy import Connection, and_, bindparam, delete, false, func, insert, or_, select, text
from sqlalchemy.exc import DBAPIError

from vivavoce.errors import StoreError
from vivavoce.records.run import AttemptKey
from vivavoce.records.score import State
from vivavoce.store.browse.filter import no_cursor
from vivavoce.store.database.database import AnyRow, AnySelect, Database, for_writing, is_forbidden, on_postgresql
from vivavoce.store.database.schema import attempts, gradings, passages, sample_index, scores, unread
from vivavoce.store.runs.rows import status_of, tagged, tags_of
from vivavoce.store.search.query import (
    Piece,
    Pieces,
    Query,
    Snippet,
    has_all,
    has_any,
    parse_query,
    pieces_of,
    snippet,
    stretches,
    words_in,
)
from vivavoce.store.search.runs import Vocabulary, check_names, remarked, runs_of, told_of, vocabulary

Kind = Literal["conversation", "reason", "comment"]
"""What a hit is in: what was said in a conversation, the reasons of its scores, or comments, which are not passages."""

_CLEAN_PENDING = """
SELECT gin_clean_pending_list(oid) FROM pg_class
WHERE oid = 'passages_by_word'::regclass AND pg_has_role(relowner, 'USAGE')
"""
"""Only the owner of an index may clean it; for others PostgreSQL does so itself, later."""

_GRANTS = "GRANT INSERT, UPDATE, DELETE ON unread, passages TO USER; GRANT USAGE ON SEQUENCE passages_id_seq TO USER"
"""What lets a user of PostgreSQL index."""

LAST = 2**63 - 1
"""No passage has a number above it."""

_COLUMNS = "p.id AS number, p.grading_id, a.id, a.run_id, a.sample_id, a.target, a.trial, a.position"
_IN_SQLITE = f"""
SELECT {_COLUMNS}
FROM passage_words JOIN passages p ON p.id = passage_words.rowid JOIN attempts a ON a.id = p.attempt_id
WHERE passage_words MATCH :wanted AND passage_words.rowid < :before {{also}}
ORDER BY passage_words.rowid DESC LIMIT :limit
"""
# SQLite takes the tables of a CROSS JOIN in this order, and so needs no sorting
_IN_EITHER = f"""
SELECT {_COLUMNS}
FROM passages p CROSS JOIN attempts a
WHERE a.id = p.attempt_id AND p.id < :before {{also}} ORDER BY p.id DESC LIMIT :limit
"""


class Candidates:
    """The passages that may be hits: with the words, of the right kind and target, and of some `runs` or of all."""

    def __init__(self, connection: Connection, query: Query, kind: Kind | None, runs: Sequence[str] | None) -> None:
        self._connection = connection
        self._values: dict[str, Any] = {}
        also = self._conditions(query, kind, runs)
        if on_postgresql(connection):
            if wanted := self._tsquery(query, runs):
                also += f" AND p.words @@ ({wanted})"
            self._statement = _IN_EITHER.format(also=also)
        else:
            match = _match(query, runs)
            self._statement = (_IN_SQLITE if match else _IN_EITHER).format(also=also)
            self._values |= {"wanted": match} if match else {}

    def before(self, number: int, limit: int) -> Sequence[AnyRow]:
        """Return the newest candidates with a number below this one."""
        return self._connection.execute(text(self._statement), {**self._values, "before": number, "limit": limit}).all()

    def _conditions(self, query: Query, kind: Kind | None, runs: Sequence[str] | None) -> str:
        found = ""
        conversations, reasons = query.finds
        if not conversations or kind == "reason":
            found += " AND p.grading_id <> ''"
        if not reasons or kind == "conversation":
            found += " AND p.grading_id = ''"
        if runs is not None:  # an index may still know passages of a run that is gone
            found += f" AND a.run_id IN ({self._bound('run', runs)})"
        if targets := query.unwanted("target"):
            found += f" AND a.target NOT IN ({self._bound('untarget', targets)})"
        return found

    def _tsquery(self, query: Query, runs: Sequence[str] | None) -> str:
        parts = [f"phraseto_tsquery('simple', {one})" for one in self._bound("word", query.words).split(", ") if one]
        parts += [
            f"!!phraseto_tsquery('simple', {one})" for one in self._bound("not", query.excluded).split(", ") if one
        ]
        if runs is not None:
            self._values["marks"] = " | ".join(f"'run:{mark_of(run)}'" for run in runs)
            parts.append("CAST(:marks AS tsquery)")
        return " && ".join(parts)

    def _bound(self, name: str, values: Sequence[str]) -> str:
        """Bind values, and return their placeholders."""
        named = {f"{name}_{number}": value for number, value in enumerate(values)}
        self._values |= named
        return ", ".join(f":{one}" for one in named)


def _match(query: Query, runs: Sequence[str] | None) -> str:
    """Return the expression of SQLite's index; empty where every passage fits."""
    parts: list[str] = []
    if query.words:
        parts.append("words : (" + " AND ".join(f'"{phrase}"' for phrase in query.words) + ")")
    if runs is not None:
        parts.append("run : (" + " OR ".join(f'"{mark_of(run)}"' for run in runs) + ")")
    match = " AND ".join(f"({part})" for part in parts)
    if match and query.excluded:
        match = f"({match}) NOT (words : (" + " OR ".join(f'"{phrase}"' for phrase in query.excluded) + "))"
    return match


def mark_of(run_id: str) -> str:
    """Return the token of a run in the index, so that a search in one run reads nothing else."""
    return hashlib.sha256(run_id.encode(errors="surrogatepass")).hexdigest()[:16]


Rows: TypeAlias = "Sequence[AnyRow]"


class Sieve:
    """Keeps the candidates for which all operators hold, each with the texts that count; `runs` are those allowed.

    The state of a conversation is that in the newest complete scores of its run, that of a reason is that of its score.
    """

    def __init__(self, connection: Connection, query: Query, runs: Iterable[str] | None) -> None:
        self.query = query
        self._connection = connection
        self._runs = None if runs is None else set(runs)
        self._gradings: dict[str, str | None] = {}
        self._targets = {name.casefold() for name in query.wanted("target")}

    @property
    def is_open(self) -> bool:
        """Whether every candidate passes."""
        return (
            self._runs is None and not self._targets and not self._reads_texts and not self.query.uses("tag", "state")
        )

    def kept(self, rows: Rows) -> Iterator[tuple[AnyRow, list[Piece]]]:
        """Yield the rows that pass, in their order, each with its texts."""
        rows = [row for row in rows if self._is_allowed(row)]
        rows = self._judged(self._with_tags(rows)) if rows else rows
        texts = pieces_of(self._connection, [(row.id, row.grading_id) for row in rows])
        for row in rows:
            pieces = self._counting(row, texts)
            if self.is_open or not self._reads_texts or self._has_words(pieces):
                yield row, pieces

    @property
    def _reads_texts(self) -> bool:
        query = self.query
        return query.uses("role", "grader", "state") or bool(query.excluded and not query.words)

    def _is_allowed(self, row: AnyRow) -> bool:
        if self._runs is not None and row.run_id not in self._runs:
            return False
        return not self._targets or any(_fits(row.target.casefold(), target) for target in self._targets)

    def _with_tags(self, rows: Rows) -> Rows:
        wanted, unwanted = (list(map(tagged, get("tag"))) for get in (self.query.wanted, self.query.unwanted))
        if not wanted and not unwanted:
            return rows
        a = attempts.c
        held = select(a.id, a.sample).where(a.id.in_({row.id for row in rows}))
        tags = {row.id: tags_of(row.sample) or "" for row in self._connection.execute(held)}
        return [
            row
            for row in rows
            if (not wanted or any(one in tags[row.id] for one in wanted))
            and not any(one in tags[row.id] for one in unwanted)
        ]

    def _judged(self, rows: Rows) -> Rows:
        """Return the rows without the conversations that are in another state, or not judged by the graders asked."""
        said = [row for row in rows if not row.grading_id]
        if not said or not self.query.uses("state", "grader"):
            return rows
        self._know_gradings({row.run_id for row in said})
        states = self._scores_of(said) if self.query.uses("grader") else self._states_of(said)
        return [row for row in rows if row.grading_id or any(map(self._in_state, states.get(row.id, ())))]

    def _states_of(self, said: Rows) -> dict[int, list[str]]:
        d = sample_index.c
        places: dict[str, list[int]] = {}
        for row in said:
            if (grading_id := self._gradings[row.run_id]) is not None:
                places.setdefault(grading_id, []).append(row.position)
        # not as tuples: SQLite would look through all of the table for them
        of_each = [and_(d.grading_id == one, d.position.in_(mine)) for one, mine in places.items()]
        found = select(d.attempt_id, d.state).where(or_(false(), *of_each))
        return {row.attempt_id: [row.state] for row in self._connection.execute(found)}

    def _scores_of(self, said: Rows) -> dict[int, list[str]]:
        s = scores.c
        newest = {one for one in self._gradings.values() if one}
        found = select(s.attempt_id, s.name, s.state, s.passed).where(
            s.attempt_id.in_({row.id for row in said}), s.grading_id.in_(newest), s.turn.is_(None)
        )
        states: dict[int, list[str]] = {}
        for row in self._connection.execute(found):
            if self._by_grader(row.name):
                states.setdefault(row.attempt_id, []).append(status_of(row.state, row.passed))
        return states

    def _know_gradings(self, runs: set[str]) -> None:
        g = gradings.c
        unknown = runs - self._gradings.keys()
        if unknown:
            complete_last = (g.finished_at.is_not(None), g.created_at, g.id)
            rows = self._connection.execute(
                select(g.id, g.run_id).where(g.run_id.in_(unknown)).order_by(*complete_last)
            )
            self._gradings |= dict.fromkeys(unknown) | {row.run_id: row.id for row in rows}

    def _counting(self, row: AnyRow, texts: Pieces) -> list[Piece]:
        """Return the texts of a row in which words count."""
        pieces = texts[row.id, row.grading_id]
        if row.grading_id:
            return [
                piece
                for piece in pieces
                if self._by_grader(piece.by) and self._in_score_state(piece.state, piece.passed)
            ]
        roles = self.query.wanted("role")
        return [piece for piece in pieces if not roles or piece.by in roles]

    def _has_words(self, pieces: Sequence[Piece]) -> bool:
        texts = [piece.text for piece in pieces]
        return bool(texts) and has_all(texts, self.query.words) and not has_any(texts, self.query.excluded)

    def _by_grader(self, name: str) -> bool:
        wanted, unwanted = self.query.wanted("grader"), self.query.unwanted("grader")
        return (not wanted or name in wanted) and name not in unwanted

    def _in_score_state(self, state: State | None, passed: int | None) -> bool:
        return state is None or self._in_state(status_of(state, passed))

    def _in_state(self, state: str) -> bool:
        wanted, unwanted = self.query.wanted("state"), self.query.unwanted("state")
        return (not wanted or state in wanted) and state not in unwanted


def _fits(name: str, pattern: str) -> bool:
    return name == pattern or (pattern.endswith("*") and name.startswith(pattern[:-1]))


BATCH = 500
"""Attempts, or gradings of attempts, indexed in one transaction; other writers get their turn in between."""

MANY = 5000
"""So many indexed at once, PostgreSQL counts again how frequent words are: a tenth of a second of its processor."""

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
            found = _collect_hits(candidates, sieve, limit, last)
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
                try:
                    with for_writing(connection).begin():
                        number += _read_some(connection, pending)
                except DBAPIError as error:
                    if is_forbidden(error):
                        raise self._needs_writer(connection, pending) from error
                    raise
            if number >= BATCH and on_postgresql(connection):
                connection.rollback()
                with connection.begin():
                    connection.execute(text(_CLEAN_PENDING))
                    if number >= MANY:
                        connection.execute(text("ANALYZE passages"))
            return number

    def _needs_writer(self, connection: Connection, pending: AnySelect) -> StoreError:
        """Return what is said where texts are still to be indexed and this user may not write."""
        count = connection.execute(select(func.count()).select_from(pending.subquery())).scalar_one()
        hint = f", or let this one index: {_GRANTS}" if on_postgresql(connection) else ""
        return StoreError(
            f"{self._database.place}: {count:,} of the texts to search are not indexed yet, and this user may only "
            f"read; search once as a user that may write{hint}"
        )


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


def _collect_hits(candidates: Candidates, sieve: Sieve, limit: int, last: AnyRow | None) -> Found:
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
