"""Lists of runs and conversations: their entries, their status, and their order."""

from __future__ import annotations

import json
import typing
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from threading import Lock
from typing import Any, Literal, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field

from vivavoce.records.details import MeasurementSummary
from vivavoce.records.label import Comment, Label
from vivavoce.records.run import Status, Verdict, failing_grader
from vivavoce.records.score import Failure, Score, State, Usage, shorten, total
from vivavoce.records.trajectory import Turn
from vivavoce.store.database.database import AnyRow, check_times, is_time, values_of
from vivavoce.store.runs.rows import SampleStatus, failure_of_text, measured_in, split_tags


class Listed(BaseModel):
    """Immutable."""

    model_config = ConfigDict(frozen=True)


class Headline(Listed):
    """The headline of a run: the grader that it fails because of, else of its gate, else the reward, else the first.

    `low` and `high` are the 95% interval of the mean over `n` scores, `pass_rate` is the share that passes, and
    `tester_errors`, `raw_pass_rate` and `highest_pass_rate` say what the tester spoiled, `population` for how many
    conversations they are estimates, all of them as the summary has them. `measured` sums up the scores of a grader
    that measures.
    """

    name: str
    target: str
    label: str | None = None
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    pass_rate: float | None = None
    tester_errors: int = 0
    raw_pass_rate: float | None = None
    highest_pass_rate: float | None = None
    population: int | None = None
    n: int
    errors: int
    skipped: int
    measured: MeasurementSummary | None = None

    @property
    def scored(self) -> int:
        """How many scores there are, as summaries call it."""
        return self.n


class RunEntry(Listed):
    """A run in a list, with the figures of its newest complete grading, or of the newest if none is complete.

    `error_attempts` is how many conversations ended with an error or lack a score of any grader because of one, `cost`
    what all roles used in US dollars, None where a price is unknown. `revision` is the git commit that was checked out,
    and of the `planned` conversations of a run that is not over `attempts` are stored. `comments` counts those of
    all its conversations.
    """

    id: str
    suite: str
    status: Status
    started_at: float
    finished_at: float | None = None
    version: str
    partial_of: str | None = None
    grading: str | None = None
    verdict: Verdict | None = None
    title: str | None = None
    tags: list[str] = Field(default_factory=list[str])
    attempts: int | None = None
    planned: int | None = None
    error_attempts: int | None = None
    cost: float | None = None
    revision: str | None = None
    comments: int = 0
    headline: Headline | None = None
    summary: dict[str, Any] | None = Field(default=None, exclude=True, repr=False)
    """The stored summary, for lists that say more of a run; it is not part of the data of an entry."""


class RunPage(Listed):
    """Some runs, newest first; `next` and `previous` are the cursors of the pages next to it, None if there is none."""

    runs: list[RunEntry]
    next: str | None = None
    previous: str | None = None


class TurnScore(Listed):
    """The score of a grader for one turn, an index from 0."""

    turn: int
    state: State
    value: float | None = None
    measured: float | None = None
    passed: bool | None = None


class ScoreEntry(Listed):
    """The score of a grader, or the reward, for an attempt; a reason is shortened.

    A measurement has no value but the number `measured`, as in `Score`.
    """

    kind: Literal["grade", "reward"]
    name: str
    state: State
    value: float | None = None
    measured: float | None = None
    passed: bool | None = None
    reason: str | None = None
    failure: Failure | None = None
    turns: list[TurnScore] = Field(default_factory=lambda: list[TurnScore]())


class SampleEntry(Listed):
    """An attempt in a list, without messages; `title` is its goal, or the beginning of its input.

    `status` summarises its scores. `tokens` and `cost`, in US dollars, are what the conversation and its scores
    used, as far as that is known; `cause` is what a filter calls its error; `comments` is how many people left on it
    and its turns.
    """

    sample_id: str
    target: str
    trial: int
    position: int
    title: str
    tags: list[str]
    started_at: float
    seconds: float | None = None
    turns: int
    tokens: int | None = None
    cost: float | None = None
    status: SampleStatus
    failure: Failure | None = None
    cause: str | None = None
    scores: list[ScoreEntry]
    comments: int = 0


