"""Plans: what a metric does to measure a conversation, step by step, so that others can carry the steps out.

A metric does not ask its judge itself. It yields an `Ask`, gets the answers, and goes on until it returns its result.
Whoever carries out a plan decides how a question is answered: at once, jointly with those of other metrics, or, of a
conversation that grows, from earlier answers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from vivavoce.errors import ModelFault
from vivavoce.foreign_code import foreign_code
from vivavoce.metrics.question import Answer, Question
from vivavoce.models.asking import all_of, ask_all
from vivavoce.models.model import Model
from vivavoce.records.usage import total

T = TypeVar("T")


@dataclass(slots=True)
class Ask:
    """Ask a model some questions at once; the plan goes on with the answers.

    `again` returns the question that must be asked in place of an answered one, None where the answer stands. With
    `leads` the answers decide what is asked next.
    """

    model: Model
    questions: Sequence[Question]
    again: Callable[[Answer], Question | None] | None = None
    leads: bool = False

    async def done(self) -> list[Answer]:
        """Return the answers, in the order of the questions.

        Raises:
            ModelFault: the first one that failed; all others have been waited for, and their usage is in it.
            BudgetExhausted: a limit on calls or cost is reached.
        """
        if len(self.questions) == 1:
            return [await self.answer(self.questions[0])]
        return await ask_all(map(self.answer, self.questions))

    async def answer(self, question: Question) -> Answer:
        """Return the answer to one question, or to the one that is asked in its place.

        Raises:
            ModelFault: the model failed, or did not answer in the shape asked for.
            BudgetExhausted: a limit on calls or cost is reached.
        """
        with foreign_code():
            answer = Answer(question, await self.model.complete(question.request))
        second = None if self.again is None else self.again(answer)
        if second is None:
            return answer
        try:
            with foreign_code():
                reply = await self.model.complete(second.request)
        except ModelFault:  # the first answer stands
            return answer
        return Answer(question, replace(reply, usage=total((answer.usage, reply.usage))))


@dataclass(slots=True)
class Call:
    """Wait for a call; the plan goes on with what it returns."""

    call: Callable[[], Awaitable[object]]

    async def done(self) -> object:
        """Return what the call returns."""
        return await self.call()


@dataclass(slots=True)
class Together:
    """Carry out other plans at once; the plan goes on with their results."""

    plans: Sequence[Plan[Any]]

    async def done(self) -> list[Any]:
        """Return the results, in the order of the plans."""
        return await all_of(map(carry_out, self.plans))


Step = Ask | Call | Together
Plan = Generator[Step, Any, T]


class Run(Generic[T]):
    """A plan under way: `step` is what it waits for, None when it is over."""

    __slots__ = ("_plan", "_result", "step")
    _result: T

    def __init__(self, plan: Plan[T]) -> None:
        self._plan = plan
        self.step: Step | None = None
        self.go_on(None)

    def go_on(self, answer: object) -> None:
        """Give the plan what it waits for."""
        try:
            self.step = self._plan.send(answer)
        except StopIteration as end:
            self.step, self._result = None, end.value

    def fail(self, error: BaseException) -> None:
        """Tell the plan that what it waits for failed."""
        try:
            self.step = self._plan.throw(error)
        except StopIteration as end:
            self.step, self._result = None, end.value

    @property
    def result(self) -> T:
        """The result of the plan.

        Raises:
            RuntimeError: the plan has not ended.
        """
        if self.step is not None:
            raise RuntimeError("the plan has not ended")
        return self._result

    async def finish(self) -> T:
        """Carry out the rest of the plan, and return its result."""
        while self.step is not None:
            try:
                answer = await self.step.done()
            except BaseException as error:
                self.fail(error)
            else:
                self.go_on(answer)
        return self._result


async def carry_out(plan: Plan[T]) -> T:
    """Carry out a plan by itself, and return its result."""
    run = Run(plan)
    return run.result if run.step is None else await run.finish()
