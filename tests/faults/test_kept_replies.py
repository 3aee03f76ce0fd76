"""As many questions as were answered leave kept replies: what was paid for is never lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from vivavoce import evaluate
from vivavoce.errors import StoreError
from vivavoce.messages import HumanMessage
from vivavoce.metrics import GoalAchievementJudge
from vivavoce.models.cache import CachedModel, reply_key
from vivavoce.models.model import ModelReply, Request
from vivavoce.models.openai import OpenAIModel
from vivavoce.store.store import Store
from vivavoce.testing import LoopbackServer
from vivavoce.wire.http import Limits

VERDICT = {
    "criteria": [{"outcome": "paid", "kind": "fact", "evidence": ["it is paid"], "met": True}],
    "breaches": [],
    "reasoning": "It is paid.",
    "achievement_level": "fully_achieved",
    "confidence": 1.0,
}


class Answered:
    """A model behind a server that notes the keys of the questions that were answered."""

    def __init__(self, server: LoopbackServer, enough: int) -> None:
        self._model = OpenAIModel("m", base_url=server.base_url, limits=Limits(concurrency=32))
        self.name = self._model.name
        self.keys: set[str] = set()
        self.enough = asyncio.Event()
        self._left = enough

    async def complete(self, request: Request) -> ModelReply:
        reply = await self._model.complete(request)
        self.keys.add(reply_key(self.name, {}, request))
        self._left -= 1
        if self._left <= 0:
            self.enough.set()
        return reply

    async def close(self) -> None:
        await self._model.close()


async def kept(path: Path) -> set[str]:
    with Store.open(str(path)) as store:
        async with store.replies() as replies:
            return {reply.key for reply in replies.all()}


@pytest.mark.parametrize("enough", [1, 150, 600])
async def test_every_answer_is_kept_though_all_who_asked_are_cancelled(enough: int, tmp_path: Path) -> None:
    async with LoopbackServer() as server:
        model = Answered(server, enough)
        with Store.open(str(tmp_path / "x.db")) as store:
            async with store.replies() as replies:
                cached = CachedModel(model, replies)
                asking = [
                    asyncio.create_task(cached.complete(Request([HumanMessage(content=f"question {number}")])))
                    for number in range(600)
                ]
                await model.enough.wait()
                for one in asking:
                    one.cancel()
                ended = await asyncio.gather(*asking, return_exceptions=True)
                await model.close()
    assert not [one for one in ended if isinstance(one, Exception)]
    assert len(model.keys) >= enough
    assert await kept(tmp_path / "x.db") == model.keys


async def test_every_answer_is_kept_though_many_ask_the_same(tmp_path: Path) -> None:
    async with LoopbackServer() as server:
        model = Answered(server, 100)
        with Store.open(str(tmp_path / "x.db")) as store:
            async with store.replies() as replies:
                cached = CachedModel(model, replies)
                questions = [Request([HumanMessage(content=f"question {number % 100}")]) for number in range(1_000)]
                await asyncio.gather(*map(cached.complete, questions))
                await model.close()
    assert len(server.requests) == len(model.keys) == 100
    assert await kept(tmp_path / "x.db") == model.keys


def test_a_run_keeps_an_answer_for_each_conversation_and_asks_none_again(tmp_path: Path) -> None:
    rows = [
        {
            "id": f"c{number}",
            "goal": "Pay.",
            "messages": [{"role": "user", "content": str(number)}, {"role": "assistant", "content": "it is paid"}],
        }
        for number in range(300)
    ]
    with LoopbackServer(lambda body: VERDICT) as server:
        for _ in range(2):
            metric = GoalAchievementJudge(OpenAIModel("m", base_url=server.base_url, limits=Limits(concurrency=64)))
            result = evaluate(rows, [metric], max_concurrent=64, store=str(tmp_path / "x.db"))
            assert result.summary.grader(metric.name).scored == 300
    assert len(server.requests) == 300
    assert len(asyncio.run(kept(tmp_path / "x.db"))) == 300


async def test_an_answer_that_cannot_be_kept_is_an_error_of_the_store(tmp_path: Path) -> None:
    async with LoopbackServer() as server:
        model = Answered(server, 1)
        with Store.open(str(tmp_path / "x.db")) as store:
            async with store.replies() as replies:
                pass
            with pytest.raises(StoreError, match="closed"):
                await CachedModel(model, replies).complete(Request([HumanMessage(content="hello")]))
            await model.close()