class AlikeErrors(Listed):
    """Errors of attempts of one target that say the same: how many there are, and the first of them.

    `cause` is what a filter calls them. `grader` is None where the conversations themselves ended with the error, and
    `reason` is set for a score without a failure.
    """

    cause: str
    target: str
    number: int
    sample_id: str
    trial: int
    grader: str | None = None
    failure: Failure | None = None
    reason: str | None = None


class ErrorList(Listed):
    """The most frequent errors of a graded run, and how many attempts have another one."""

    groups: list[AlikeErrors]
    more: int


Taken = Literal["seconds", "tokens", "cost"]
"""What a conversation took, as lists know it."""


class Histogram(Listed):
    """How many values are in each of some ranges of equal width, from `low` to `high`."""

    name: str
    low: float
    high: float
    counts: list[int]


class SamplePage(Listed):
    """Some attempts of a graded run; `next` and `previous` are the cursors of the pages next to it, None for none."""

    samples: list[SampleEntry]
    next: str | None = None
    previous: str | None = None


class ListedScore(Listed):
    """The score of a grader, or the reward, for an attempt or for its `turn`; a reason is shortened."""

    sample_id: str
    target: str
    trial: int
    kind: Literal["grade", "reward"]
    name: str
    turn: int | None = None
    state: State
    value: float | None = None
    measured: float | None = None
    passed: bool | None = None
    reason: str | None = None
    failure: Failure | None = None


class ScorePage(Listed):
    """Some scores of a graded run; `next` is the cursor of the next page, None if there is none."""

    scores: list[ListedScore]
    next: str | None = None


class GradedTurn(Listed):
    """A turn of a conversation, and its scores by the names of the graders."""

    turn: Turn
    scores: dict[str, Score]


class TurnPage(Listed):
    """Some turns of a conversation; `next` is the cursor of the next page, None if there is none."""

    turns: list[GradedTurn]
    next: str | None = None


class LabelPage(Listed):
    """Some labels of a run; `next` is the cursor of the next page, None if there is none."""

    labels: list[Label]
    next: str | None = None


class CommentPage(Listed):
    """Some comments on conversations of a run; `next` is the cursor of the next page, None if there is none."""

    comments: list[Comment]
    next: str | None = None


TITLE = 120
"""Maximum characters of a title; a reason may have three times as many."""


def run_entry(run: AnyRow, grading: AnyRow | None, comments: int = 0) -> RunEntry:
    """Return a run with the figures of one of its gradings, and with how many `comments` it has.

    One that cannot be read has nothing but its id and a title that says so.
    """
    try:
        return _readable_entry(run, grading, comments)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        suite = run.suite if isinstance(run.suite, str) else ""
        started_at = run.started_at if is_time(run.started_at) else 0.0
        return RunEntry(
            id=str(run.id), suite=suite, status="interrupted", started_at=started_at, version="", title=UNREADABLE
        )


UNREADABLE = "unreadable: its row in the store has a wrong value"
"""The title of a run that cannot be read."""


def _readable_entry(run: AnyRow, grading: AnyRow | None, comments: int) -> RunEntry:
    check_times(run.started_at, run.finished_at)
    options: dict[str, Any] = json.loads(run.options)
    known: dict[str, Any] = {**values_of(run), "tags": split_tags(run.tags), "comments": comments}
    known |= {name: options.get(name) for name in ("revision", "planned")}
    if grading is not None:
        summary: dict[str, Any] = json.loads(grading.summary) if grading.summary else {}
        known |= {"grading": grading.id, "verdict": grading.verdict, "attempts": summary.get("attempts")}
        known["error_attempts"] = summary.get("error_attempts") or summary.get("failed_attempts")
        known["summary"] = summary or None
        known["cost"] = _cost(summary.get("usage") or {})
        gate: dict[str, Any] = json.loads(grading.spec).get("gate") or {}
        known["headline"] = _headline(summary, gate.get("metric_key"))
    return RunEntry(**known)


def _cost(by_role: dict[str, dict[str, Any]]) -> float | None:
    """Return what all roles cost together, None where a price is unknown."""
    used = total(Usage.model_validate(one) for one in by_role.values())
    return None if used is None else used.cost


def _headline(summary: dict[str, Any], gate: str | None) -> Headline | None:
    graders: list[dict[str, Any]] = summary.get("graders") or []
    name, target = failing_grader(summary.get("reasons") or [])
    for key, of in ((name, target), (gate, None), ("reward", None)):
        if found := next(
            (grader for grader in graders if grader["name"] == key and of in (None, grader["target"])), None
        ):
            break
    else:
        found = next((grader for grader in graders if not grader.get("measured")), graders[0] if graders else None)
    return None if found is None else Headline(**{**found, "n": found["scored"]})


