from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from provider_model import ProviderModel
from vivavoce.errors import ModelFault, StoreError
from vivavoce.messages import HumanMessage, ToolCall
from vivavoce.models.cache import CachedModel, OfflineModel, reply_key
from vivavoce.models.custom import as_model
from vivavoce.models.model import REPEAT, Model, ModelReply, Request, new_attempt
from vivavoce.models.names import model_name, open_model
from vivavoce.records.replies import StoredReply
from vivavoce.records.score import Usage, charge, total, usage_of
from vivavoce.store.replies import ReplyStore
from vivavoce.store.store import Store
from vivavoce.testing import LoopbackServer, misbehaviour

ASKED = Request([HumanMessage(content="How good\nis it?")], schema={"type": "object"})


@pytest.fixture
async def replies(tmp_path: Path) -> AsyncIterator[ReplyStore]:
    with Store.open(str(tmp_path / "x.db")) as store:
        async with store.replies() as replies:
            yield replies


class Held:
    """A model that answers when it is told to, and counts how often it was asked."""

    name = "held"

    def __init__(self) -> None:
        self.asked = 0
        self.came: asyncio.Queue[Request] = asyncio.Queue()
        self.go = asyncio.Event()
        self.error: Exception | None = None

    async def complete(self, request: Request) -> ModelReply:
        self.asked += 1
        self.came.put_nowait(request)
        await self.go.wait()
        if self.error is not None:
            raise self.error
        return ModelReply("fine", parsed={"asked": self.asked})

    async def close(self) -> None: ...


async def asking(model: Model, times: int, held: Held) -> list[asyncio.Task[ModelReply]]:
    """Return tasks that ask the same question, the first of which has sent it and the others wait for."""
    tasks = [asyncio.create_task(model.complete(ASKED)) for _ in range(times)]
    await held.came.get()
    return tasks


async def test_a_question_is_asked_once_and_the_second_reply_costs_nothing(replies: ReplyStore) -> None:
    async with LoopbackServer(lambda body: {"score": 0.5}) as server:
        model = open_model(f"{server.base_url}#m", settings={"temperature": 0})
        cached = CachedModel(model, replies)
        first, second = await cached.complete(ASKED), await cached.complete(ASKED)
        await cached.close()
    assert len(server.requests) == 1
    assert (first.parsed, second.parsed, second.text) == ({"score": 0.5}, {"score": 0.5}, first.text)
    assert (first.applied.get("cached"), second.applied) == (None, {**first.applied, "cached": True})
    assert first.usage is not None
    assert (first.usage.calls, second.usage) == (1, Usage(cached_calls=1, cost=0.0))
    assert cached.name == model.name


@pytest.mark.parametrize("number", [1, 63, 64, 65, 700])
async def test_so_many_answered_questions_leave_so_many_replies(number: int) -> None:
    with Store.open("n.db") as store:
        async with LoopbackServer(lambda body: {"score": 0.5}) as server, store.replies() as replies:
            model = CachedModel(open_model(f"{server.base_url}#m"), replies)
            asked = [replace(ASKED, trial=trial) for trial in range(number)]
            answered = await asyncio.gather(*(model.complete(one) for one in asked))
            await model.close()
    assert len(server.requests) == len(answered) == number
    with Store.open("n.db") as store:
        assert len({kept.key for kept in store.replies().all()}) == number


async def test_another_trial_is_another_question(replies: ReplyStore) -> None:
    model = ProviderModel([{"n": 1}, {"n": 2}])
    cached = CachedModel(model, replies)
    found = [(await cached.complete(replace(ASKED, trial=trial))).parsed for trial in (0, 1, 0, 1)]
    assert found == [{"n": 1}, {"n": 2}, {"n": 1}, {"n": 2}]


