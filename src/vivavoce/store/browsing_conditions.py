"""The terms of a filter, and an order, for the database: what a person typed is always a bound parameter."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    JSON,
    ColumnElement,
    and_,
    case,
    cast,
    column,
    exists,
    false,
    func,
    literal_column,
    not_,
    or_,
    select,
    table,
)
from sqlalchemy.dialects.postgresql import TSQUERY

from vivavoce.errors import UsageError
from vivavoce.store.browsing_filter import Compares, Has, Operator, Term
from vivavoce.store.encode import escape, escape_nul
from vivavoce.store.schema import attempts, passages, scores, turns
from vivavoce.store.search import mark_of
from vivavoce.store.words import folded

Condition = ColumnElement[bool]

_COMPARISONS: Mapping[Operator, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}
_LAST = 1e18
"""Where what has no score stands in an order: after everything that has one."""


@dataclass(frozen=True, slots=True)
class Within:
    """The run and the grading that are looked at, and in which of the two databases."""

    run_id: str
    grading_id: str
    postgresql: bool


def conditions(terms: Sequence[Term], within: Within) -> list[Condition]:
    """Return what holds for the attempts of a run that a filter lets through.

    Raises:
        UsageError: a text that is looked for has no word in it.
    """
    found = [attempts.c.run_id == within.run_id]
    for term in terms:
        one = _compared(term, within) if isinstance(term, Compares) else _has(term, within)
        found.append(not_(one) if term.negated else one)
    return found


def ordering(sort: str, within: Within) -> ColumnElement[float]:
    """Return what attempts are ordered by, upwards; see `list_samples`."""
    down = sort.startswith("-")
    name = sort[1:] if down else sort
    sign = -1.0 if down else 1.0
    if name == "position":
        return attempts.c.position * sign
    value = _number(name, within) if name in ("seconds", "turns") else None
    if name == "worst":
        value = _worst(within, or_error=not down)
    if value is None:
        value = _of_grader(name, within)
    return func.coalesce(value * sign, _LAST)


def _has(term: Has, within: Within) -> Condition:
    value = escape_nul(escape(term.value))
    match term.field:
        case "state":
            broken = attempts.c.failure.is_not(None) if value == "error" else false()
            return or_(broken, exists().where(_whole(within), scores.c.state == value).correlate(attempts))
        case "sample" if value.endswith("*"):
            return attempts.c.sample_id.startswith(value[:-1], autoescape=True)
        case "sample":
            return attempts.c.sample_id == value
        case "target":
            return attempts.c.target == value
        case "tag":
            return _tagged(value, within)
        case _:
            return _said(term.value, within)


def _tagged(tag: str, within: Within) -> Condition:
    if within.postgresql:
        tags = cast(attempts.c.sample, JSON).op("->")("tags")
        one = func.json_array_elements_text(func.coalesce(tags, cast("[]", JSON))).column_valued("tag")
        return exists(select(one).where(one == tag).correlate(attempts))
    each = func.json_each(attempts.c.sample, "$.tags").table_valued("value")
    return exists(select(each.c.value).where(each.c.value == tag).correlate(attempts))


def _said(value: str, within: Within) -> Condition:
    phrase = " ".join(folded(value).split())
    if not phrase:
        raise UsageError(f"filter: there is no word in '{value[:40]}' to look for")
    mark = mark_of(within.run_id)
    found = select(passages.c.attempt_id).where(passages.c.grading_id.in_(("", within.grading_id)))
    if within.postgresql:
        wanted = func.phraseto_tsquery("simple", phrase).op("&&")(cast(f"'run:{mark}'", TSQUERY))
        return attempts.c.id.in_(found.where(literal_column("passages.words").op("@@")(wanted)))
    index = table("passage_words", column("rowid"))
    match = literal_column("passage_words").op("MATCH")(f'words : "{phrase}" AND run : "{mark}"')
    return attempts.c.id.in_(found.join(index, index.c.rowid == passages.c.id).where(match))


def _compared(term: Compares, within: Within) -> Condition:
    compare = _COMPARISONS[term.operator]
    if not term.grader:
        return compare(_number(term.name, within), term.value)
    s = scores.c
    named = (s.name == escape_nul(escape(term.name)), s.grading_id == within.grading_id, s.turn.is_(None))
    return attempts.c.id.in_(select(s.attempt_id).where(*named, compare(s.value, term.value)))


def _number(name: str, within: Within) -> ColumnElement[Any]:
    match name:
        case "turns":
            mine = turns.c.attempt_id == attempts.c.id
            return select(func.count()).select_from(turns).where(mine).correlate(attempts).scalar_subquery()
        case "worst":
            return _worst(within, or_error=False)
        case "trial":
            return attempts.c.trial * 1.0
        case _:
            return attempts.c.seconds


def _of_grader(name: str, within: Within) -> ColumnElement[Any]:
    unindexed = func.coalesce(scores.c.name, "")  # or SQLite looks through all scores of that name, for each attempt
    chosen = select(func.min(scores.c.value)).where(_whole(within), unindexed == escape_nul(escape(name)))
    return chosen.correlate(attempts).scalar_subquery()


def _worst(within: Within, *, or_error: bool) -> ColumnElement[Any]:
    """Return the lowest score of an attempt; where errors count, one stands below every score."""
    value = case((scores.c.state == "error", -1.0), else_=scores.c.value) if or_error else scores.c.value
    lowest = select(func.min(value)).where(_whole(within)).correlate(attempts).scalar_subquery()
    return case((attempts.c.failure.is_not(None), -2.0), else_=lowest) if or_error else lowest


def _whole(within: Within) -> Condition:
    s = scores.c
    return and_(s.attempt_id == attempts.c.id, s.grading_id == within.grading_id, s.turn.is_(None))
