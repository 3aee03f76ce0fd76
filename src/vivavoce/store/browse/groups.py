"""The conversations of a graded run by tag, target or trial: how many passed, with an interval, and what they cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, Select, case, func, select

from vivavoce.records.counting import to_number
from vivavoce.stats.intervals import mean_interval
from vivavoce.store.browse.conditions import Condition
from vivavoce.store.browse.listing import Group
from vivavoce.store.browse.status import split_tags
from vivavoce.store.database.schema import attempts, sample_index

By = Literal["tag", "target", "trial"]
"""What conversations are grouped by; one with several tags is in several groups."""

LARGEST = 20_000
"""Conversations up to which each group has an interval, for which samples are read one by one."""
MOST = 100
"""Groups at most, those with the most conversations."""


@dataclass(slots=True)
class _Counted:
    number: int = 0
    errors: int = 0
    cost: float | None = None
    passed: list[float] = field(default_factory=list[float])
    samples: list[str] = field(default_factory=list[str])
    decided: int = 0
    passing: int = 0


def groups(connection: Connection, which: Sequence[Condition], by: By) -> list[Group]:
    """Return the groups of the attempts for which some conditions hold, the largest first."""
    counted = select(func.count()).select_from(sample_index).where(*which)
    single = connection.execute(counted).scalar_one() <= LARGEST
    found: dict[str, _Counted] = {}
    for row in connection.execute(_query(which, by, single=single)):
        for name in _names(row.name, by):
            _add(found.setdefault(name, _Counted()), row, row.sample_id if single else None)
    listed = sorted(found.items(), key=lambda one: (-one[1].number, one[0]))[:MOST]
    if by == "trial":
        listed = sorted(listed, key=lambda one: int(one[0]))
    return [_group(name, one) for name, one in listed]


def _query(which: Sequence[Condition], by: By, *, single: bool) -> Select[Any]:
    d = sample_index.c
    name: ColumnElement[Any] = {"tag": d.tags, "target": d.target, "trial": d.trial}[by]

    def in_state(state: str, label: str) -> ColumnElement[int]:
        return func.sum(case((d.state == state, 1), else_=0)).label(label)

    states = [in_state("pass", "passing"), in_state("fail", "failing"), in_state("error", "errors")]
    query = select(name.label("name"), func.count().label("number"), *states, func.sum(d.cost).label("cost"))
    query = query.where(*which).group_by(name)
    if not single:
        return query
    joined = query.join_from(sample_index, attempts, attempts.c.id == d.attempt_id)
    return joined.add_columns(attempts.c.sample_id).group_by(attempts.c.sample_id)


def _names(value: str | int | None, by: By) -> Iterator[str]:
    if by == "tag":
        yield from split_tags(None if value is None else str(value))
    elif value is not None:
        yield str(to_number(value)) if isinstance(value, int) else value


def _add(group: _Counted, row: Any, sample: str | None) -> None:
    decided = row.passing + row.failing
    group.number += row.number
    group.errors += row.errors
    group.decided += decided
    group.passing += row.passing
    if row.cost is not None:
        group.cost = (group.cost or 0.0) + row.cost
    if sample is not None:
        group.passed += [1.0] * row.passing + [0.0] * row.failing
        group.samples += [sample] * decided


def _group(name: str, one: _Counted) -> Group:
    estimate = mean_interval(one.passed, one.samples) if one.passed else None
    return Group(
        name=name,
        number=one.number,
        errors=one.errors,
        decided=one.decided,
        pass_rate=one.passing / one.decided if one.decided else None,
        low=None if estimate is None else estimate.low,
        high=None if estimate is None else estimate.high,
        cost=one.cost,
    )
