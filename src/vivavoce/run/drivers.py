"""Drivers: who speaks the user's side. Scripted inputs wait for each reply; a replay repeats what was recorded."""

from __future__ import annotations

import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from vivavoce.conversation import split_turns
from vivavoce.errors import Fault
from vivavoce.messages import AnyMessage
from vivavoce.records.failure import failure_of
from vivavoce.records.trajectory import Trajectory, Turn
from vivavoce.samples.sample import Sample
from vivavoce.targets.dialogue import Dialogue
from vivavoce.targets.lane import Lane
from vivavoce.targets.target import Opening

OnTurn = Callable[[Turn], Awaitable[None]]


def replay(sample: Sample) -> Trajectory:
    """Return the recorded conversation of a sample, split into turns."""
    opening, turns = split_turns(sample.messages or [])
    return Trajectory(opening=opening, turns=[_recorded(index, messages) for index, messages in enumerate(turns)])


def _recorded(index: int, messages: list[AnyMessage]) -> Turn:
    """Return a turn without validating its messages a second time."""
    return Turn.model_construct(index=index, messages=messages, started_at=None, seconds=None, usage=None, failure=None)


@dataclass(frozen=True, slots=True)
class ScriptedDriver:
    """Sends a sample's inputs one after the other, each when the reply to the one before it is there."""

    lane: Lane
    wants_state: bool = False

    def calls(self, sample: Sample) -> int:
        """Return how many messages a conversation sends."""
        return len(sample.said)

    async def hold(self, sample: Sample, on_turn: OnTurn, trial: int = 0) -> Trajectory:
        """Hold the conversation; what fails is recorded in the trajectory, with whose fault it was.

        Raises:
            BudgetExhausted: the run may make no more calls; nothing of the conversation is kept.
        """
        del trial
        begun = time.perf_counter()
        dialogue = Dialogue(self.lane, lambda: opening_of(sample))
        try:
            held = await self._converse(dialogue, sample, on_turn)
        except Fault as fault:
            held = Trajectory(failure=failure_of(fault, "target"))
        finally:
            await dialogue.close()
        return held.model_copy(update={"seconds": time.perf_counter() - begun})

    async def _converse(self, dialogue: Dialogue, sample: Sample, on_turn: OnTurn) -> Trajectory:
        session = await dialogue.open()
        turns: list[Turn] = []
        opening = list(session.opening)
        for said in sample.said:
            turn = await dialogue.say(said)
            turns.append(turn)
            await on_turn(turn)
            if turn.failure is not None:
                return Trajectory(opening=opening, turns=turns, session_id=session.id, failure=turn.failure)
        try:
            state = await dialogue.state() if self.wants_state else None
        except Fault as fault:
            failure = failure_of(fault, "target")
            return Trajectory(opening=opening, turns=turns, session_id=session.id, failure=failure)
        return Trajectory(opening=opening, turns=turns, session_id=session.id, state=state)


def opening_of(sample: Sample) -> Opening:
    """Return what a target may know of the conversation of a sample."""
    return Opening(uuid.uuid4().hex, sample.id, sample.agent_args, sample.extra_vars)
