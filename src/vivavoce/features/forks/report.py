"""What a fork shows, as data and in sentences: the same for the terminal, the page, the API and Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Literal

from pydantic import BaseModel, ConfigDict
from rich.console import RenderableType

from vivavoce.errors import UsageError
from vivavoce.features.forks.records import Fork, fork_of, held_before, start_id
from vivavoce.features.forks.search import Counts, count_outcome, held_outcome
from vivavoce.metrics.judged.first_failure import root_of
from vivavoce.records.run import Outcome, Run
from vivavoce.records.score import to_number, turn_label, turn_span
from vivavoce.report.text import count, figures_table
from vivavoce.stats.intervals import mean_interval
from vivavoce.stats.turning_point import fall, fixed_trials, share_limits
from vivavoce.store.store import Store

Answer = Literal["fell", "seldom", "unknown", "one_turn"]
"""What a fork shows: the turn at which the odds fell, that they are low from the beginning, not enough; or only how
often one turn goes on to succeed."""


class Place(BaseModel):
    """The continuations from one place: `turn`, from 0, is the first one that is held again.

    `share` of the `passed` and `failed` ones succeeded, from `low` to `high`; `errors` could not be held or graded, and
    `apart` went on from another conversation, for the target had answered the turns before otherwise. `sample` is the
    id of the continuations in the run.
    """

    model_config = ConfigDict(frozen=True)

    turn: int
    sample: str
    passed: int = 0
    failed: int = 0
    errors: int = 0
    apart: int = 0
    share: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def scored(self) -> int:
        """How many say something."""
        return self.passed + self.failed


class Forked(BaseModel):
    """A fork and what it shows.

    `turn`, from 0, is the one at which the odds fell, where the `answer` is that they did. `spent` is how many
    continuations were held, and `fixed` how many it would have taken to hold equally many from each turn. `judged_turn`
    is the turn, from 0, that the metric `first_failure` names in the conversation, where it was asked. `finding` is all
    of that in sentences.
    """

    model_config = ConfigDict(frozen=True)

    run: str
    fork: Fork
    status: str
    answer: Answer
    turn: int | None = None
    places: list[Place]
    spent: int
    fixed: int | None = None
    judged_turn: int | None = None
    finding: list[str]


def sentences(result: Forked, errors: Sequence[str]) -> list[str]:
    """Return what a fork shows in sentences; `errors` are what its continuations ended with."""
    lines = [_outcome_sentence(result), *_cost(result), *_agreement(result)]
    left_out = sum(place.errors for place in result.places)
    apart = sum(place.apart for place in result.places)
    if left_out:
        lines.append(f"{count(left_out, 'replay')} ended with an error and are not counted: {errors[-1]}")
    if apart:
        turns = "the earlier turns"
        lines.append(
            f"{count(apart, 'replay')} counted separately: the target stores the conversation itself and gave other "
            f"answers when {turns} were repeated, so these say nothing about the original conversation"
        )
    return lines


def _outcome_sentence(result: Forked) -> str:
    places, turn = result.places, result.turn
    if result.answer == "one_turn":
        return f"continued from turn {to_number(places[0].turn)}: {ratio(places[0])}"
    if result.answer == "seldom":
        use = "; use --target to let another target continue, and see up to which turn it recovers"
        hint = "" if result.fork.by else use
        return f"it fails from the beginning: replayed from turn 1, {ratio(places[0])}{hint}"
    if turn is not None:
        last = to_number(turn) == len(places)
        after = "the original failed" if last else f"after it {ratio(places[turn + 1])}"
        name = f"turn {to_number(turn)}{', the last' if last else ''}"
        return f"the success rate dropped at {name}: before it, {ratio(places[turn])}; {after}"
    ended = "so far no turn stands out" if result.status == "running" else "no turn stands out"
    return f"{ended} after {count(result.spent, 'replay')}{_largest(result)}"


def _largest(result: Forked) -> str:
    """Return the largest fall that was seen between two places, as the end of a sentence; empty where there is none."""
    tried = [(place.share, place) for place in result.places if place.share is not None]
    falls = [(share - later, before, after) for (share, before), (later, after) in pairwise(tried)]
    size, before, after = max(falls, key=lambda fall: fall[0], default=(0.0, None, None))
    if size <= 0 or before is None or after is None:
        return ""
    turns = turn_span(range(before.turn, after.turn))
    return f"; the largest drop was in {turns}: before it {ratio(before)}, after it {ratio(after)}"


def _cost(result: Forked) -> list[str]:
    if result.fixed is None or result.fixed <= result.spent:
        return [f"{count(result.spent, 'replay')} were enough"] if result.turn is not None else []
    equal = f"the same number from each turn would have needed about {result.fixed:,}"
    return [f"{count(result.spent, 'replay')} were enough; {equal}"]


def _agreement(result: Forked) -> list[str]:
    if result.judged_turn is None:
        return []
    judged = f"the metric first_failure names turn {to_number(result.judged_turn)}"
    if result.turn is None:
        return [judged]
    return [f"{judged}, {'too' if result.judged_turn == result.turn else 'a different turn'}"]


def ratio(place: Place) -> str:
    """Return how many of the continuations from a place succeeded, with the interval of their share."""
    if place.share is None or place.low is None or place.high is None:
        return "none was tried"
    return f"{place.passed} of {place.scored} succeeded ({place.low:.0%} to {place.high:.0%})"


def read_fork(store: Store, run: Run) -> Forked:
    """Return what a fork shows so far.

    Raises:
        UsageError: the run is not a fork, or the conversation that it goes on from is not in the store any more.
    """
    fork = fork_of(run)
    if fork is None:
        raise UsageError(f"run {run.id} is not a fork; make one with: viva runs fork {run.id}/SAMPLE")
    origin = held_outcome(store, fork)
    counts = {turn: Counts() for turn in fork.starts}
    turns = {start_id(fork.sample, turn): turn for turn in counts}
    spent, errors = 0, list[str]()
    for outcome in store.outcomes(store.grading(run.id).id):
        turn = turns[outcome.attempt.key.sample_id]
        before = held_before(fork, origin.attempt.trajectory.turns, turn)
        count_outcome(counts[turn], outcome, before, fork.grader)
        spent += 1
        errors += _errors(outcome, fork.grader)
    places = [_place(fork, turn, count) for turn, count in counts.items()]
    tried = [count.tried for count in counts.values()]
    turning_point = fall(tried) if fork.turn is None else None
    answer: Answer = (
        "one_turn"
        if turning_point is None
        else "seldom"
        if turning_point.seldom
        else "fell"
        if turning_point.turn
        else "unknown"
    )
    root = root_of(origin.scores.values())
    result = Forked(
        run=run.id,
        fork=fork,
        status=run.status,
        answer=answer,
        turn=None if turning_point is None or turning_point.turn is None else turning_point.turn - 1,
        places=places,
        spent=spent,
        fixed=None if turning_point is None or turning_point.turn is None else fixed_trials(tried, turning_point.turn),
        judged_turn=None if root is None else root.turn,
        finding=[],
    )
    return result.model_copy(update={"finding": sentences(result, errors)})


def _errors(outcome: Outcome, grader: str) -> list[str]:
    score = outcome.reward if grader == "reward" else outcome.scores.get(grader)
    failure = outcome.attempt.failure or (None if score is None else score.failure)
    return [] if failure is None else [failure.message]


def _place(fork: Fork, turn: int, counts: Counts) -> Place:
    passed, tried = counts.tried
    fields = {"turn": turn, "sample": start_id(fork.sample, turn), **asdict(counts)}
    if not tried:
        return Place.model_validate(fields)
    low, high = share_limits(passed, tried)
    if fork.turn is not None:
        interval = mean_interval([1.0] * passed + [0.0] * (tried - passed))
        low, high = (
            (0.0, 1.0) if interval is None else (interval.low or 0.0, 1.0 if interval.high is None else interval.high)
        )
    return Place.model_validate({**fields, "share": passed / tried, "low": low, "high": high})


_HEADS = ("replayed from", "succeeded", "share", "95% interval", "errors", "apart")
_RANKS = (0, 0, 0, 1, 3, 2)


def stored_fork_report(store: Store, run: Run) -> list[RenderableType]:
    """Return what a fork in a store shows so far."""
    return fork_report(read_fork(store, run))


def fork_report(result: Forked) -> list[RenderableType]:
    """Return what a fork shows: its places as a table, and what they come to in sentences."""
    heads, rows = places_table(result)
    return [figures_table(heads, rows, _RANKS), "", *result.finding]


def places_table(result: Forked) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Return the heads and the cells of a row for each place in the order of turns, and of how it was held.

    A place that was not tried has dashes; columns of what no place has are left out.
    """
    ended = {True: "succeeded", False: "failed", None: "ended with an error"}[result.fork.ended_well]
    rows = [*map(_cells, result.places), ("original", ended, "", "", "", "")]
    columns = [column for column in range(len(_HEADS)) if any(row[column] for row in rows)]
    return [_HEADS[column] for column in columns], [[row[column] for column in columns] for row in rows]


def _cells(place: Place) -> Sequence[str]:
    name, left_out = turn_label(place.turn), (f"{place.errors or ''}", f"{place.apart or ''}")
    if place.share is None or place.low is None or place.high is None:
        return (name, "–", "–", "–", *left_out)
    ratio, interval = f"{place.passed}/{place.scored}", f"{place.low:.0%} to {place.high:.0%}"
    return (name, ratio, f"{place.share:.0%}", interval, *left_out)
