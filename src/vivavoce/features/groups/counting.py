"""Conversations of a graded run in groups, as the database counts them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

from pydantic import BaseModel, ConfigDict
from sqlalchemy import ColumnElement, Connection, Select, and_, case, exists, func, select

from vivavoce.errors import UsageError
from vivavoce.features.groups.fields import cases_of, field_path, fields_of
from vivavoce.records.score import to_number
from vivavoce.stats.groups import Cell, GroupDifference, Sample, group_differences
from vivavoce.stats.intervals import share_interval, spoiled_bounds
from vivavoce.store.browse.filter import Condition, Term, Within
from vivavoce.store.database.schema import attempts, sample_index, scores
from vivavoce.store.runs.rows import split_tags
from vivavoce.store.store import Store

Common = Literal["tag", "target", "trial"]
"""What every conversation can be grouped by."""

MAX_CONVERSATIONS = 100_000
"""Conversations up to which those of one sample, and fields of samples, are distinguished."""
MAX_GROUPS = 100
"""Groups at most, those with the most conversations."""

_OF_TESTER = '{"blame":%"tester",%"kind":%'
"""How a failure begins, as it is stored, that the tester is blamed for; quotes within its texts are escaped."""


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


class Group(BaseModel):
    """Some attempts of a graded run: of the `decided` ones the share that passed, its 95% interval, errors, and cost.

    Of the errors, `tester_errors` were made by the tester that led the conversations; the share is net of them, and
    `raw_pass_rate` and `highest_pass_rate` are its bounds, as in a summary.

    An attempt counts by the worst of its scores, unless a grader was asked for. `rest` is how the group differs from
    all others together, None where that is unknown. `cost` is the sum of what is known, None where nothing is.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    number: int
    decided: int
    errors: int
    tester_errors: int = 0
    pass_rate: float | None = None
    raw_pass_rate: float | None = None
    highest_pass_rate: float | None = None
    low: float | None = None
    high: float | None = None
    rest: GroupDifference | None = None
    cost: float | None = None


class _Row(NamedTuple):
    """What was counted of a sample in one group, or of all samples in it where they are not distinguished."""

    name: str | int | None
    sample: str | None
    number: int
    passed: int
    tries: int
    errors: int
    spoiled: int
    cost: float | None


@dataclass(slots=True)
class _GroupCounts:
    """What was counted of the conversations of one group; `tries` says how many samples passed p of n."""

    number: int = 0
    errors: int = 0
    spoiled: int = 0
    cost: float | None = None
    tries: Counter[tuple[int, int]] = field(default_factory=Counter[tuple[int, int]])

    def add(self, row: _Row) -> None:
        self.number += row.number
        self.errors += row.errors
        self.spoiled += row.spoiled
        if row.cost is not None:
            self.cost = (self.cost or 0.0) + row.cost


@dataclass(frozen=True, slots=True)
class _Grouped:
    """The groups by name, and how many samples there are with which cells."""

    groups: Mapping[str, _GroupCounts]
    samples: Mapping[Sample, int]


def count_groups(
    store: Store,
    grading_id: str,
    by: str,
    filter_terms: str | Sequence[Term] = (),
    *,
    grader: str | None = None,
    pairs: str | None = None,
) -> list[Group]:
    """Return the attempts of a grading that match a filter, in groups; see `Grouping`.

    Raises:
        UsageError: there is no such grading, grader or field, or the filter cannot be read.
    """
    grouping = Grouping(by, grader, pairs)

    def count(connection: Connection, which: Sequence[Condition], within: Within) -> list[Group]:
        return groups(connection, which, within, grouping)

    return list(store.browse.compute(grading_id, filter_terms, ("groups", grouping), count, grader=grader))


def groups(connection: Connection, which: Sequence[Condition], within: Within, grouping: Grouping) -> list[Group]:
    """Return the groups of the attempts for which some conditions hold, the largest first.

    Raises:
        UsageError: no sample has the field, no two samples are a pair, or there are too many for fields of samples.
    """
    counting = _Counting(connection, which, within, grouping)
    d = sample_index.c
    ends = select(func.count(), func.max(d.trial), func.min(d.target), func.max(d.target)).where(*which)
    number, last_trial, first_target, last_target = connection.execute(ends).one()
    alone = not last_trial and first_target == last_target
    if grouping.of_samples and number > MAX_CONVERSATIONS:
        raise UsageError(
            f"sample fields can be grouped for at most {MAX_CONVERSATIONS:,} conversations, got {number:,}; filter them"
        )
    if grouping.of_samples or (not alone and number <= MAX_CONVERSATIONS):
        return _list_groups(counting.by_sample(), grouping.by)
    return _list_groups(counting.alone(), grouping.by, known=alone)


