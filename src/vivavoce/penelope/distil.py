"""Scenarios distilled from recorded conversations: the part that the user played, to be played again."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import cast

from vivavoce.conversations.objects import read_conversation
from vivavoce.errors import Fault, ModelFault, SuiteFault, UsageError, VivavoceError
from vivavoce.messages import AnyMessage, ConversationHistory, HumanMessage
from vivavoce.metrics.exact.personal_data import Kind, find_personal_data
from vivavoce.metrics.metric import Conversation
from vivavoce.metrics.prompts import Wording
from vivavoce.metrics.transcript import Shown, transcript
from vivavoce.models.custom import ModelLike, as_model
from vivavoce.models.model import Model
from vivavoce.pacing.loops import wait_for
from vivavoce.penelope.prompts import load_prompt
from vivavoce.penelope.scenarios import (
    Part,
    Scenario,
    ask,
    closed_after,
    opened_model,
    problem_of,
    scenario_of,
    slug,
    unique,
)
from vivavoce.penelope.words import Words
from vivavoce.records.score import Failure, failure_of
from vivavoce.samples.sample import Sample

PERSONAL: tuple[Kind, ...] = ("email", "iban", "card", "us_ssn", "phone")
"""The kinds of personal data that are masked."""
DIALOGUE_ONLY = Shown(policy=False, tools=False, retrieved=False)
"""What the model sees: the messages of user and assistant, without policy, tools and retrieved texts."""

Recorded = Sample | Conversation


@dataclass(frozen=True, slots=True)
class Distilled:
    """The outcome for one recorded conversation: a scenario, or why there is none.

    `id` is that of the recording, or its place from 0. `unsaid` names the facts that were dropped because the user
    never said them.
    """

    id: str
    scenario: Scenario | None = None
    failure: Failure | None = None
    unsaid: tuple[str, ...] = ()


def distil_scenarios(
    conversations: Iterable[Recorded], model: ModelLike, *, concurrency: int = 8, keep_personal_data: bool = False
) -> list[Distilled]:
    """Sync version of `adistil_scenarios`, also inside a running event loop; connections are closed at the end."""
    opened = as_model(model)
    distilling = adistil_scenarios(
        conversations, opened, concurrency=concurrency, keep_personal_data=keep_personal_data
    )
    return wait_for(closed_after(opened, distilling))


async def adistil_scenarios(
    conversations: Iterable[Recorded], model: ModelLike, *, concurrency: int = 8, keep_personal_data: bool = False
) -> list[Distilled]:
    """Return all that `stream_distilled` yields."""
    stream = stream_distilled(conversations, model, concurrency=concurrency, keep_personal_data=keep_personal_data)
    return [distilled async for distilled in stream]


async def stream_distilled(
    conversations: Iterable[Recorded], model: ModelLike, *, concurrency: int = 8, keep_personal_data: bool = False
) -> AsyncIterator[Distilled]:
    """Write down the user's part in each recorded conversation, and yield the outcome for each, in their order.

    The model is asked once for each, `concurrency` at a time, and sees what user and assistant said. A fact whose value
    does not stand, as whole words, in a message of the user is dropped and named. E-mail addresses, phone numbers with
    `+`, IBANs, payment cards and US social security numbers are replaced by a mask in every text of the scenario,
    unless `keep_personal_data`; the names of people and streets are not found. The policy of a recording is kept as it
    is. A conversation that cannot be distilled is yielded with its failure.

    Raises:
        UsageError: `concurrency` is below 1, or there is no such model.
        BudgetExhausted: a limit on calls or cost is reached.
    """
    if concurrency < 1:
        raise UsageError(f"concurrency is how many conversations at a time, at least 1; got {concurrency}")
    ids: set[str] = set()
    waiting: deque[asyncio.Task[Distilled]] = deque()
    async with opened_model(model) as opened:
        try:
            for place, conversation in enumerate(conversations):
                if len(waiting) == concurrency:
                    yield _with_unique_id(await waiting.popleft(), ids)
                waiting.append(
                    asyncio.create_task(_distil_conversation(conversation, str(place), opened, keep_personal_data))
                )
            while waiting:
                yield _with_unique_id(await waiting.popleft(), ids)
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)


async def _distil_conversation(conversation: Recorded, place: str, model: Model, keep_personal_data: bool) -> Distilled:
    own_id = _id(conversation)
    try:
        messages = _messages(conversation)
        part = await _part(messages, model)
    except Exception as error:
        if isinstance(error, VivavoceError) and not isinstance(error, Fault):
            raise
        return Distilled(own_id or place, failure=_failure(error))
    words = Words(message.text for message in messages if isinstance(message, HumanMessage))
    unsaid = [fact for fact in part.facts if not words.hold(fact.value)]
    part = part.model_copy(update={"facts": [fact for fact in part.facts if fact not in unsaid]})
    if not keep_personal_data:
        part = Part.model_validate(_mask_value(part.model_dump()))
    policy = conversation.policy if isinstance(conversation, Sample) else None
    if problem := problem_of(part):
        message = f"the tester's model wrote a scenario that cannot be used: {problem}"
        return Distilled(own_id or place, failure=Failure(blame="tester", kind="format", message=message))
    scenario = scenario_of(part, own_id or slug(part.goal)).model_copy(update={"policy": policy})
    return Distilled(own_id or place, scenario, unsaid=tuple(fact.name for fact in unsaid))


def _id(conversation: Recorded) -> str | None:
    if isinstance(conversation, Sample):
        return conversation.id
    return conversation.conversation_id if isinstance(conversation, ConversationHistory) else None


def _messages(source: Recorded) -> Sequence[AnyMessage]:
    """Return the messages of a recorded conversation.

    Raises:
        SuiteFault: they are malformed, or the user has none.
    """
    try:
        recorded = source.messages if isinstance(source, Sample | ConversationHistory) else read_conversation(source)
    except ValueError as error:
        raise SuiteFault(f"this conversation cannot be read: {error}", kind="format") from error
    if not any(isinstance(message, HumanMessage) for message in recorded or ()):
        raise SuiteFault("this conversation has no user message", kind="format")
    return recorded or []


async def _part(messages: Sequence[AnyMessage], model: Model) -> Part:
    text = Wording(transcript(messages, DIALOGUE_ONLY).text())
    part = await ask(model, load_prompt("distil", "conversation").render({"conversation": text}), Part)
    if not part.goal.strip():
        raise ModelFault("the tester's model found no goal in this conversation", kind="format")
    return part


def _failure(error: Exception) -> Failure:
    """Return a failure, blamed on the tester, whose model was asked, unless the recording is malformed."""
    failure = failure_of(error, "tester")
    return failure if isinstance(error, SuiteFault) else failure.model_copy(update={"blame": "tester"})


def _mask_value(value: object) -> object:
    if isinstance(value, dict):
        return {key: _mask_value(inner) for key, inner in cast("dict[str, object]", value).items()}
    if isinstance(value, list):
        return [_mask_value(inner) for inner in cast("list[object]", value)]
    if isinstance(value, str):
        for datum in reversed(find_personal_data(value, PERSONAL)):
            value = f"{value[: datum.start]}[{datum.masked(value)}]{value[datum.end :]}"
    return value


def _with_unique_id(distilled: Distilled, ids: set[str]) -> Distilled:
    if distilled.scenario is None:
        return distilled
    return replace(distilled, scenario=distilled.scenario.model_copy(update={"id": unique(distilled.scenario.id, ids)}))
