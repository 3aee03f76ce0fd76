"""The rows of a fork: for each place from which a conversation is gone on, what was held before and what comes next."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vivavoce.errors import UsageError
from vivavoce.messages import HumanMessage
from vivavoce.records.fork import Fork, held_before, said_in, start_id
from vivavoce.records.run import Attempt
from vivavoce.records.trajectory import Trajectory
from vivavoce.samples.sample import Sample
from vivavoce.unchecked import changed


@dataclass(frozen=True, slots=True)
class Continuation:
    """One place: its row, whose id says where it is, and what was held of the conversation before."""

    sample: Sample
    held: Trajectory


def continuations(fork: Fork, attempt: Attempt, *, led: bool) -> list[Continuation]:
    """Return the rows of a fork, in the order of their turns; `led` says that a tester goes on.

    The user says in the turn of a row what it said, or what the fork gives it to say. After that written inputs go on
    as they are, or the tester towards its goal.

    Raises:
        UsageError: nothing would be said.
    """
    known = json.loads(attempt.sample)
    row = Sample.model_validate({**known, **({} if "input" in known else {"messages": attempt.trajectory.messages})})
    said = [said_in(turn) for turn in attempt.trajectory.turns]
    planned = list(row.said) if row.said and attempt.trajectory.test is None else said
    starts = [turn for turn in fork.starts if fork.turn is not None or turn >= row.history_turns]
    return [_continuation(fork, attempt.trajectory, row, turn, said if led else planned, led) for turn in starts]


def _continuation(
    fork: Fork, trajectory: Trajectory, row: Sample, turn: int, said: Sequence[HumanMessage], led: bool
) -> Continuation:
    turns, inputs = held_before(fork, trajectory.turns, turn), list(said)
    if fork.user is not None:
        inputs[turn] = HumanMessage(content=fork.user)
    if led:
        taken_back = _taken_back(trajectory)
        inputs = [one for place, one in enumerate(inputs[: turn + 1]) if place not in taken_back]
    elif len(turns) >= len(inputs):
        raise UsageError(f"--turn {turn + 1} is the last turn of {fork.of}, and nothing is said after it")
    held = changed(trajectory, {"turns": turns, "test": _test(trajectory, len(turns)), "failure": None})
    before = row.history_turns
    if turn < before:
        rule = "is part of the history of its row, which the target did not answer"
        raise UsageError(f"--turn {turn + 1} of {fork.of} {rule}")
    more = {"id": start_id(fork.sample, turn), "input": inputs[before:], "messages": None, "trial": None}
    fields = {name: getattr(row, name) for name in type(row).model_fields}
    given = (row.model_fields_set | {"id", "input"}) - {"messages", "trial"}
    return Continuation(Sample.model_construct(given, **{**fields, **more}), held)


def _taken_back(trajectory: Trajectory) -> set[int]:
    history = trajectory.test.history if trajectory.test is not None else ()
    return {place for place, turn in enumerate(history) if turn.forgotten}


def _test(trajectory: Trajectory, turns: int) -> Any:
    """Return what a tester left of the first turns, None where none led them."""
    test = trajectory.test
    if test is None or len(test.history) < turns:
        return None
    return changed(test, {"history": test.history[:turns], "discarded": []})
