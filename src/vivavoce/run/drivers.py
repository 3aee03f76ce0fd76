"""Drivers: who plays the user.

Scripted inputs wait for each reply, a tester works towards a goal, and a replay repeats a recorded conversation.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from vivavoce.errors import Fault, SuiteFault
from vivavoce.messages import AnyMessage, split_turns
from vivavoce.records.score import failure_of
from vivavoce.records.trajectory import Trajectory, Turn
from vivavoce.run.experiment import Held, Scripted
from vivavoce.samples.sample import Sample
from vivavoce.targets.dialogue import Dialogue, TargetChannel
from vivavoce.targets.target import Opening, Target, gets_conversation, lacks_history
from vivavoce.validation import construct, copy_with

if TYPE_CHECKING:
    from vivavoce.run.tester import Tester

OnTurn = Callable[[Turn], Awaitable[None]]


class Driver(Protocol):
    """Leads conversations with a target."""

    @property
    def channel(self) -> TargetChannel:
        """The name of the target."""
        ...

    def calls(self, sample: Sample) -> int:
        """Return how many messages a conversation sends at most."""
        ...

    async def hold(self, sample: Sample, on_turn: OnTurn, trial: int = 0) -> Trajectory:
        """Hold the conversation; what fails is recorded in the trajectory, with whose fault it was.

        Raises:
            BudgetExhausted: the run may make no more calls; nothing of the conversation is kept.
        """
        ...


def driver_on(driver: Scripted | Tester, channel: TargetChannel, held: Held | None = None) -> Driver:
    """Return the driver of an experiment for one of its targets; `held` is what is gone on from, by sample."""
    if isinstance(driver, Scripted):
        return ScriptedDriver(channel, driver.wants_state, held or {})
    return driver.driver(channel, held or {})


def replay(sample: Sample) -> Trajectory:
    """Return the recorded conversation of a sample, split into turns."""
    opening, turns = split_turns(sample.messages or [])
    return construct(Trajectory, {"opening": opening, "turns": _recorded(turns)})


def held_of(held: Held, sample: Sample, target: Target) -> Trajectory | None:
    """Return what was held of a conversation before it goes on: by a fork, or as the history of its sample says.

    What the assistant said in a history before the user said anything is part of the first turn.

    Raises:
        SuiteFault: there is a history, and the target cannot be given one.
    """
    if sample.id in held:
        return held[sample.id]
    if sample.history is None:
        return None
    if not gets_conversation(target):
        raise SuiteFault(lacks_history(target.name), kind="history")
    opening, (first, *others) = split_turns(sample.history)
    return construct(Trajectory, {"turns": _recorded([[*opening, *first], *others])})


def _recorded(turns: Sequence[list[AnyMessage]]) -> list[Turn]:
    """Return turns without validating their messages a second time."""
    return [construct(Turn, {"index": index, "messages": messages}) for index, messages in enumerate(turns)]


@dataclass(frozen=True, slots=True)
class ScriptedDriver:
    """Sends the inputs of a sample one by one, each after the reply to the previous one; `held` has the first ones."""

    channel: TargetChannel
    wants_state: bool = False
    held: Held = field(default_factory=dict[str, Trajectory])

    def calls(self, sample: Sample) -> int:
        """Return how many messages a conversation sends."""
        return len(sample.user_messages) - turns_taken(self.held, sample, self.channel)

    async def hold(self, sample: Sample, on_turn: OnTurn, trial: int = 0) -> Trajectory:
        """Hold the conversation; what fails is recorded in the trajectory, with whose fault it was.

        Raises:
            BudgetExhausted: the run may make no more calls; nothing of the conversation is kept.
        """
        begun = time.perf_counter()
        dialogue = Dialogue(self.channel, lambda: opening_of(sample, trial))
        try:
            held = await self._converse(dialogue, sample, on_turn)
        except Fault as fault:
            held = Trajectory(failure=failure_of(fault, "target"))
        finally:
            await dialogue.close()
        return copy_with(held, {"seconds": time.perf_counter() - begun})

    async def _converse(self, dialogue: Dialogue, sample: Sample, on_turn: OnTurn) -> Trajectory:
        session = await dialogue.enter(next(iter(sample.marks), None))
        opening = list(session.opening)
        held = held_of(self.held, sample, self.channel.target)
        turns = await dialogue.go_on(held.turns if held else ())
        if turns and turns[-1].failure is not None:
            return Trajectory(opening=opening, turns=turns, session_id=session.id, failure=turns[-1].failure)
        for message in sample.user_messages[len(turns) :]:
            turn = await dialogue.say(message)
            turns.append(turn)
            await on_turn(turn)
            if turn.failure is not None:
                return Trajectory(opening=opening, turns=turns, session_id=session.id, failure=turn.failure)
        try:
            state = await dialogue.state() if self.wants_state or sample.state is not None else None
        except Fault as fault:
            failure = failure_of(fault, "target")
            return Trajectory(opening=opening, turns=turns, session_id=session.id, failure=failure)
        return Trajectory(opening=opening, turns=turns, session_id=session.id, state=state)


def turns_taken(held: Held, sample: Sample, channel: TargetChannel) -> int:
    """Return how many turns of a conversation are taken as they were held, without a message to the target."""
    earlier = len(held[sample.id].turns) if sample.id in held else sample.history_turns
    return earlier if gets_conversation(channel.target) else 0


def opening_of(sample: Sample, trial: int = 0) -> Opening:
    """Return what a target may know about the conversation of a sample."""
    return Opening(
        uuid.uuid4().hex,
        sample.id,
        sample.agent_args,
        sample.extra_vars,
        sample.state,
        sample.tool_results,
        sample.approvals,
        [said.text for said in sample.user_messages],
        trial,
    )
