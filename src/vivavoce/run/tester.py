"""The tester of an experiment: an agent that leads conversations, the subject of each test, and its driver."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from vivavoce.errors import SuiteFault, UsageError
from vivavoce.penelope.agent import PenelopeAgent
from vivavoce.penelope.context import TestContext
from vivavoce.penelope.persona import Persona, persona_for
from vivavoce.penelope.result import TestResult, dump_test, read_test
from vivavoce.penelope.turn import Turn as TesterTurn
from vivavoce.penelope.turn_loop import as_led
from vivavoce.records.score import CANCELLED, Failure, failure_of
from vivavoce.records.trajectory import TestStatus, Trajectory
from vivavoce.run.drivers import OnTurn, held_of, opening_of, turns_taken
from vivavoce.run.experiment import Held
from vivavoce.samples.sample import Sample
from vivavoce.targets.dialogue import TargetChannel


@dataclass(frozen=True, slots=True)
class Tester:
    """An agent, and defaults for samples: a persona or several by their shares, and whether tests are adversarial."""

    __test__: ClassVar[bool] = False
    agent: PenelopeAgent
    persona: str | dict[str, str] | None = None
    adversarial: bool | None = None
    personas: Sequence[tuple[float, Persona]] = ()

    def driver(self, channel: TargetChannel, held: Held) -> PenelopeDriver:
        """Return the driver of conversations with a target; `held` is what is continued, by sample."""
        return PenelopeDriver(channel, self, held)

    def most_turns(self, sample: Sample) -> int:
        """Return the maximum number of messages that a conversation about a sample sends."""
        return sample.max_turns or self.agent.max_turns

    def context(self, sample: Sample, trial: int = 0) -> TestContext:
        """Return the context of the test of a sample.

        Raises:
            UsageError: the sample names a persona that does not exist.
        """
        choices = (sample.adversarial, self.adversarial, self.agent.setup.strategy.adversarial)
        adversarial = next(choice for choice in choices if choice is not None)
        context = sample.context
        return self.agent.context(
            sample.instructions,
            sample.goal or "",
            scenario=sample.scenario,
            restrictions=sample.restrictions,
            context=context if context is None or isinstance(context, dict) else {"context": context},
            policy=sample.policy,
            persona=sample.persona if sample.persona is not None else self._persona(sample),
            facts=sample.facts,
            must=sample.must,
            must_not=sample.must_not,
            openings=[one.text for one in sample.user_messages],
            adversarial=adversarial,
            max_turns=self.most_turns(sample) + sample.history_turns,
            min_turns=(self.agent.min_turns if sample.min_turns is None else sample.min_turns) + sample.history_turns,
            trial=trial,
        )

    def _persona(self, sample: Sample) -> str | dict[str, str] | Persona | None:
        """Return the persona of a sample without one; it is that of all its trials, so that these ask the same."""
        return persona_for(sample.id, self.personas) if self.personas else self.persona


@dataclass(frozen=True, slots=True)
class PenelopeDriver:
    """Has a tester lead each conversation towards the goal of its sample."""

    channel: TargetChannel
    tester: Tester
    held: Held = field(default_factory=dict[str, Trajectory])

    def calls(self, sample: Sample) -> int:
        """Return how many messages a conversation sends at most."""
        most = self.tester.most_turns(sample) + sample.history_turns
        return max(0, most - turns_taken(self.held, sample, self.channel))

    async def hold(self, sample: Sample, on_turn: OnTurn, trial: int = 0) -> Trajectory:
        """Run the test; if it could not be held, the trajectory has the failure; everything else is in `test`.

        What was held of a test that is cancelled is returned, and its failure is of the kind `CANCELLED`.

        Raises:
            BudgetExhausted: the run may make no more calls; nothing of the conversation is kept.
        """
        begun = time.perf_counter()
        cancelled: list[TestResult] = []

        async def on_test_turn(turn: TesterTurn) -> None:
            await on_turn(turn.exchange)

        try:
            context = self.tester.context(sample, trial)
            earlier = _led(held_of(self.held, sample, self.channel.target))
        except UsageError as error:
            failure = Failure(blame="suite", kind="row", message=str(error))
            return Trajectory(failure=failure, seconds=time.perf_counter() - begun)
        except SuiteFault as fault:
            return Trajectory(failure=failure_of(fault, "suite"), seconds=time.perf_counter() - begun)
        try:
            result = await self.tester.agent.hold(
                self.channel,
                context,
                lambda: opening_of(sample, trial),
                on_turn=on_test_turn,
                on_cancelled=cancelled.append,
                earlier=earlier,
            )
        except asyncio.CancelledError:
            if not cancelled:
                raise
            result = cancelled[0]
        return trajectory_of(result, time.perf_counter() - begun)


def _led(held: Trajectory | None) -> list[TesterTurn]:
    """Return the turns that a tester led, or as if it had led them where the user's side was written."""
    if held is None:
        return []
    if held.test is not None:
        return read_test(held.test, held).history
    return [as_led(turn) for turn in held.turns]


def trajectory_of(result: TestResult, seconds: float | None) -> Trajectory:
    """Return the conversation that a tester led, with what it left; a test that could not be held is a failure."""
    return Trajectory.model_construct(
        opening=result.opening,
        turns=[turn.exchange for turn in result.history],
        session_id=result.metadata.get("session_id"),
        state=result.state,
        test=dump_test(result),
        failure=_failure(result),
        seconds=seconds,
    )


def _failure(result: TestResult) -> Failure | None:
    """Return why a test could not be held; a completed test with a bad result is not a failure."""
    if result.stopped_by == CANCELLED:
        return result.failure
    if result.status is not TestStatus.ERROR or result.target_passed:
        return None
    blame = result.blame or "environment"
    known = result.failure
    message = result.stop_reason or (known.message if known else "the test ended with an error")
    if known is None:
        return Failure(blame=blame, kind=result.stopped_by, message=message)
    return known.model_copy(update={"blame": blame, "message": message})
