"""Scenarios: tests to be led, written by a model from a description of the target."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from vivavoce.comparing.negations import check_prohibitions
from vivavoce.comparing.text import fold
from vivavoce.errors import ModelFault, UsageError
from vivavoce.messages import HumanMessage, describe
from vivavoce.metrics.prompts import Wording
from vivavoce.models.custom import ModelLike, as_model
from vivavoce.models.model import Model, Request
from vivavoce.pacing.loops import wait_for
from vivavoce.penelope.brief_problems import brief_problem, is_empty_word, placeholder_in, with_made_up_address
from vivavoce.penelope.persona import Persona
from vivavoce.penelope.prompts import load_prompt
from vivavoce.penelope.target_data import Excerpt, TargetData
from vivavoce.records.score import shorten
from vivavoce.safe_text import safe

BATCH = 10
"""Scenarios that one request asks for at most: in longer answers models repeat themselves."""
SIMILAR = 90.0
"""The similarity from which two goals count as the same, out of 100; see `rapidfuzz.fuzz.ratio`."""
LONGEST_ID = 48

log = logging.getLogger("vivavoce")

Records = Iterable[Mapping[str, Any]]
"""Records of a target, each a mapping of fields to values."""

T = TypeVar("T")
Shape = TypeVar("Shape", bound=BaseModel)


class Scenario(BaseModel):
    """One test to be led: a row of a dataset for a suite with the driver `penelope`.

    An `adversarial` goal is one that the target should withstand. `left_out`, which is not in the row, names the facts
    that were dropped because their values are masked or placeholders, or the data of the target does not hold them.
    """

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
    adversarial: bool = False
    tags: tuple[str, ...] = ()
    left_out: tuple[str, ...] = Field(default=(), exclude=True)

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

    expects: Literal["help", "refusal"]
    restrictions: list[str]
    must: list[str]
    must_not: list[str]
    tags: list[str]


class Parts(BaseModel):
    """What the model answers to a description."""

    model_config = ConfigDict(extra="forbid")

    scenarios: list[WholePart]


def generate_scenarios(
    description: str, model: ModelLike, *, n: int = 10, focus: str | None = None, data: Records | None = None
) -> list[Scenario]:
    """Sync version of `agenerate_scenarios`, also inside a running event loop; connections are closed at the end."""
    opened = as_model(model)
    return wait_for(closed_after(opened, agenerate_scenarios(description, opened, n=n, focus=focus, data=data)))


async def agenerate_scenarios(
    description: str, model: ModelLike, *, n: int = 10, focus: str | None = None, data: Records | None = None
) -> list[Scenario]:
    """Return the scenarios of `stream_scenarios`; where that fails midway, those it had written are lost."""
    return [scenario async for scenario in stream_scenarios(description, model, n=n, focus=focus, data=data)]


async def stream_scenarios(
    description: str, model: ModelLike, *, n: int = 10, focus: str | None = None, data: Records | None = None
) -> AsyncIterator[Scenario]:
    """Write scenarios for testing what is described, and yield each as it comes.

    A request asks for up to 10, and lists the goals that exist already. A goal that nearly repeats another is
    dropped, as is a scenario that cannot be used, and another is asked for; after one request more than twice as many
    as `n` takes, there may be fewer than `n`. `focus` is what to look for above all. Ids are made of the goals. A
    scenario in which the target should refuse is `adversarial`.

    `data` are records that exist in the target, such as its orders; each request shows as many as 24,000 characters
    hold. With them, a fact whose value does not stand, as whole words, in a field of a record is dropped and named.

    Raises:
        UsageError: the description is empty, `n` is below 1, the data cannot be used, or there is no such model.
        ModelFault: the model failed, or answered outside the shape that it was asked for.
    """
    if not description.strip():
        raise UsageError("the description is empty; describe what is to be tested")
    if n < 1:
        raise UsageError(f"n, the scenario count, must be at least 1; got {n}")
    known = None if data is None else TargetData(data)
    goals: list[str] = []
    ids: set[str] = set()
    async with opened_model(model) as opened:
        for trial in range(2 * -(-n // BATCH) + 1):
            task = {"description": description, "focus": focus, "count": min(BATCH, n - len(goals)), "earlier": goals}
            excerpt = Excerpt() if known is None else known.excerpt(trial)
            task |= {"records": list(map(Wording, excerpt.lines)), "unshown": excerpt.unshown}
            answer = await ask(opened, load_prompt("scenarios", *task).render(task), Parts, trial)
            for part in answer.scenarios:
                if problem := problem_of(part):
                    log.warning("a scenario was dropped and requested again: %s", safe(problem))
                elif len(goals) < n and _is_new(part.goal, goals):
                    goals.append(part.goal)
                    yield _in_data(scenario_of(part, unique(slug(part.goal), ids)), known)
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


def problem_of(part: Part) -> str | None:
    """Return why a scenario cannot be used, None where it can."""
    try:
        scenario = scenario_of(part, "scenario")
        check_prohibitions(scenario.must_not)
    except UsageError as error:
        return str(error)
    return brief_problem(scenario, is_generated=True)


def scenario_of(part: Part, name: str) -> Scenario:
    """Return the scenario that a model wrote down, without what it left empty."""
    lists: dict[str, Any] = {}
    if isinstance(part, WholePart):
        texts_by_field = part.model_dump(include={"restrictions", "must", "must_not", "tags"})
        lists = {key: tuple(text for text in texts if _is_rule(text)) for key, texts in texts_by_field.items()}
        lists["adversarial"] = part.expects == "refusal"
    persona_fields = {
        field: words for field, words in part.persona.model_dump(exclude_defaults=True).items() if _is_said(words)
    }
    return Scenario(
        id=name,
        goal=with_made_up_address(part.goal.strip()),
        instructions=_text(part.instructions),
        scenario=_text(part.scenario),
        persona=Persona(**persona_fields) if persona_fields else None,
        facts={name: value for name, value in _facts(part) if _is_said(name) and _is_said(value)},
        left_out=tuple(name for name, value in _facts(part) if value.strip() and not _is_said(value)),
        **lists,
    )


def _facts(part: Part) -> Iterator[tuple[str, str]]:
    return ((fact.name, with_made_up_address(fact.value)) for fact in part.facts)


def _text(text: str) -> str | None:
    text = with_made_up_address(text.strip())
    return text if _is_rule(text) else None


def _is_said(text: str) -> bool:
    return placeholder_in(text) is None


def _is_rule(text: str) -> bool:
    return _is_said(text) and not is_empty_word(text)


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


def _in_data(scenario: Scenario, data: TargetData | None) -> Scenario:
    """Return a scenario without the facts whose values stand in no record, and with their names."""
    unheld = tuple(name for name, value in scenario.facts.items() if data is not None and not data.hold(value))
    left_out = (*scenario.left_out, *unheld)
    facts = {name: value for name, value in scenario.facts.items() if name not in left_out}
    return scenario.model_copy(update={"facts": facts, "left_out": left_out})


def _is_new(goal: str, earlier: Sequence[str]) -> bool:
    from rapidfuzz.fuzz import ratio

    text = fold(goal)
    return bool(text) and all(ratio(text, fold(other)) < SIMILAR for other in earlier)
