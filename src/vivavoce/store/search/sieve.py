"""What the index cannot answer of a query: the state, the grader, the tag and the role of its candidates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from sqlalchemy import Connection, and_, false, or_, select

from vivavoce.records.score import State
from vivavoce.store.browse.status import status_of, tagged, tags_of
from vivavoce.store.database.database import AnyRow
from vivavoce.store.database.schema import attempts, gradings, sample_index, scores
from vivavoce.store.search.pieces import Piece, Pieces, pieces_of
from vivavoce.store.search.query import Query
from vivavoce.store.search.words import has_all, has_any

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
        return not self._targets or any(_fits(row.target.casefold(), one) for one in self._targets)

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
            return [one for one in pieces if self._by_grader(one.by) and self._in_score_state(one.state, one.passed)]
        roles = self.query.wanted("role")
        return [one for one in pieces if not roles or one.by in roles]

    def _has_words(self, pieces: Sequence[Piece]) -> bool:
        texts = [one.text for one in pieces]
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