def sample_entry(index: AnyRow, attempt: AnyRow, score_rows: Sequence[AnyRow], comments: int = 0) -> SampleEntry:
    """Return an attempt by its rows of `standings`, `attempts` and `scores`, with how many `comments` it has."""
    sample: dict[str, Any] = json.loads(attempt.sample)
    return SampleEntry(
        sample_id=attempt.sample_id,
        target=attempt.target,
        trial=attempt.trial,
        position=index.position,
        title=title_of(sample) or attempt.sample_id,
        tags=sample.get("tags") or [],
        started_at=attempt.started_at,
        seconds=index.seconds,
        turns=index.turns,
        tokens=index.tokens,
        cost=index.cost,
        status=index.state,
        failure=failure_of_text(attempt.failure),
        cause=index.cause,
        scores=_score_entries(score_rows),
        comments=comments,
    )


def alike_errors(group: AnyRow, attempt: AnyRow, score: AnyRow | None) -> AlikeErrors:
    """Return a group of errors by its first attempt, and the score that has the error where the attempt has none."""
    known: dict[str, Any] = {"failure": failure_of_text(attempt.failure)}
    if attempt.failure is None and score is not None:
        known = {"grader": score.name, "failure": failure_of_text(score.failure), "reason": score.reason}
    return AlikeErrors(
        cause=group.cause,
        target=group.target,
        number=group.number,
        sample_id=attempt.sample_id,
        trial=attempt.trial,
        **known,
    )


def _score_entries(score_rows: Sequence[AnyRow]) -> list[ScoreEntry]:
    apart: dict[str, list[TurnScore]] = {}
    for row in score_rows:
        if row.turn is not None:
            apart.setdefault(row.name, []).append(
                TurnScore(
                    turn=row.turn,
                    state=row.state,
                    value=row.value,
                    measured=measured_in(row.state, row.value, row.raw),
                    passed=row.passed,
                )
            )
    return [
        ScoreEntry(
            kind=row.kind,
            name=row.name,
            state=row.state,
            value=row.value,
            measured=measured_in(row.state, row.value, row.raw),
            passed=row.passed,
            reason=shorten(row.reason, 3 * TITLE),
            failure=failure_of_text(row.failure),
            turns=apart.get(row.name, []) if row.kind == "grade" else [],
        )
        for row in score_rows
        if row.turn is None
    ]


def listed_score(row: AnyRow) -> ListedScore:
    """Return a row of `scores` with the key of its attempt."""
    return ListedScore(
        sample_id=row.sample_id,
        target=row.target,
        trial=row.trial,
        kind=row.kind,
        name=row.name,
        turn=row.turn,
        state=row.state,
        value=row.value,
        measured=measured_in(row.state, row.value, row.raw),
        passed=None if row.passed is None else bool(row.passed),
        reason=shorten(row.reason, 3 * TITLE),
        failure=failure_of_text(row.failure),
    )


def title_of(sample: dict[str, Any]) -> str:
    """Return the goal of a sample, or the beginning of its input, empty if it has neither."""
    opening: Any = sample.get("goal") or sample.get("input")
    if isinstance(opening, list):
        opening = next(iter(typing.cast("list[Any]", opening)), None)
    if isinstance(opening, dict):
        opening = typing.cast("dict[str, Any]", opening).get("content")
    words = " ".join(opening.split()) if isinstance(opening, str) else ""
    return words if len(words) <= TITLE else words[: TITLE - 1] + "…"


MOST = 300
"""Answers that are kept, those that were asked for last."""

T = TypeVar("T")


class Kept:
    """The last answers; any thread may ask."""

    def __init__(self) -> None:
        self._answers: OrderedDict[Hashable, object] = OrderedDict()
        self._lock = Lock()

    def answer(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the kept answer to what `key` names, computed where there is none; nobody may change it."""
        with self._lock:
            if key in self._answers:
                self._answers.move_to_end(key)
                return cast("T", self._answers[key])
        found = compute()
        with self._lock:
            self._answers[key] = found
            while len(self._answers) > MOST:
                self._answers.popitem(last=False)
        return found
