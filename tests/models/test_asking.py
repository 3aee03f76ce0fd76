from __future__ import annotations

import asyncio
from functools import partial

import pytest

from vivavoce.errors import BudgetExhausted, ModelFault
from vivavoce.models.model import ModelReply, ask_all, first_then_all
from vivavoce.records.score import Usage, charge, usage_of


async def says(text: str, turns: int = 0) -> ModelReply:
    """Answer after so many turns of the loop."""
    for _ in range(turns):
        await asyncio.sleep(0)
    return ModelReply(text, usage=Usage(calls=1, cost=0.25))


async def fails(error: Exception) -> ModelReply:
    raise error


async def test_replies_come_in_the_order_of_the_questions() -> None:
    assert [reply.text for reply in await ask_all([says("a", 3), says("b")])] == ["a", "b"]


async def test_the_first_failure_has_what_all_of_them_used() -> None:
    first, second = ModelFault("one"), ModelFault("two")
    charge(second, Usage(calls=2, cost=0.5))
    with pytest.raises(ModelFault, match="one") as caught:
        await ask_all([says("a", 5), fails(first), fails(second)])
    assert usage_of(caught.value) == Usage(calls=3, cost=0.75)


async def test_the_end_of_a_budget_goes_before_other_failures() -> None:
    with pytest.raises(BudgetExhausted):
        await ask_all([fails(ModelFault("one")), fails(BudgetExhausted("over"))])


async def test_the_first_call_is_made_alone_and_answers_keep_their_order() -> None:
    seen: list[str] = []

    async def say(name: str, turns: int) -> str:
        seen.append(name)
        for _ in range(turns):
            await asyncio.sleep(0)
        seen.append(f"{name} done")
        return name

    assert await first_then_all([partial(say, "a", 3), partial(say, "b", 2), partial(say, "c", 1)]) == ["a", "b", "c"]
    assert seen == ["a", "a done", "b", "c", "c done", "b done"]
    assert await first_then_all([]) == []
