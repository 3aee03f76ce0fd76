"""Graded runs as data: the scenarios and scores of a comparison, and what a summary shows besides means."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from sqlalchemy import ColumnElement, Connection, case, func, select

from vivavoce.messages import load_messages
from vivavoce.records.agents import several
from vivavoce.records.details import roles_of
from vivavoce.records.run import AttemptKey, Grading
from vivavoce.records.score import WARN, Failure, State, Usage, total_of_texts
from vivavoce.store.browse.listing import Histogram, Taken, title_of
from vivavoce.store.database.database import AnyRow, AnySelect, Database, any_of, tuples_of
from vivavoce.store.database.schema import attempts, sample_index, scores, turns
from vivavoce.store.runs.rows import failure_of_text, measured_in, usage_of_test

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


AT_ONCE = 5000
"""Attempts in one query."""


class ScoreText(NamedTuple):
    """What a score says, as in `Score`; `turns` has at most the lowest of its turns."""

    turn: int | None
    state: State
    value: float | None
    reason: str | None
    failure: Failure | None
    turns: tuple[ScoreText, ...] | None = None


@dataclass(frozen=True, slots=True)
class GraderScores:
    """The scores of whole conversations by one grader, in the order of the attempts.

    `values` are NaN and `passes` False without a score; `unscored` has the states of those that have none, by their
    place. `measured` has the numbers of measurements by their place; these have no value.
    """

    values: NDArray[np.float64]
    passes: NDArray[np.bool_]
    unscored: Mapping[int, State]
    measured: Mapping[int, float] = field(default_factory=dict[int, float])


@dataclass(frozen=True, slots=True)
class ScenarioScores:
    """The attempts of a graded run in the order of its plan, as columns, and the scores of each grader.

    The graders are in the order of their scores for the first attempts, including `reward`. `numbers` are those of the
    attempts in the store, none where they come from elsewhere.
    """

    samples: Sequence[str]
    targets: Sequence[str]
    scenarios: Sequence[str]
    graders: Mapping[str, GraderScores]
    numbers: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Scenarios:
    """The data for comparisons of graded runs."""

    database: Database

    def scores(self, grading: Grading) -> ScenarioScores:
        """Return the scenario of every attempt of a graded run, and its scores."""
        a, s = attempts.c, scores.c
        plan = select(a.id, a.sample_id, a.target, a.scenario).where(a.run_id == grading.run_id)
        of_whole = s.grading_id == grading.id, s.turn.is_(None)
        values = select(s.attempt_id, s.value, s.passed).where(
            *of_whole, s.value.is_not(None)
        )  # an index holds all of it
        states = select(s.attempt_id, s.state, s.raw).where(*of_whole, s.value.is_(None))
        first = select(s.attempt_id, s.id).where(*of_whole).order_by(s.attempt_id).limit(1)
        firsts: dict[str, tuple[int, int]] = {}
        found: dict[str, GraderScores] = {}
        with self.database.connected() as connection:
            numbers, samples, targets, scenarios = _columns(connection, plan.order_by(a.position, a.id))
            places = _Places(numbers)
            for name in connection.execute(graders_of(grading)).scalars().all():
                scored = _columns(connection, values.where(s.name == name))
                unscored = _columns(connection, states.where(s.name == name))
                found[name] = places.scores(scored, unscored)
                earliest = connection.execute(first.where(s.name == name)).one()
                firsts[name] = earliest.attempt_id, earliest.id
        ordered = sorted(firsts, key=firsts.__getitem__)
        return ScenarioScores(samples, targets, scenarios, {name: found[name] for name in ordered}, numbers)

    def numbers(self, run_id: str, target: str, samples: Sequence[str]) -> list[tuple[int, str]]:
        """Return the numbers of the attempts of some samples, each with its sample, in the order of the plan."""
        a = attempts.c
        query = select(a.id, a.sample_id).where(a.run_id == run_id, a.target == target, a.sample_id.in_(samples))
        with self.database.connected() as connection:
            return [(number, sample) for number, sample in connection.execute(query.order_by(a.position, a.id))]

    def lowest_scores(self, grading: Grading, name: str, numbers: Sequence[int]) -> dict[int, ScoreText]:
        """Return the scores of a grader, or the rewards, of some attempts by their numbers."""
        s = scores.c
        query = select(s.attempt_id, s.id, s.turn, s.state, s.value, s.reason, s.failure)
        query = query.where(s.grading_id == grading.id, s.name == name)
        query = query.where(s.kind == ("reward" if name == "reward" else "grade"))
        found: dict[int, ScoreText] = {}
        with self.database.connected() as connection:
            for some in _parts(numbers):
                found |= _score_texts(tuples_of(connection, query.where(any_of(connection, s.attempt_id, some))))
        return found

    def titles(self, run_id: str, target: str, samples: Sequence[str]) -> dict[str, str]:
        """Return the titles of some samples, by their ids: the goal, or the beginning of the input, or the id."""
        a = attempts.c
        query = select(a.sample_id, a.sample).where(a.run_id == run_id, a.target == target, a.sample_id.in_(samples))
        with self.database.connected() as connection:
            rows = connection.execute(query).all()
        return {row.sample_id: title_of(json.loads(row.sample)) or row.sample_id for row in rows}


def graders_of(grading: Grading) -> AnySelect:
    """Return a query for the names of the graders with scores.

    It jumps from name to name in the index, so that its cost does not depend on the number of scores.
    """
    s = scores.alias().c
    names = select(func.min(s.name).label("name")).where(s.turn.is_(None)).cte("names", recursive=True)
    following = select(func.min(s.name)).where(s.turn.is_(None), s.name > names.c.name).scalar_subquery()
    names = names.union_all(select(following).where(names.c.name.is_not(None)))
    theirs = select(1).where(s.turn.is_(None), s.name == names.c.name, s.grading_id == grading.id).exists()
    return select(names.c.name).where(theirs)


def _columns(connection: Connection, query: AnySelect) -> Sequence[Sequence[Any]]:
    """Return the columns of a query."""
    rows = tuples_of(connection, query)
    return list(zip(*rows, strict=True)) or [()] * len(query.selected_columns)


class _Places:
    """The place of each attempt in the plan, by its number."""

    def __init__(self, numbers: Sequence[int]) -> None:
        import numpy as np

        given = np.array(numbers, dtype=np.int64)
        self._order = np.argsort(given)
        self._sorted = given[self._order]

    def of(self, numbers: Sequence[int]) -> NDArray[np.intp]:
        """Return the places of some attempts."""
        import numpy as np

        return self._order[np.searchsorted(self._sorted, np.array(numbers, dtype=np.int64))]

    def scores(self, scored: Sequence[Sequence[Any]], unscored: Sequence[Sequence[Any]]) -> GraderScores:
        """Return the scores of a grader, from the columns of those with a value and of those without one."""
        import numpy as np

        numbers, marks, passed = scored
        values, passes = np.full(len(self._order), np.nan), np.zeros(len(self._order), dtype=np.bool_)
        places = self.of(numbers)
        values[places] = marks
        passes[places] = passed
        others, states, raws = unscored
        without: dict[int, State] = {}
        measured: dict[int, float] = {}
        for place, state, raw in zip(self.of(others).tolist(), states, raws, strict=True):
            if (number := measured_in(state, None, raw)) is None:
                without[place] = state
            else:
                measured[place] = number
        return GraderScores(values, passes, without, measured)


def _score_texts(rows: Sequence[tuple[Any, ...]]) -> dict[int, ScoreText]:
    """Return what scores say by attempt, from the rows of whole conversations and of turns, in any order."""
    lowest: dict[int, tuple[Any, ...]] = {}
    for row in rows:
        attempt, number, turn, _, value, *_ = row
        if turn is not None and value is not None:
            known = lowest.get(attempt)
            if known is None or (value, number) < (known[4], known[1]):
                lowest[attempt] = row
    return {
        row[0]: _score_text(row, (_score_text(lowest[row[0]]),) if row[0] in lowest else None)
        for row in rows
        if row[2] is None
    }


def _score_text(row: tuple[Any, ...], turns: tuple[ScoreText, ...] | None = None) -> ScoreText:
    _, _, turn, state, value, reason, failure = row
    return ScoreText(turn, state, value, reason, failure_of_text(failure), turns)


def _parts(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    return (numbers[start : start + AT_ONCE] for start in range(0, len(numbers), AT_ONCE))


_TEXT = r'"(?:[^"\\]|\\.)*"'
_ASSISTANT = re.compile(rf'"role":"assistant",(?:"content":(?:null,|{_TEXT},|(?=\[)))?', re.DOTALL)
"""How a message of an assistant begins in the JSON of messages, as it is stored, up to its parts or its name."""
_NAME = re.compile(rf'"name":({_TEXT})', re.DOTALL)
_PARTS = json.JSONDecoder()
ROWS_AT_ONCE = 1000
"""Rows in memory at a time."""


def agent_names(messages: str) -> Iterator[str]:
    """Yield the names of assistants in the JSON of messages, as they are written there."""
    for start in _ASSISTANT.finditer(messages):
        at = start.end()
        if messages.startswith("[", at):
            at = _PARTS.raw_decode(messages, at)[1] + 1
        name = _NAME.match(messages, at)
        if name is not None:
            yield name[1]


@dataclass(frozen=True, slots=True)
class Details:
    """The details of graded runs."""

    database: Database

    def usage(self, grading: Grading) -> dict[str, Usage]:
        """Return what the conversations of a run and a grading of it used, by role."""
        a, s = attempts.c, scores.c
        graded: defaultdict[int, list[str]] = defaultdict(list)
        query = select(s.attempt_id, s.usage).where(*_whole(grading), s.kind == "grade")
        for row in self._rows(query.where(s.usage.is_not(None))):
            graded[row.attempt_id].append(row.usage)
        targets: list[str] = []
        judges: list[str] = []
        found: dict[str, Usage] = {}
        for row in self._rows(select(a.id, a.usage, a.test).where(a.run_id == grading.run_id)):
            if row.test is None:
                targets += () if row.usage is None else (row.usage,)
                judges += graded.get(row.id, ())
                continue
            target = Usage() if row.usage is None else Usage.model_validate_json(row.usage)
            asked = total_of_texts(graded.get(row.id, ()))
            for role, used in roles_of(target, asked, usage_of_test(json.loads(row.test))).items():
                found[role] = found[role] + used if role in found else used
        for role, used in roles_of(total_of_texts(targets), total_of_texts(judges), None).items():
            found[role] = found[role] + used if role in found else used
        return found

    def seconds(self, run_id: str) -> dict[str, list[float]]:
        """Return by target the seconds that it took for each reply, where they are known."""
        query = select(attempts.c.target, turns.c.seconds).join_from(attempts, turns)
        found: defaultdict[str, list[float]] = defaultdict(list)
        for row in self._rows(query.where(attempts.c.run_id == run_id, turns.c.seconds.is_not(None))):
            found[row.target].append(row.seconds)
        return dict(found)

    def has_agents(self, run_id: str) -> bool:
        """Return whether several agents act in a conversation of a run."""
        query = select(turns.c.attempt_id, turns.c.messages).join_from(attempts, turns)
        query = query.where(attempts.c.run_id == run_id, turns.c.messages.contains('"name":'))
        named: dict[int, str] = {}
        for row in self._rows(query):
            for name in agent_names(row.messages):
                if named.setdefault(row.attempt_id, name) != name and self._are_several(row.attempt_id):
                    return True
        return False

    def _are_several(self, attempt_id: int) -> bool:
        found = self._rows(select(turns.c.messages).where(turns.c.attempt_id == attempt_id).order_by(turns.c.idx))
        return several(message for row in found for message in load_messages(row.messages))

    def tags(self, run_id: str) -> dict[str, frozenset[str]]:
        """Return the tags of each sample that has some."""
        a = attempts.c
        query = select(a.sample_id, a.sample).where(a.run_id == run_id, a.sample.contains('"tags"'))
        found = {row.sample_id: json.loads(row.sample).get("tags") or () for row in self._rows(query)}
        return {sample: frozenset(map(str, tags)) for sample, tags in found.items() if tags}

    def votes(self, grading: Grading) -> Iterator[tuple[AttemptKey, str, list[float]]]:
        """Yield attempt, grader and values of the scores for which a judge was asked several times."""
        a, s = attempts.c, scores.c
        query = select(a.sample_id, a.target, a.trial, s.name, s.extra).join_from(attempts, scores)
        query = query.where(*_whole(grading), s.extra.contains('"votes"'))
        for row in self._rows(query):
            votes: list[dict[str, Any]] = json.loads(row.extra).get("votes") or []
            values = [vote["value"] for vote in votes if isinstance(vote.get("value"), int | float)]
            if len(values) > 1:
                yield AttemptKey(row.sample_id, row.target, row.trial), row.name, values

    def skips(self, grading: Grading) -> Iterator[tuple[str, str, str, int]]:
        """Yield target, grader, reason and number of the conversations that a grader does not apply to."""
        a, s = attempts.c, scores.c
        query = select(a.target, s.name, s.reason, func.count().label("number")).join_from(attempts, scores)
        query = query.where(*_whole(grading), s.state == "skipped").group_by(a.target, s.name, s.reason)
        for row in self._rows(query.order_by(func.min(s.id))):
            yield row.target, row.name, row.reason or "", row.number

    def warned(self, grading: Grading) -> dict[tuple[str, str], list[str]]:
        """Return by target and grader the sample of each conversation with a finding that only warns."""
        a, s = attempts.c, scores.c
        query = select(a.target, a.sample_id, s.name, s.findings).join_from(attempts, scores)
        query = query.where(*_whole(grading), s.findings.contains(f'"{WARN}"')).order_by(s.id)
        found: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for row in self._rows(query):
            if any(finding.get("state") == WARN for finding in json.loads(row.findings)):
                found[row.target, row.name].append(row.sample_id)
        return dict(found)

    def _rows(self, query: AnySelect) -> Iterator[AnyRow]:
        with self.database.connected() as connection:
            for some in connection.execute(query).partitions(ROWS_AT_ONCE):
                yield from some


def _whole(grading: Grading) -> tuple[ColumnElement[bool], ...]:
    """Return the condition for the scores of whole conversations by a grading, those that an index finds."""
    s = scores.c
    return s.name.in_(graders_of(grading)), s.grading_id == grading.id, s.turn.is_(None)


BINS = 10
"""Ranges of a histogram."""


def score_histograms(connection: Connection, grading_id: str, graders: Sequence[str]) -> list[Histogram]:
    """Return how often each grader gave scores from 0 to 1, in tenths; 1 is in the last range."""
    s = scores.c
    query = select(s.name, _place(s.value, 0.0, 1.0).label("place"), func.count().label("number")).where(
        s.grading_id == grading_id, s.name.in_(graders), s.turn.is_(None), s.value.is_not(None)
    )
    counts = {name: [0] * BINS for name in graders}
    for row in connection.execute(query.group_by(s.name, "place")):
        counts[row.name][row.place] += row.number
    return [Histogram(name=name, low=0.0, high=1.0, counts=found) for name, found in counts.items()]


def taken_histograms(connection: Connection, grading_id: str) -> list[Histogram]:
    """Return how the seconds, the tokens and the cost of conversations are distributed, between the least and the most.

    What is unknown of all, or is the same for all, has none.
    """
    names: tuple[Taken, ...] = get_args(Taken)
    mine = sample_index.c.grading_id == grading_id
    ends: list[ColumnElement[Any]] = []
    for name in names:
        ends += func.min(_column_of(name)), func.max(_column_of(name))
    found: list[float | None] = list(connection.execute(select(*ends).where(mine)).one())
    spans: dict[Taken, tuple[float | None, float | None]] = {
        name: (found[2 * at], found[2 * at + 1]) for at, name in enumerate(names)
    }
    known: dict[Taken, tuple[float, float]] = {
        name: (low, high) for name, (low, high) in spans.items() if low is not None and high is not None and low < high
    }
    if not known:
        return []
    labels = [f"{name}_place" for name in known]  # other names than the columns have, which GROUP BY prefers
    places = [_place(_column_of(name), *known[name]).label(label) for name, label in zip(known, labels, strict=True)]
    counts = {name: [0] * BINS for name in known}
    query = select(*places, func.count().label("number")).where(mine).group_by(*labels)
    for row in connection.execute(query):
        for name, place in zip(known, row, strict=False):  # how many there are stands behind the ranges
            if place is not None:
                counts[name][place] += row.number
    return [Histogram(name=name, low=low, high=high, counts=counts[name]) for name, (low, high) in known.items()]


def _column_of(name: Taken) -> ColumnElement[Any]:
    column: Any = sample_index.c[name]
    return column * 1.0


def _place(value: ColumnElement[Any], low: float, high: float) -> ColumnElement[Any]:
    """Return in which range a value is: comparisons with the ends of ranges are what both databases do alike."""
    edges = [low + (high - low) * at / BINS for at in range(BINS)]
    return case(*((value >= edge, at) for at, edge in reversed(list(enumerate(edges)))), else_=None)
