"""Opening judges: by name or made already, kept, counted, or offline."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from vivavoce import Store, UsageError
from vivavoce.errors import BudgetExhausted, ModelFault
from vivavoce.messages import HumanMessage
from vivavoce.models.model import Request
from vivavoce.pacing.limits import Budget
from vivavoce.store.replies import ReplyStore
from vivavoce.suites.grading_spec import JudgeSpec
from vivavoce.suites.judges import JudgeOpener
from vivavoce.testing import LoopbackServer, ScriptedModel
from vivavoce.testing.misbehaviour import hang, server_error

WELL = Request([HumanMessage(content="Well?")])
SPEC = JudgeSpec()


@pytest.fixture
async def server() -> AsyncIterator[LoopbackServer]:
    async with LoopbackServer(lambda _: "Yes.") as server:
        yield server


@pytest.fixture
async def replies() -> AsyncIterator[ReplyStore]:
    with Store.open("s.db") as store:
        async with store.replies() as replies:
            yield replies


async def get_answer(opener: JudgeOpener, judge: Any, spec: JudgeSpec = SPEC) -> str:
    model = opener.open(judge, spec)
    try:
        return (await model.complete(WELL)).text
    finally:
        await model.close()


async def test_what_was_answered_is_not_asked_again(server: LoopbackServer, replies: ReplyStore) -> None:
    opener, name = JudgeOpener(Budget(), replies), f"{server.base_url}#m"
    assert [await get_answer(opener, name) for _ in range(2)] == ["Yes.", "Yes."]
    assert len(server.requests) == 1
    assert await get_answer(JudgeOpener(Budget()), name) == "Yes."
    assert len(server.requests) == 2


async def test_what_one_endpoint_answered_is_not_the_answer_of_another(
    server: LoopbackServer, replies: ReplyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "k")
    async with LoopbackServer(lambda _: "No.") as other:
        texts: list[str] = []
        for place in (server, other, server):
            monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", place.url)
            texts.append(await get_answer(JudgeOpener(Budget(), replies), "azure:judge"))
            assert await get_answer(JudgeOpener(Budget(), replies, offline=True), "azure:judge") == texts[-1]
        assert texts == ["Yes.", "No.", "Yes."]
        assert (len(server.requests), len(other.requests)) == (1, 1)


async def test_offline_nothing_is_asked_and_no_key_is_needed(server: LoopbackServer, replies: ReplyStore) -> None:
    name = f"{server.base_url}#m"
    offline = JudgeOpener(Budget(max_calls=0), replies, offline=True)
    with pytest.raises(ModelFault, match=r"no recorded reply of openai:gpt-4\.1-mini"):
        await get_answer(offline, "openai:gpt-4.1-mini")
    await get_answer(JudgeOpener(Budget(), replies), name)
    assert await get_answer(offline, name) == "Yes."
    model = ScriptedModel(["one", "two"])
    model.anonymous = False
    with pytest.raises(ModelFault, match="no recorded reply of scripted"):
        await get_answer(offline, model)
    await get_answer(JudgeOpener(Budget(), replies), model)
    assert (await get_answer(offline, model), len(model.requests), len(server.requests)) == ("one", 1, 1)


async def test_each_call_counts_against_the_budget(server: LoopbackServer) -> None:
    opener, name = JudgeOpener(Budget(max_calls=2)), f"{server.base_url}#m"
    for _ in range(2):
        await get_answer(opener, name)
    with pytest.raises(BudgetExhausted, match="the limit of 2 calls is reached"):
        await get_answer(opener, name)
    assert len(server.requests) == 2


@pytest.mark.parametrize("budget", [Budget(max_calls=9), Budget(max_cost=9)])
def test_a_judge_made_already_does_not_go_with_a_budget(budget: Budget) -> None:
    with pytest.raises(UsageError, match="scripted has its own budget"):
        JudgeOpener(budget).open(ScriptedModel([]), SPEC)


def test_a_cost_is_limited_only_where_the_price_is_known() -> None:
    with pytest.raises(UsageError, match=r"the price of http://h/v1#m is unknown"):
        JudgeOpener(Budget(max_cost=1)).open("http://h/v1#m", SPEC)


async def test_the_key_is_that_of_the_variable_that_is_named(
    server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, name = JudgeSpec(api_key_env="MINE"), f"{server.base_url}#m"
    with pytest.raises(UsageError, match="needs a key: set the environment variable MINE"):
        JudgeOpener(Budget()).open(name, spec)
    assert JudgeOpener(Budget(), keys_needed=False).open(name, spec).name == name
    monkeypatch.setenv("MINE", "sk-mine")
    await get_answer(JudgeOpener(Budget()), name, spec)
    assert server.requests[0].headers["Authorization"] == "Bearer sk-mine"
    await get_answer(JudgeOpener(Budget()), name)
    assert "Authorization" not in server.requests[1].headers


def test_a_provider_needs_its_key_only_where_it_is_asked() -> None:
    with pytest.raises(UsageError, match="OPENAI_API_KEY"):
        JudgeOpener(Budget()).open("openai:gpt-4.1-mini", SPEC)
    model = JudgeOpener(Budget(), keys_needed=False).open("openai:gpt-4.1-mini", SPEC)
    assert model.name == "openai:gpt-4.1-mini"
    with pytest.raises(UsageError, match="nobody:x"):
        JudgeOpener(Budget(), keys_needed=False).open("nobody:x", SPEC)


async def test_time_and_tries_are_those_of_the_grader(server: LoopbackServer) -> None:
    name = f"{server.base_url}#m"
    server.answer = lambda _: server_error()
    with pytest.raises(ModelFault, match="500"):
        await get_answer(JudgeOpener(Budget()), name, JudgeSpec(max_retries=0))
    assert len(server.requests) == 1
    with pytest.raises(ModelFault, match="500"):
        await get_answer(JudgeOpener(Budget()), name, JudgeSpec(max_retries=1))
    assert len(server.requests) == 3
    server.answer = lambda _: hang()
    with pytest.raises(ModelFault, match=r"no answer within 0\.1 s"):
        await get_answer(JudgeOpener(Budget()), name, JudgeSpec(timeout=0.1, max_retries=0))


async def test_so_many_calls_at_a_time_as_the_run_has_conversations() -> None:
    async with LoopbackServer(lambda _: "Yes.", delay=0.02) as server:
        model = JudgeOpener(Budget(), concurrency=3).open(f"{server.base_url}#m", SPEC)
        await asyncio.gather(*(model.complete(WELL) for _ in range(9)))
        await model.close()
        assert (server.max_in_flight, len(server.requests)) == (3, 9)


def test_models_of_one_provider_with_the_same_numbers_share_their_pace() -> None:
    opener = JudgeOpener(Budget(), keys_needed=False)
    paced, other = JudgeSpec(requests_per_minute=60), JudgeSpec(requests_per_minute=90)
    for name, spec in (("openai:a", paced), ("openai:b", paced), ("openai:a", other), ("openai:c", SPEC)):
        opener.open(name, spec)
    for name in "ab":
        opener.open(f"http://h/v1#{name}", paced)
    assert sorted(provider for provider, _, _ in opener.rates) == ["http://h/v1", "openai", "openai"]
