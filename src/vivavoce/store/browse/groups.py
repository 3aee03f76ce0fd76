"""The conversations of a graded run in groups: how many passed, which groups differ from the rest, what they cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

from sqlalchemy import ColumnElement, Connection, Select, and_, case, exists, func, select

from vivavoce.errors import UsageError
from vivavoce.records.counting import to_number
from vivavoce.stats.groups import Crossed, GroupSums, group_differences
from vivavoce.stats.intervals import ShareSums, share_interval, spoiled_bounds
from vivavoce.store.browse.conditions import Condition, Within
from vivavoce.store.browse.fields import cases_of, field_path, fields_of
from vivavoce.store.browse.listing import Group
from vivavoce.store.browse.status import split_tags
from vivavoce.store.database.schema import attempts, sample_index, scores

Common = Literal["tag", "target", "trial"]
"""What every conversation can be grouped by."""

LARGEST = 100_000
"""Conversations up to which those of one sample, and fields of samples, are told apart."""
MOST = 100
"""Groups at most, those with the most conversations."""

_OF_TESTER = '{"blame":%"tester",%"kind":%'
"""How a failure begins, as it is stored, that the tester is blamed for; quotes within its texts are escaped."""

_NONE = ShareSums(0, 0, 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Grouping:
    """What conversations are grouped by: `tag`, `target`, `trial`, or a field of samples.

    Such a field is `persona`, or `metadata.language` and the like; one with several tags is in several groups. Passes
    are those of a `grader` or the reward, else a conversation counts by the worst of its scores. Samples with the same
    value of the field `pairs` are variants of one case, and groups are compared within it.

    Raises:
        UsageError: there is no such field.
    """

    by: str
    grader: str | None = None
    pairs: str | None = None

    def __post_init__(self) -> None:
        if self.by not in get_args(Common):
            field_path(self.by, get_args(Common))
        if self.pairs is not None:
            field_path(self.pairs)

    @property
    def of_samples(self) -> bool:
        """Whether it needs fields of samples."""
        return self.by not in get_args(Common) or self.pairs is not None


class _Row(NamedTuple):
    """What was counted of a sample in one group, or of all samples in it where they are not told apart."""

    name: str | int | None
    sample: str | None
    number: int
    passed: int
    tries: int
    errors: int
    spoiled: int
    cost: float | None


@dataclass(slots=True)
class _Counted:
    number: int = 0
    errors: int = 0
    spoiled: int = 0
    cost: float | None = None
    sums: ShareSums = _NONE
    tries: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])

    def add(self, row: _Row) -> None:
        self.number += row.number
        self.errors += row.errors
        self.spoiled += row.spoiled
        if row.cost is not None:
            self.cost = (self.cost or 0.0) + row.cost


def groups(connection: Connection, which: Sequence[Condition], within: Within, grouping: Grouping) -> list[Group]:
    """Return the groups of the attempts for which some conditions hold, the largest first.

    Raises:
        UsageError: no sample has the field, no two samples are a pair, or there are too many for fields of samples.
    """
    counted = _Counting(connection, which, within, grouping)
    d = sample_index.c
    ends = select(func.count(), func.max(d.trial), func.min(d.target), func.max(d.target)).where(*which)
    number, last_trial, first_target, last_target = connection.execute(ends).one()
    alone = not last_trial and first_target == last_target
    if grouping.of_samples and number > LARGEST:
        raise UsageError(
            f"fields of samples are read of up to {LARGEST:,} conversations, not of {number:,}; filter them"
        )
    if grouping.of_samples or (not alone and number <= LARGEST):
        return _listed(*counted.by_sample(), grouping.by)
    found, whole = counted.alone()
    return _listed(found, whole, grouping.by, known=alone)


@dataclass(frozen=True, slots=True)
class _Counting:
    connection: Connection
    which: Sequence[Condition]
    within: Within
    grouping: Grouping

    def alone(self) -> tuple[dict[str, _Counted], _Counted]:
        """Return the groups and the whole, each conversation being a sample of its own."""
        found: defaultdict[str, _Counted] = defaultdict(_Counted)
        whole = _Counted()
        for row in self._rows(told_apart=False):
            n, p = row.tries, row.passed
            sums = ShareSums(n, p, n, p, p, n)
            for one in (whole, *(found[name] for name in _names(row.name, self.grouping.by))):
                one.add(row)
                one.sums += sums
        return found, whole

    def by_sample(self) -> tuple[dict[str, _Counted], _Counted]:
        """Return the groups and the whole, where a sample, or several of one case, may be in several groups."""
        by, pairs = self.grouping.by, self.grouping.pairs
        run_id = self.within.run_id
        values = None if by in get_args(Common) else fields_of(self.connection, run_id, by)
        cases = {} if pairs is None else cases_of(self.connection, run_id, pairs)
        found: defaultdict[str, _Counted] = defaultdict(_Counted)
        whole = _Counted()
        for row in self._rows(told_apart=True):
            sample = str(row.sample)
            names = _names(row.name, by) if values is None else (values[sample],) if sample in values else ()
            for one in (whole, *(found[name] for name in names)):
                one.add(row)
                if row.tries:
                    place = cases.get(sample, sample)
                    p, n = one.tries.get(place, (0, 0))
                    one.tries[place] = p + row.passed, n + row.tries
        for one in (whole, *found.values()):
            one.sums = _sums(one.tries.values())
        return found, whole

    def _rows(self, *, told_apart: bool) -> Iterator[_Row]:
        d, by = sample_index.c, self.grouping.by
        name = {"tag": d.tags, "target": d.target, "trial": d.trial}.get(by)
        sample = attempts.c.sample_id if told_apart else None
        keys = [one for one in (name, sample) if one is not None]
        passed, failed, broken = self._outcomes()
        counts = (func.count(), _sum(passed), _sum(passed) + _sum(failed), _sum(broken))
        counts = (*counts, _sum(and_(broken, self._spoiled())), func.sum(d.cost))
        query: Select[Any] = select(*keys, *counts).where(*self.which).select_from(sample_index)
        if told_apart:
            query = query.join(attempts, attempts.c.id == d.attempt_id)
        if self.grouping.grader is not None:
            query = query.join(scores, and_(scores.c.attempt_id == d.attempt_id, self._named()))
        for row in self.connection.execute(query.group_by(*keys)):
            found = iter(row)
            first = next(found) if name is not None else None
            which = next(found) if told_apart else None
            number, p, n, errors, spoiled, cost = found
            yield _Row(first, which, number, int(p), int(n), int(errors), int(spoiled), cost)

    def _outcomes(self) -> tuple[Condition, Condition, Condition]:
        """Return when a conversation passed, failed and broke."""
        if self.grouping.grader is None:
            state = sample_index.c.state
            return state == "pass", state == "fail", state == "error"
        return scores.c.passed == 1, scores.c.passed == 0, scores.c.state == "error"

    def _spoiled(self) -> Condition:
        """Return when a score is missing because of the tester that led the conversation."""
        if self.grouping.grader is not None:
            return scores.c.failure.like(_OF_TESTER)
        s = scores.alias()
        mine = and_(s.c.attempt_id == sample_index.c.attempt_id, s.c.grading_id == self.within.grading_id)
        return exists(select(s.c.attempt_id).where(mine, s.c.failure.like(_OF_TESTER)))

    def _named(self) -> Condition:
        s = scores.c
        return and_(s.grading_id == self.within.grading_id, s.name == self.grouping.grader, s.turn.is_(None))


def _sum(holds: Condition) -> ColumnElement[int]:
    return func.coalesce(func.sum(case((holds, 1), else_=0)), 0)


def _names(value: str | int | None, by: str) -> Iterator[str]:
    if by == "tag":
        yield from split_tags(None if value is None else str(value))
    elif value is not None:
        yield str(to_number(value)) if isinstance(value, int) else value


def _sums(tries: Iterable[tuple[int, int]]) -> ShareSums:
    samples = p_all = n_all = pp = pn = nn = 0
    for p, n in tries:
        samples += 1
        p_all += p
        n_all += n
        pp += p * p
        pn += p * n
        nn += n * n
    return ShareSums(samples, p_all, n_all, pp, pn, nn)


def _against(one: _Counted, whole: _Counted) -> GroupSums:
    """Return what is in a group and what is not."""
    total, inside = whole.sums, one.sums
    pp, pn, np, nn, beyond = _crossing(one.tries, whole.tries)
    crossed = Crossed(pp, pn, np, nn)
    outside = ShareSums(
        beyond if one.tries else total.samples - inside.samples,
        total.passed - inside.passed,
        total.tries - inside.tries,
        total.passed_squared - inside.passed_squared - 2 * pp,
        total.passed_by_tries - inside.passed_by_tries - pn - np,
        total.tries_squared - inside.tries_squared - 2 * nn,
    )
    return GroupSums(inside, outside, crossed)


def _crossing(
    inside: Mapping[str, tuple[int, int]], whole: Mapping[str, tuple[int, int]]
) -> tuple[int, int, int, int, int]:
    """Return the sums over samples on both sides, as in `Crossed`, and how many samples are on the other side."""
    pp = pn = np = nn = 0
    only_inside = 0
    for place, (p, n) in inside.items():
        total_p, total_n = whole[place]
        other_p, other_n = total_p - p, total_n - n
        if not other_n:
            only_inside += 1
            continue
        pp += p * other_p
        pn += p * other_n
        np += n * other_p
        nn += n * other_n
    return pp, pn, np, nn, len(whole) - only_inside


def _listed(found: Mapping[str, _Counted], whole: _Counted, by: str, *, known: bool = True) -> list[Group]:
    """Return the groups in their order; unless `known`, they have no intervals, for samples were not told apart."""
    ordered = sorted(found.items(), key=lambda one: (-one[1].number, one[0]))[:MOST]
    if by == "trial":
        ordered.sort(key=lambda one: int(one[0]))
    against = group_differences([_against(one, whole) for _, one in ordered]) if known else [None] * len(ordered)
    listed: list[Group] = []
    for (name, one), rest in zip(ordered, against, strict=True):
        estimate = share_interval(one.sums)
        listed.append(
            Group(
                name=name,
                number=one.number,
                errors=one.errors,
                tester_errors=one.spoiled,
                **spoiled_bounds(one.sums.passed, one.sums.tries, one.spoiled),
                decided=one.sums.tries,
                pass_rate=None if estimate is None else estimate.mean,
                low=None if estimate is None or not known else estimate.low,
                high=None if estimate is None or not known else estimate.high,
                cost=one.cost,
                rest=rest,
            )
        )
    return listed