async def test_what_failed_is_asked_again(replies: ReplyStore) -> None:
    refused = {"choices": [{"message": {"content": None, "refusal": "I will not."}}]}
    wrong = [{"choices": [{"message": {"content": "no JSON"}}]}] * 2
    answers = iter([misbehaviour.status(400), refused, *wrong, {"score": 1}])
    async with LoopbackServer(lambda body: next(answers)) as server:
        cached = CachedModel(open_model(f"{server.base_url}#m"), replies)
        for kind in ("http", "refusal", "format"):
            with pytest.raises(ModelFault) as caught:
                await cached.complete(ASKED)
            assert caught.value.kind == kind
        assert (await cached.complete(ASKED)).parsed == {"score": 1}
        await cached.close()


async def test_an_empty_reply_is_not_kept(replies: ReplyStore) -> None:
    cached = CachedModel(ProviderModel([" ", "Now I say something."]), replies)
    plain = replace(ASKED, schema=None)
    assert [(await cached.complete(plain)).text for _ in range(3)] == [" ", *["Now I say something."] * 2]


async def test_identical_questions_in_flight_are_sent_once(replies: ReplyStore) -> None:
    held = Held()
    tasks = await asking(CachedModel(held, replies), 3, held)
    held.go.set()
    first, *others = await asyncio.gather(*tasks)
    assert held.asked == 1
    assert [other.parsed for other in others] == [first.parsed] * 2
    assert [other.applied for other in others] == [{"cached": True}] * 2
    assert others[0].parsed is not others[1].parsed


async def test_a_failure_is_that_of_all_who_wait_for_it(replies: ReplyStore) -> None:
    held = Held()
    held.error = ModelFault("the wire broke", kind="connection")
    tasks = await asking(CachedModel(held, replies), 3, held)
    held.go.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert held.asked == 1
    assert outcomes == [held.error] * 3


async def test_what_a_failure_used_counts_once(replies: ReplyStore) -> None:
    held = Held()
    held.error = ModelFault("no JSON", kind="format")
    charge(held.error, Usage(calls=2, cost=0.5))
    tasks = await asking(CachedModel(held, replies), 3, held)
    held.go.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert {str(one) for one in outcomes} == {"no JSON"}
    assert total(usage_of(one) for one in outcomes if isinstance(one, ModelFault)) == Usage(calls=2, cost=0.5)


async def test_when_the_task_that_sent_it_is_cancelled_another_one_goes_on(replies: ReplyStore) -> None:
    held = Held()
    leader, *followers = await asking(CachedModel(held, replies), 3, held)
    leader.cancel()
    await held.came.get()
    held.go.set()
    assert [reply.parsed for reply in await asyncio.gather(*followers)] == [{"asked": 2}] * 2
    assert leader.cancelled()


async def test_a_follower_that_is_cancelled_disturbs_nobody(replies: ReplyStore) -> None:
    held = Held()
    leader, follower, other = await asking(CachedModel(held, replies), 3, held)
    follower.cancel()
    held.go.set()
    assert (await leader).parsed == (await other).parsed == {"asked": 1}
    assert follower.cancelled()


async def test_offline_a_kept_reply_needs_no_key_and_another_question_is_no_call(replies: ReplyStore) -> None:
    name = "openai/gpt-4.1-mini"
    kept = ProviderModel([{"score": 1}], name=model_name(name))
    await CachedModel(kept, replies).complete(ASKED)
    offline = CachedModel(OfflineModel(model_name(name)), replies, offline=True)
    assert (await offline.complete(ASKED)).parsed == {"score": 1}
    with pytest.raises(ModelFault) as caught:
        await offline.complete(replace(ASKED, trial=2))
    assert caught.value.kind == "not_recorded"
    assert str(caught.value) == "no recorded reply of openai:gpt-4.1-mini to 'How good is it?' (trial 3)"
    await offline.close()


async def test_offline_a_model_that_could_be_asked_is_not(replies: ReplyStore) -> None:
    model = ProviderModel(["x"])
    with pytest.raises(ModelFault, match=r"no recorded reply of scripted to 'word word .*…'"):
        await CachedModel(model, replies, offline=True).complete(Request([HumanMessage(content="word " * 50)]))
    assert model.requests == []
    with pytest.raises(ModelFault, match="no recorded reply"):
        await OfflineModel("m").complete(ASKED)


