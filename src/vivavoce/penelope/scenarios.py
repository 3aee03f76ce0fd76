"""Scenarios: tests to be led, written by a model from a description of the target."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from vivavoce.errors import ModelFault, UsageError
from vivavoce.messages import HumanMessage, describe
from vivavoce.metrics.evidence import plain
from vivavoce.models.custom import ModelLike, as_model
from vivavoce.models.model import Model, Request
from vivavoce.pacing.waiting import wait_for
from vivavoce.penelope.persona import Persona
from vivavoce.penelope.prompts import packaged
from vivavoce.records.failure import shorten

BATCH = 10
"""Scenarios that one request asks for at most: in longer answers models repeat themselves."""
SIMILAR = 90.0
"""The similarity from which two goals count as the same, out of 100; see `rapidfuzz.fuzz.ratio`."""
LONGEST_ID = 48

T = TypeVar("T")
Shape = TypeVar("Shape", bound=BaseModel)


class Scenario(BaseModel):
    """One test to be led: a row of a dataset for a suite with the driver `penelope`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    goal: str
    instructions: str | None = None
    scenario: str | None = None
    policy: str | None = None
    persona: Persona | None = None
    facts: dict[str, str] = Field(default_factory=dict)
    restrictions: tuple[str, ...] = ()
    must: tuple[str, ...] = ()
    must_not: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()

    def row(self) -> dict[str, Any]:
        """Return the row of a dataset, without empty fields."""
        return self.model_dump(mode="json", exclude_defaults=True)


class Fact(BaseModel):
    """Something that the user knows."""

    model_config = ConfigDict(extra="forbid")

    name: str
    value: str


class Part(BaseModel):
    """The part of a user, as a model writes it down."""

    model_config = ConfigDict(extra="forbid")

    goal: str
    instructions: str
    scenario: str
    persona: Persona
    facts: list[Fact]


class WholePart(Part):
    """The part of a user, and what is asked of tester and assistant."""

    restrictions: list[str]
    must: list[str]
    must_not: list[str]
    tags: list[str]


class Parts(BaseModel):
    """What the model answers to a description."""

    model_config = ConfigDict(extra="forbid")

    scenarios: list[WholePart]


def generate_scenarios(description: str, model: ModelLike, *, n: int = 10, focus: str | None = None) -> list[Scenario]:
    """Sync version of `agenerate_scenarios`, also inside a running event loop; connections are closed at the end."""
    opened = as_model(model)
    return wait_for(closed_after(opened, agenerate_scenarios(description, opened, n=n, focus=focus)))


async def agenerate_scenarios(
    description: str, model: ModelLike, *, n: int = 10, focus: str | None = None
) -> list[Scenario]:
    """Return the scenarios of `stream_scenarios`; where that fails midway, those it had written are lost."""
    return [scenario async for scenario in stream_scenarios(description, model, n=n, focus=focus)]


async def stream_scenarios(
    description: str, model: ModelLike, *, n: int = 10, focus: str | None = None
) -> AsyncIterator[Scenario]:
    """Write scenarios for testing what is described, and yield each as it comes.

    A request asks for up to 10, and lists the goals that exist already. A goal that nearly repeats another is
    dropped, and another is asked for; after one request more than twice as many as `n` takes, there may be fewer
    than `n`. `focus` is what to look for above all. Ids are made of the goals.

    Raises:
        UsageError: the description is empty, `n` is below 1, or there is no such model.
        ModelFault: the model failed, or answered outside the shape that it was asked for.
    """
    if not description.strip():
        raise UsageError("the description is empty; describe what is to be tested")
    if n < 1:
        raise UsageError(f"n is how many scenarios to write, at least 1; got {n}")
    goals: list[str] = []
    ids: set[str] = set()
    async with opened_model(model) as opened:
        for trial in range(2 * -(-n // BATCH) + 1):
            task = _task(description, focus, min(BATCH, n - len(goals)), goals)
            answer = await ask(opened, task, Parts, trial)
            for part in answer.scenarios:
                if len(goals) < n and _is_new(part.goal, goals):
                    goals.append(part.goal)
                    yield scenario_of(part, unique(slug(part.goal), ids))
            if len(goals) == n:
                return


async def ask(model: Model, task: str, shape: type[Shape], trial: int = 0) -> Shape:
    """Ask the tester's model for an answer of a class.

    Raises:
        ModelFault: it failed, or answered outside that shape.
    """
    reply = await model.complete(Request([HumanMessage(content=task)], schema=shape, trial=trial))
    try:
        return shape.model_validate(reply.parsed, strict=True)
    except ValidationError as error:
        message = f"the tester's model answered outside its shape: {describe(error)}"
        raise ModelFault(message, kind="format", evidence=shorten(reply.text)) from error


def scenario_of(part: Part, name: str) -> Scenario:
    """Return the scenario that a model wrote down, without what it left empty."""
    lists: dict[str, Any] = {}
    if isinstance(part, WholePart):
        listed = part.model_dump(include={"restrictions", "must", "must_not", "tags"})
        lists = {key: tuple(text for text in texts if text.strip()) for key, texts in listed.items()}
    persona_fields = {
        field: words for field, words in part.persona.model_dump(exclude_defaults=True).items() if words.strip()
    }
    return Scenario(
        id=name,
        goal=part.goal.strip(),
        instructions=part.instructions.strip() or None,
        scenario=part.scenario.strip() or None,
        persona=Persona(**persona_fields) if persona_fields else None,
        facts={fact.name: fact.value for fact in part.facts if fact.name.strip() and fact.value.strip()},
        **lists,
    )


def slug(goal: str) -> str:
    """Return the words of a goal as an id, cut after a word."""
    words = re.sub(r"[\W_]+", "-", goal.casefold()).strip("-")
    short = words[: LONGEST_ID + 1].rpartition("-")[0] if len(words) > LONGEST_ID else words
    return short or words[:LONGEST_ID] or "scenario"


def unique(name: str, used: set[str]) -> str:
    """Return a name that is not used yet, numbered where necessary, and add it to the used ones."""
    free, number = name, 1
    while free in used:
        number += 1
        free = f"{name}-{number}"
    used.add(free)
    return free


@asynccontextmanager
async def opened_model(model: ModelLike) -> AsyncGenerator[Model]:
    """Give a model; one given by name is closed afterwards, any other is left to the caller."""
    opened = as_model(model)
    try:
        yield opened
    finally:
        if isinstance(model, str):
            await opened.close()


async def closed_after(model: Model, work: Coroutine[Any, Any, T]) -> T:
    """Do some work, and close the connections of a model when it is done."""
    try:
        return await work
    finally:
        await model.close()


def _task(description: str, focus: str | None, count: int, earlier: Sequence[str]) -> str:
    values = {"description": description, "focus": focus, "count": count, "earlier": earlier}
    return packaged("scenarios", *values).render(values)


def _is_new(goal: str, earlier: Sequence[str]) -> bool:
    from rapidfuzz.fuzz import ratio

    text = plain(goal)
    return bool(text) and all(ratio(text, plain(other)) < SIMILAR for other in earlier)