@dataclass(frozen=True, slots=True)
class _Counting:
    connection: Connection
    which: Sequence[Condition]
    within: Within
    grouping: Grouping

    def alone(self) -> _Grouped:
        """Return the groups, each conversation being a sample of its own."""
        counts: defaultdict[str, _GroupCounts] = defaultdict(_GroupCounts)
        samples: Counter[Sample] = Counter()
        for row in self._rows(told_apart=False):
            names = frozenset(_names(row.name, self.grouping.by))
            tries = Counter({(1, 1): row.passed, (0, 1): row.tries - row.passed})
            for (passed, one_try), times in tries.items():
                samples[(Cell(names, passed, one_try),)] += times
            for name in names:
                counts[name].add(row)
                counts[name].tries += tries
        return _Grouped(counts, samples)

    def by_sample(self) -> _Grouped:
        """Return the groups, where a sample, or several of one case, may be in several groups."""
        by, pairs = self.grouping.by, self.grouping.pairs
        run_id = self.within.run_id
        values = None if by in get_args(Common) else fields_of(self.connection, run_id, by)
        cases = {} if pairs is None else cases_of(self.connection, run_id, pairs)
        counts: defaultdict[str, _GroupCounts] = defaultdict(_GroupCounts)
        cells: defaultdict[str, defaultdict[tuple[frozenset[str], str], tuple[int, int]]]
        cells = defaultdict(lambda: defaultdict(lambda: (0, 0)))
        for row in self._rows(told_apart=True):
            sample = str(row.sample)
            names = _names(row.name, by) if values is None else (values[sample],) if sample in values else ()
            groups = frozenset(names)
            for name in groups:
                counts[name].add(row)
            if row.tries:
                place = cells[cases.get(sample, sample)]
                passed, tries = place[groups, sample]
                place[groups, sample] = passed + row.passed, tries + row.tries
        samples: Counter[Sample] = Counter()
        for place in cells.values():
            sample_cells = (Cell(groups, *tries) for (groups, _), tries in place.items())
            samples[tuple(sorted(sample_cells, key=_order))] += 1
            for name, tries in _tries_by_group(place).items():
                counts[name].tries[tries] += 1
        return _Grouped(counts, samples)

    def _rows(self, *, told_apart: bool) -> Iterator[_Row]:
        d, by = sample_index.c, self.grouping.by
        name = {"tag": d.tags, "target": d.target, "trial": d.trial}.get(by)
        sample = attempts.c.sample_id if told_apart else None
        keys = [column for column in (name, sample) if column is not None]
        passed, failed, broken = self._outcomes()
        counts = (func.count(), _sum(passed), _sum(passed) + _sum(failed), _sum(broken))
        counts = (*counts, _sum(and_(broken, self._tester_errors())), func.sum(d.cost))
        query: Select[Any] = select(*keys, *counts).where(*self.which).select_from(sample_index)
        if told_apart:
            query = query.join(attempts, attempts.c.id == d.attempt_id)
        if self.grouping.grader is not None:
            query = query.join(scores, and_(scores.c.attempt_id == d.attempt_id, self._of_grader()))
        for row in self.connection.execute(query.group_by(*keys)):
            cells = iter(row)
            first = next(cells) if name is not None else None
            which = next(cells) if told_apart else None
            number, p, n, errors, spoiled, cost = cells
            yield _Row(first, which, number, int(p), int(n), int(errors), int(spoiled), cost)

    def _outcomes(self) -> tuple[Condition, Condition, Condition]:
        """Return when a conversation passed, failed and broke."""
        if self.grouping.grader is None:
            state = sample_index.c.state
            return state == "pass", state == "fail", state == "error"
        return scores.c.passed == 1, scores.c.passed == 0, scores.c.state == "error"

    def _tester_errors(self) -> Condition:
        """Return when a score is missing because of the tester that led the conversation."""
        if self.grouping.grader is not None:
            return scores.c.failure.like(_OF_TESTER)
        s = scores.alias()
        mine = and_(s.c.attempt_id == sample_index.c.attempt_id, s.c.grading_id == self.within.grading_id)
        return exists(select(s.c.attempt_id).where(mine, s.c.failure.like(_OF_TESTER)))

    def _of_grader(self) -> Condition:
        s = scores.c
        return and_(s.grading_id == self.within.grading_id, s.name == self.grouping.grader, s.turn.is_(None))


def _sum(holds: Condition) -> ColumnElement[int]:
    return func.coalesce(func.sum(case((holds, 1), else_=0)), 0)


def _names(value: str | int | None, by: str) -> Iterator[str]:
    if by == "tag":
        yield from split_tags(None if value is None else str(value))
    elif value is not None:
        yield str(to_number(value)) if isinstance(value, int) else value


def _order(cell: Cell) -> tuple[list[str], int, int]:
    return sorted(cell.groups), cell.passed, cell.tries


def _tries_by_group(place: Mapping[tuple[frozenset[str], str], tuple[int, int]]) -> dict[str, tuple[int, int]]:
    """Return what passed and what was tried of one sample or case in each of its groups."""
    tries_by_group: dict[str, tuple[int, int]] = {}
    for (groups, _), (passed, tries) in place.items():
        for name in groups:
            before = tries_by_group.get(name, (0, 0))
            tries_by_group[name] = before[0] + passed, before[1] + tries
    return tries_by_group


def _list_groups(grouped: _Grouped, by: str, *, known: bool = True) -> list[Group]:
    """Return the groups in their order; unless `known`, they have no intervals, for samples were not distinguished."""
    ordered = sorted(grouped.groups.items(), key=lambda item: (-item[1].number, item[0]))[:MAX_GROUPS]
    if by == "trial":
        ordered.sort(key=lambda item: int(item[0]))
    against = group_differences(grouped.samples, among=[name for name, _ in ordered]) if known else {}
    rows: list[Group] = []
    for name, group in ordered:
        estimate = share_interval(group.tries)
        passed, tries = (sum(counts[place] * times for counts, times in group.tries.items()) for place in (0, 1))
        rows.append(
            Group(
                name=name,
                number=group.number,
                errors=group.errors,
                tester_errors=group.spoiled,
                **spoiled_bounds(passed, tries, group.spoiled),
                decided=tries,
                pass_rate=None if estimate is None else estimate.mean,
                low=None if estimate is None or not known else estimate.low,
                high=None if estimate is None or not known else estimate.high,
                cost=group.cost,
                rest=against.get(name),
            )
        )
    return rows