async def test_the_settings_of_a_model_are_part_of_the_question(replies: ReplyStore) -> None:
    async with LoopbackServer(lambda body: {"heat": body["temperature"]}) as server:
        name = f"{server.base_url}#m"
        models = [CachedModel(open_model(name, settings={"temperature": heat}), replies) for heat in (0, 1)]
        assert [(await model.complete(ASKED)).parsed for model in models] == [{"heat": 0}, {"heat": 1}]
        for model in models:
            await model.close()
    absent = CachedModel(OfflineModel(name, {"temperature": 1}), replies, offline=True)
    assert (await absent.complete(ASKED)).parsed == {"heat": 1}


async def test_a_damaged_reply_is_an_error_of_the_store(replies: ReplyStore) -> None:
    await replies.put(StoredReply(reply_key("m", {}, ASKED), "m", "{}", 1.0))
    with pytest.raises(StoreError, match="a cached reply of m is damaged: 'text' is missing"):
        await CachedModel(OfflineModel("m"), replies).complete(ASKED)


async def test_an_answer_without_the_json_that_was_asked_for_is_not_kept(replies: ReplyStore) -> None:
    call = ToolCall(name="look", args={})
    model = ProviderModel([[call], {"fine": True}])
    cached = CachedModel(model, replies)
    assert (await cached.complete(ASKED)).tool_calls == [call]
    assert (await cached.complete(ASKED)).parsed == {"fine": True}
    offered = replace(ASKED, tools=[{"type": "function", "function": {"name": "look"}}])
    model = ProviderModel([[call]])
    for _ in range(2):
        assert (await CachedModel(model, replies).complete(offered)).tool_calls == [call]


class Homemade:
    """Answers what it was made to answer."""

    def __init__(self, answer: int) -> None:
        self.answer = answer

    def generate(self, prompt: str, schema: object = None) -> dict[str, int]:
        return {"answer": self.answer}


class Named(Homemade):
    """Says which one it is."""

    def get_model_name(self) -> str:
        return f"answers {self.answer}"


@pytest.mark.parametrize("kind", [Homemade, Named])
async def test_nobody_gets_the_kept_answer_of_another_object_of_the_same_class(
    replies: ReplyStore, kind: type[Homemade]
) -> None:
    for answer in (1, 2):
        cached = CachedModel(as_model(kind(answer)), replies)
        assert (await cached.complete(ASKED)).parsed == {"answer": answer}
        assert ("cached" in (await cached.complete(ASKED)).applied) == (kind is Named)


async def test_what_a_model_said_is_kept_with_how_it_was_read(replies: ReplyStore) -> None:
    said = "Sure: {'score': 1}"
    async with LoopbackServer(lambda body: said) as server:
        model = CachedModel(open_model(f"{server.base_url}#m"), replies)
        first, again = [await model.complete(ASKED) for _ in range(2)]
        await model.close()
    assert len(server.requests) == 1
    for reply in (first, again):
        assert (reply.text, reply.parsed, reply.applied["read"]) == (said, {"score": 1}, "prose, spelling")
    assert (first.applied.get("cached"), again.applied["cached"]) == (None, True)


async def test_the_repeat_of_a_test_in_an_older_run_is_replayed_offline_and_never_taken_where_a_model_may_be_asked(
    replies: ReplyStore, caplog: pytest.LogCaptureFixture
) -> None:
    model = ProviderModel([{"n": 1}, {"n": 2}])
    await CachedModel(model, replies).complete(ASKED)
    offline = CachedModel(model, replies, offline=True)
    with new_attempt(REPEAT):
        repeat = replace(ASKED, attempt=REPEAT)
        assert (await offline.complete(repeat)).parsed == {"n": 1}
        assert "replaying the second attempt of a test with replies of the first" in caplog.text
        assert (await CachedModel(model, replies).complete(repeat)).parsed == {"n": 2}
        assert (await offline.complete(repeat)).parsed == {"n": 2}, "its own reply comes first"
    with pytest.raises(ModelFault, match="no recorded reply"):
        await offline.complete(replace(ASKED, attempt="retry 1"))
