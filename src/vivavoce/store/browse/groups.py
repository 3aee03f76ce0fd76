"""The conversations of a graded run by tag, target or trial: how many passed, with an interval, and what they cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, Select, case, func, select

from vivavoce.records.counting import to_number
from vivavoce.stats.intervals import ShareSums, share_interval
from vivavoce.store.browse.conditions import Condition
from vivavoce.store.browse.listing import Group
from vivavoce.store.browse.status import split_tags
from vivavoce.store.database.schema import attempts, sample_index

By = Literal["tag", "target", "trial"]
"""What conversations are grouped by; one with several tags is in several groups."""

LARGEST = 20_000
"""Conversations up to which samples with several trials or targets are told apart, for intervals."""
MOST = 100
"""Groups at most, those with the most conversations."""

_NONE = ShareSums(0, 0, 0, 0, 0, 0)


@dataclass(slots=True)
class _Counted:
    number: int = 0
    errors: int = 0
    cost: float | None = None
    sums: ShareSums = _NONE


def groups(connection: Connection, which: Sequence[Condition], by: By) -> list[Group]:
    """Return the groups of the attempts for which some conditions hold, the largest first."""
    d = sample_index.c
    ends = select(func.count(), func.max(d.trial), func.min(d.target), func.max(d.target)).where(*which)
    number, last_trial, first_target, last_target = connection.execute(ends).one()
    alone = not last_trial and first_target == last_target
    known = alone or number <= LARGEST
    found: dict[str, _Counted] = {}
    for row in connection.execute(_alone(which, by) if alone or not known else _by_sample(which, by)):
        for name in _names(row.name, by):
            _add(found.setdefault(name, _Counted()), row)
    listed = sorted(found.items(), key=lambda one: (-one[1].number, one[0]))[:MOST]
    if by == "trial":
        listed = sorted(listed, key=lambda one: int(one[0]))
    return [_group(name, one, known=known) for name, one in listed]


def _alone(which: Sequence[Condition], by: By) -> Select[Any]:
    """Return the sums of groups, each conversation being a sample of its own."""
    passed, decided = _in_state("pass"), _in_state("pass", "fail")
    sums = (decided, passed, decided, passed, passed, decided)
    return _grouped(_name(by), sums, func.count(), _in_state("error"), func.sum(sample_index.c.cost)).where(*which)


def _by_sample(which: Sequence[Condition], by: By) -> Select[Any]:
    """Return the sums of groups in which a sample has several trials or targets."""
    d = sample_index.c
    one = (
        select(
            _name(by).label("name"),
            func.count().label("number"),
            _in_state("pass").label("p"),
            _in_state("pass", "fail").label("n"),
            _in_state("error").label("errors"),
            func.sum(d.cost).label("cost"),
        )
        .join_from(sample_index, attempts, attempts.c.id == d.attempt_id)
        .where(*which)
        .group_by(_name(by), attempts.c.sample_id)
        .subquery()
        .c
    )
    sums = [func.sum(case((one.n > 0, 1), else_=0)), *map(func.sum, (one.p, one.n))]
    sums += map(func.sum, (one.p * one.p, one.p * one.n, one.n * one.n))
    return _grouped(one.name, sums, *map(func.sum, (one.number, one.errors, one.cost)))


def _grouped(name: ColumnElement[Any], sums: Iterable[ColumnElement[Any]], *others: ColumnElement[Any]) -> Select[Any]:
    names = ("samples", "p", "n", "pp", "pn", "nn")
    counted = [one.label(each) for each, one in zip(names, sums, strict=True)]
    told = [one.label(each) for each, one in zip(("number", "errors", "cost"), others, strict=True)]
    return select(name.label("name"), *counted, *told).group_by(name)


def _name(by: By) -> ColumnElement[Any]:
    d = sample_index.c
    return {"tag": d.tags, "target": d.target, "trial": d.trial}[by]


def _in_state(*states: str) -> ColumnElement[int]:
    return func.sum(case((sample_index.c.state.in_(states), 1), else_=0))


def _names(value: str | int | None, by: By) -> Iterator[str]:
    if by == "tag":
        yield from split_tags(None if value is None else str(value))
    elif value is not None:
        yield str(to_number(value)) if isinstance(value, int) else value


def _add(group: _Counted, row: Any) -> None:
    group.number += row.number
    group.errors += row.errors
    if row.cost is not None:
        group.cost = (group.cost or 0.0) + row.cost
    group.sums += ShareSums(*map(int, (row.samples, row.p, row.n, row.pp, row.pn, row.nn)))


def _group(name: str, one: _Counted, *, known: bool) -> Group:
    """Return a group; without `known`, it has no interval, for its samples were not told apart."""
    estimate = share_interval(one.sums)
    return Group(
        name=name,
        number=one.number,
        errors=one.errors,
        decided=one.sums.tries,
        pass_rate=None if estimate is None else estimate.mean,
        low=None if estimate is None or not known else estimate.low,
        high=None if estimate is None or not known else estimate.high,
        cost=one.cost,
    )
