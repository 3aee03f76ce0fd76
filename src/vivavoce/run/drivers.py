"""Drivers: who speaks the user's side. Scripted inputs wait for each reply; a replay repeats what was recorded."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from vivavoce.conversation import split_turns
from vivavoce.errors import BudgetExhausted, Fault
from vivavoce.messages import AnyMessage
from vivavoce.records.failure import failure_of
from vivavoce.records.trajectory import Trajectory, Turn
from vivavoce.samples.sample import Sample
from vivavoce.targets.lane import Lane
from vivavoce.targets.target import Opening, Session

OnTurn = Callable[[Turn], Awaitable[None]]
log = logging.getLogger("vivavoce")


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

    async def hold(self, sample: Sample, on_turn: OnTurn) -> Trajectory:
        """Hold the conversation; what fails is recorded in the trajectory, with whose fault it was.

        Raises:
            BudgetExhausted: the run may make no more calls; nothing of the conversation is kept.
        """
        begun = time.perf_counter()
        try:
            session = await self.lane.call(lambda: self.lane.target.open(_opening(sample)))
        except Fault as fault:
            return Trajectory(failure=failure_of(fault, "target"), seconds=time.perf_counter() - begun)
        try:
            held = await self._converse(session, sample, on_turn)
        finally:
            await _close(session)
        return held.model_copy(update={"seconds": time.perf_counter() - begun})

    async def _converse(self, session: Session, sample: Sample, on_turn: OnTurn) -> Trajectory:
        messages: list[AnyMessage] = []
        turns: list[Turn] = []
        opening = list(session.opening)
        for index, said in enumerate(sample.said):
            messages.append(said)
            turn = await self._turn(session, index, messages)
            turns.append(turn)
            await on_turn(turn)
            if turn.failure is not None:
                return Trajectory(opening=opening, turns=turns, session_id=session.id, failure=turn.failure)
            messages += turn.messages[1:]
        try:
            state = await self.lane.call(session.state) if self.wants_state else None
        except Fault as fault:
            failure = failure_of(fault, "target")
            return Trajectory(opening=opening, turns=turns, session_id=session.id, failure=failure)
        return Trajectory(opening=opening, turns=turns, session_id=session.id, state=state)

    async def _turn(self, session: Session, index: int, messages: list[AnyMessage]) -> Turn:
        started, clock = time.time(), time.perf_counter()
        try:
            reply = await self.lane.send(lambda: session.send(messages))
        except BudgetExhausted:
            raise
        except Fault as fault:
            failure = failure_of(fault, "target")
            seconds = time.perf_counter() - clock
            return Turn(index=index, messages=[messages[-1]], started_at=started, seconds=seconds, failure=failure)
        return Turn(
            index=index,
            messages=[messages[-1], *reply.messages],
            started_at=started,
            seconds=time.perf_counter() - clock,
            usage=reply.usage,
        )


def _opening(sample: Sample) -> Opening:
    return Opening(uuid.uuid4().hex, sample.id, sample.agent_args, sample.extra_vars)


async def _close(session: Session) -> None:
    try:
        await session.close()
    except Exception as error:
        log.warning("session %s could not be closed: %s: %s", session.id, type(error).__name__, error)
