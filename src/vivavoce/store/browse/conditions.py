"""The terms of a filter, and an order, for the database: user input is always a bound parameter."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Select,
    and_,
    cast,
    column,
    func,
    literal,
    literal_column,
    not_,
    or_,
    select,
    table,
    tuple_,
)
from sqlalchemy.dialects.postgresql import TSQUERY

from vivavoce.errors import UsageError
from vivavoce.lazy_names import lazy
from vivavoce.store.browse.filter import NUMBERS, Compares, Has, Operator, Term
from vivavoce.store.browse.status import LAST, tagged
from vivavoce.store.database.schema import attempts, comments, labels, passages, sample_index, scores
from vivavoce.store.database.text import Text

Condition = ColumnElement[bool]

_COMPARISONS: Mapping[Operator, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}


@dataclass(frozen=True, slots=True)
class Within:
    """The run and the grading of a query, and whether the database is PostgreSQL.

    `ended` is when the scores were complete, None while they may change.
    """

    run_id: str
    grading_id: str
    postgresql: bool
    ended: float | None = None


def conditions(terms: Sequence[Term], within: Within) -> list[Condition]:
    """Return the condition for the samples of a grading that match a filter.

    Raises:
        UsageError: a searched text has no word in it.
    """
    found = [sample_index.c.grading_id == within.grading_id]
    for term in terms:
        one = _compared(term, within) if isinstance(term, Compares) else _has(term, within)
        found.append(not_(one) if term.negated else one)
    return found


@dataclass(frozen=True, slots=True)
class Ordering:
    """A sort order of samples: the columns `names`, with the `kinds` of values in a cursor.

    `extra` is selected in addition to the sample, from `table`.
    """

    columns: Sequence[ColumnElement[Any]]
    names: Sequence[str]
    kinds: Sequence[type]
    table: FromClause
    extra: Sequence[ColumnElement[Any]] = ()
    down: bool = False

    @property
    def by(self) -> list[ColumnElement[Any]]:
        """The columns in their direction."""
        return [column.desc() if self.down else column for column in self.columns]

    def beyond(self, place: Sequence[Any]) -> Condition:
        """Return the condition for everything after a cursor."""
        return tuple_(*self.columns) < place if self.down else tuple_(*self.columns) > place


def ordering(sort: str, within: Within) -> Ordering:
    """Return the sort order of attempts; see `Browse.samples`."""
    d = sample_index.c
    down = sort.startswith("-")
    name = sort[1:] if down else sort
    if name == "position":  # as they stand in the table, so that no page needs more than it shows
        return Ordering((d.position, d.attempt_id), ("position", "attempt_id"), (int, int), sample_index, down=down)
    joined: FromClause = sample_index
    if name == "worst":
        value: ColumnElement[Any] = d.lowest if down else d.rank
    elif name in NUMBERS:
        value = d[name] * 1.0
    else:
        value = scores.c.value
        joined = sample_index.outerjoin(scores, and_(_named(name, within), scores.c.attempt_id == d.attempt_id))
    key = func.coalesce(-value if down else value, LAST)
    names = ("sort_key", "position", "attempt_id")
    return Ordering((key, d.position, d.attempt_id), names, (float, int, int), joined, (key.label("sort_key"),))


def _has(term: Has, within: Within) -> Condition:
    a, d = attempts.c, sample_index.c
    value = term.value
    match term.field:
        case "state" if value == "scored":
            return or_(d.lowest.is_not(None), d.state == "measured")
        case "state" if value == "skipped":
            return d.skips > 0
        case "state":
            return d.state == value
        case "tag":
            places = (func.strpos if within.postgresql else func.instr)(d.tags, literal(tagged(value), Text))
            return func.coalesce(places, 0) > 0
        case "has":
            return d.attempt_id.in_(_with(value))
        case "sample" if value.endswith("*"):
            # between two texts, for an index; SQLite's LIKE knows no case
            return _attempts(within, a.sample_id >= value[:-1], a.sample_id < f"{value[:-1]}\U0010ffff")
        case "sample":
            return _attempts(within, a.sample_id == value)
        case "target":
            return d.target == value
        case "cause":
            return and_(d.cause.is_not(None), d.cause == value)
        case _:
            return d.attempt_id.in_(_mentions(term.value, within))


def _with(what: str) -> Select[tuple[int]]:
    """Return the attempts, of any run, on which people left something."""
    if what == "label":
        return select(labels.c.attempt_id)
    query = select(comments.c.attempt_id)
    return query if what == "comment" else query.where(comments.c.resolved_at.is_(None))


def _attempts(within: Within, *which: Condition) -> Condition:
    return sample_index.c.attempt_id.in_(select(attempts.c.id).where(attempts.c.run_id == within.run_id, *which))


def _mentions(value: str, within: Within) -> Select[tuple[int]]:
    phrase = " ".join(lazy("vivavoce.store.search.words:folded")(value).split())
    if not phrase:
        raise UsageError(f"filter: there is no word to search for in '{value[:40]}'")
    mark = lazy("vivavoce.store.search.search:mark_of")(within.run_id)
    found = select(passages.c.attempt_id).where(passages.c.grading_id.in_(("", within.grading_id)))
    if within.postgresql:
        tsquery = func.phraseto_tsquery("simple", phrase).op("&&")(cast(f"'run:{mark}'", TSQUERY))
        return found.where(literal_column("passages.words").op("@@")(tsquery))
    index = table("passage_words", column("rowid"))
    match = literal_column("passage_words").op("MATCH")(f'words : "{phrase}" AND run : "{mark}"')
    return found.join(index, index.c.rowid == passages.c.id).where(match)


def _compared(term: Compares, within: Within) -> Condition:
    compare, d, s = _COMPARISONS[term.operator], sample_index.c, scores.c
    if term.grader:
        return d.attempt_id.in_(select(s.attempt_id).where(_named(term.name, within), compare(s.value, term.value)))
    match term.name:
        case "worst":
            return compare(d.lowest, term.value)
        case "trial":
            return compare(d.trial + 1.0, term.value)
        case "turns" | "tokens":
            return compare(d[term.name] * 1.0, term.value)
        case _:
            return compare(d[term.name], term.value)


def _named(name: str, within: Within) -> Condition:
    s = scores.c
    return and_(s.name == name, s.grading_id == within.grading_id, s.turn.is_(None))
