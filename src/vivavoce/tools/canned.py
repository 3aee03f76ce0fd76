"""`Canned`: results of a tool that are written down, each for the calls that it fits."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, JsonValue, model_serializer, model_validator

from vivavoce.errors import UsageError
from vivavoce.metrics.exact.arguments import ArgumentRule
from vivavoce.tools.answer import Answer, Asked, failure, written
from vivavoce.written import Written

LONGEST_DELAY = 3600.0
"""Seconds that an answer can be held back."""


class Case(Written):
    """What a tool answers: a `result`, or an `error` that the model reads, after `delay` seconds.

    `when` holds the arguments that a call must have, others aside; `arguments` says how they are compared, as for
    expected tool calls. It is given at most `times` in a conversation.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    result: JsonValue = None
    error: Annotated[str, Field(min_length=1)] | None = None
    delay: float = Field(default=0.0, ge=0, le=LONGEST_DELAY)
    when: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    arguments: Literal["exact", "subset", "ignore"] | dict[str, Any] | None = None
    times: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _one_outcome(self) -> Self:
        if ("result" in self.model_fields_set) == (self.error is not None):
            raise ValueError("needs either result or error")
        if self.arguments is not None and not self.when:
            raise ValueError("arguments says how those of when are compared; write when, too")
        try:
            _ = self.rule
        except UsageError as error:
            raise ValueError(str(error)) from error
        return self

    @model_serializer
    def _as_written(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.model_fields_set}

    @cached_property
    def rule(self) -> ArgumentRule:
        """How the arguments of a call are compared with `when`; those that it does not name are free."""
        return ArgumentRule.read(self.arguments or "subset", others="subset")

    @property
    def always(self) -> bool:
        """Whether it fits every call, again and again."""
        return not self.when and self.times is None

    def complaints(self, asked: Asked) -> list[str]:
        """Return how a call differs from `when`."""
        return self.rule.complaints(asked.arguments, self.when)

    async def given(self) -> Answer:
        """Return the answer, after its delay."""
        await asyncio.sleep(self.delay)
        return Answer(written(self.result), "canned") if self.error is None else failure(self.error, "canned")


@dataclass(frozen=True, slots=True)
class Canned:
    """The cases of a tool, of which the first that fits a call answers it; `key` tells them from other cases."""

    cases: Sequence[Case]
    key: str

    async def answer(self, asked: Asked) -> Answer | None:
        """Return the answer of the first case that fits, None where none does."""
        for number, case in enumerate(self.cases):
            key = f"{self.key} {number}"
            used_up = case.times is not None and asked.world.counts[key] >= case.times
            if not used_up and not case.complaints(asked):
                asked.world.counts[key] += 1
                return await case.given()
        return None


def check_cases(cases: Sequence[Case]) -> None:
    """Check that each case can be reached.

    Raises:
        ValueError: there is none, or one stands after a case that fits every call.
    """
    if not cases:
        raise ValueError("an empty list of cases answers no call")
    for number, case in enumerate(cases[:-1]):
        if case.always:
            raise ValueError(f"case {number + 1} has no when and fits every call, so that none after it is reached")
