"""What a fork shows, as data and in sentences: the same for the terminal, the page, the API and Python."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from pydantic import BaseModel, ConfigDict

from vivavoce.records.counting import to_number, turn_span
from vivavoce.records.fork import Fork
from vivavoce.report.text import count

Answer = Literal["fell", "seldom", "unknown", "one_turn"]
"""What a fork shows: the turn at which the odds fell, that they are low from the beginning, not enough; or only how
often one turn goes on to succeed."""


class Place(BaseModel):
    """The continuations from one place: `turn`, from 0, is the first one that is held anew.

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


def sentences(found: Forked, errors: Sequence[str]) -> list[str]:
    """Return what a fork shows in sentences; `errors` are what its continuations ended with."""
    said = [_said(found), *_cost(found), *_agreement(found)]
    left_out = sum(place.errors for place in found.places)
    apart = sum(place.apart for place in found.places)
    if left_out:
        said.append(f"{count(left_out, 'continuation')} ended with an error and count nowhere: {errors[-1]}")
    if apart:
        turns = "the earlier turns"
        said.append(
            f"{count(apart, 'continuation')} counted apart: the target keeps the conversation itself, and when {turns} "
            "were said again it answered otherwise, so they say nothing of the conversation that was held"
        )
    return said


def _said(found: Forked) -> str:
    places, turn = found.places, found.turn
    if found.answer == "one_turn":
        return f"gone on from turn {to_number(places[0].turn)}: {ratio(places[0])}"
    if found.answer == "seldom":
        hint = "" if found.fork.by else "; with --target another target goes on, which shows until when it can be saved"
        return f"it goes wrong from the beginning: held anew from turn 1 {ratio(places[0])}{hint}"
    if turn is not None:
        last = to_number(turn) == len(places)
        after = "and as it was held it did not" if last else f"after it {ratio(places[turn + 1])}"
        name = f"turn {to_number(turn)}{', the last' if last else ''}"
        return f"the odds fell at {name}: held anew from its beginning {ratio(places[turn])}, {after}"
    ended = "so far no turn stands out" if found.status == "running" else "no turn stands out"
    return f"{ended} after {count(found.spent, 'continuation')}{_largest(found)}"


def _largest(found: Forked) -> str:
    """Return the largest fall that was seen between two places, as the end of a sentence; empty where there is none."""
    tried = [(place.share, place) for place in found.places if place.share is not None]
    falls = [(share - later, before, after) for (share, before), (later, after) in pairwise(tried)]
    size, before, after = max(falls, key=lambda one: one[0], default=(0.0, None, None))
    if size <= 0 or before is None or after is None:
        return ""
    turns = turn_span(range(before.turn, after.turn))
    return f"; the largest fall that was seen is in {turns}: before it {ratio(before)}, after it {ratio(after)}"


def _cost(found: Forked) -> list[str]:
    if found.fixed is None or found.fixed <= found.spent:
        return [f"{count(found.spent, 'continuation')} showed it"] if found.turn is not None else []
    equal = f"with equally many from each turn it would have taken about {found.fixed:,}"
    return [f"{count(found.spent, 'continuation')} showed it; {equal}"]


def _agreement(found: Forked) -> list[str]:
    if found.judged_turn is None:
        return []
    judged = f"the metric first_failure names turn {to_number(found.judged_turn)}"
    if found.turn is None:
        return [judged]
    return [f"{judged}, {'too' if found.judged_turn == found.turn else 'which is another one'}"]


def ratio(place: Place) -> str:
    """Return how many of the continuations from a place succeeded, with the interval of their share."""
    if place.share is None or place.low is None or place.high is None:
        return "none was tried"
    return f"{place.passed} of {place.scored} succeeded ({place.low:.0%} to {place.high:.0%})"
