from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from vivavoce.errors import BudgetExhausted, Fault, ModelFault, RateLimited, UsageError
from vivavoce.messages import AIMessage, HumanMessage, ToolCall
from vivavoce.models.model import Model, Request
from vivavoce.models.modes import Mode
from vivavoce.models.openai import OpenAIModel
from vivavoce.pacing.limits import ASKS_PER_TRY, Budget, RateLimit
from vivavoce.records.score import usage_of
from vivavoce.testing import LoopbackServer, misbehaviour
from vivavoce.testing.loopback import Answer

ASKED = [HumanMessage(content="How good is it?")]
SCHEMA: dict[str, Any] = {
    "title": "Judge reply!",
    "type": "object",
    "properties": {"score": {"type": "number", "maximum": 1}},
    "required": ["score"],
    "additionalProperties": False,
}


@pytest.fixture
async def server() -> AsyncIterator[LoopbackServer]:
    async with LoopbackServer() as server:
        yield server


@pytest.fixture
async def judge(server: LoopbackServer) -> AsyncIterator[OpenAIModel]:
    model = OpenAIModel("m-1", base_url=server.base_url, api_key="sk-1", settings={"temperature": 0.0})
    yield model
    await model.close()


def in_turn(*answers: Answer) -> Callable[[dict[str, Any]], Answer]:
    remaining = iter(answers)
    return lambda body: next(remaining)


async def fault_of(model: Model, request: Request) -> Fault:
    with pytest.raises(Fault) as caught:
        await model.complete(request)
    return caught.value


async def test_a_model_answers_in_text(server: LoopbackServer, judge: OpenAIModel) -> None:
    reply = await judge.complete(Request(ASKED, settings={"max_tokens": 5}))
    assert (reply.text, reply.parsed, reply.tool_calls) == ("You said: How good is it?", None, ())
    assert reply.applied == {"mode": "text", "temperature": 0.0, "max_tokens": 5}
    assert reply.usage is not None
    assert server.requests[0].body == {
        "model": "m-1",
        "messages": [{"role": "user", "content": "How good is it?"}],
        "temperature": 0.0,
        "max_tokens": 5,
    }
    assert judge.name == f"{server.base_url}#m-1"


async def test_a_schema_is_sent_natively_and_the_answer_parsed(server: LoopbackServer, judge: OpenAIModel) -> None:
    server.answer = lambda body: {"score": 0.5}
    reply = await judge.complete(Request(ASKED, schema=SCHEMA))
    assert reply.parsed == {"score": 0.5}
    assert reply.applied == {"mode": "json_schema", "temperature": 0.0, "repaired": False}
    assert server.requests[0].body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "Judge_reply_", "schema": SCHEMA, "strict": True},
    }


async def test_an_answer_outside_the_schema_is_repaired_once(server: LoopbackServer, judge: OpenAIModel) -> None:
    server.answer = in_turn({"score": 57}, {"score": 0.57})
    reply = await judge.complete(Request(ASKED, schema=SCHEMA))
    assert reply.parsed == {"score": 0.57}
    assert reply.applied["repaired"] is True
    assert reply.usage is not None
    assert reply.usage.calls == 2
    said, asked = server.requests[1].body["messages"][-2:]
    assert said == {"role": "assistant", "content": '{"score": 57}'}
    assert "$.score: 57 is greater than the maximum of 1" in asked["content"]


@pytest.mark.parametrize("mode", ["json_schema", "tool", "json_object", "prompted"])
async def test_where_a_repair_is_asked_for_the_schema_stands_in_a_message(server: LoopbackServer, mode: Mode) -> None:
    server.answer = in_turn("in prose", {"score": 0.5})
    model = OpenAIModel("m-1", base_url=server.base_url, structured=mode)
    await model.complete(Request(ASKED, schema=SCHEMA))
    await model.close()
    told = "\n".join(message["content"] for message in server.requests[1].body["messages"])
    assert told.count(json.dumps(SCHEMA)) == 1


async def test_an_answer_twice_outside_the_schema_is_a_fault(server: LoopbackServer, judge: OpenAIModel) -> None:
    server.answer = in_turn("About 0.9, I think", {"score": "high"})
    fault = await fault_of(judge, Request(ASKED, schema=SCHEMA))
    assert isinstance(fault, ModelFault)
    assert (fault.kind, fault.evidence) == ("format", '{"score": "high"}')
    assert "'high' is not of type 'number'" in str(fault)


@pytest.mark.parametrize(
    ("choice", "kind", "evidence"),
    [
        ({"message": {"content": None, "refusal": "I cannot judge that."}}, "refusal", "I cannot judge that."),
        ({"message": {"content": "{"}, "finish_reason": "content_filter"}, "refusal", "{"),
        ({"message": {"content": '{"sc'}, "finish_reason": "length"}, "format", '{"sc'),
    ],
)
async def test_what_a_repair_cannot_help_is_a_fault_at_once(
    server: LoopbackServer, judge: OpenAIModel, choice: dict[str, Any], kind: str, evidence: str
) -> None:
    server.answer = lambda body: {"choices": [choice]}
    fault = await fault_of(judge, Request(ASKED, schema=SCHEMA))
    assert (fault.kind, fault.evidence, len(server.requests)) == (kind, evidence, 1)


async def test_tools_are_offered_and_calls_returned(server: LoopbackServer, judge: OpenAIModel) -> None:
    call = ToolCall(id="1", name="look", args={"at": "it"})
    server.answer = lambda body: [call]
    tool: dict[str, Any] = {"type": "function", "function": {"name": "look"}}
    reply = await judge.complete(Request(ASKED, tools=[tool], schema=SCHEMA))
    assert (list(reply.tool_calls), reply.parsed, reply.text) == ([call], None, "")
    assert server.requests[0].body["tools"] == [tool]


@pytest.mark.parametrize("name", ["o1", "o3-mini", "o4-mini-2025", "gpt-5", "gpt-5-nano", "gpt-5.2", "openai/gpt-5"])
async def test_a_reasoning_model_gets_no_temperature_and_the_record_says_so(server: LoopbackServer, name: str) -> None:
    model = OpenAIModel(name, base_url=server.base_url, settings={"temperature": 0.0})
    reply = await model.complete(Request(ASKED))
    await model.close()
    assert "temperature" not in server.requests[0].body
    assert reply.applied["temperature"] is None


@pytest.mark.parametrize("name", ["gpt-4.1", "olmo-2", "llama-o3", "o1lama", "gpt-50"])
async def test_other_models_get_the_temperature(server: LoopbackServer, name: str) -> None:
    model = OpenAIModel(name, base_url=server.base_url, settings={"temperature": 0.0})
    await model.complete(Request(ASKED))
    await model.close()
    assert server.requests[0].body["temperature"] == 0.0


async def test_a_failure_that_passes_is_retried(server: LoopbackServer, judge: OpenAIModel) -> None:
    server.answer = in_turn(misbehaviour.rate_limited(0), misbehaviour.rate_limited(0), "fine")
    assert (await judge.complete(Request(ASKED))).text == "fine"
    assert judge.limiter.current < judge.limiter.ceiling


async def test_a_rate_limit_that_stays_is_the_judges_failure(server: LoopbackServer) -> None:
    server.answer = lambda body: misbehaviour.rate_limited(0)
    model = OpenAIModel("m-1", base_url=server.base_url, tries=2)
    fault = await fault_of(model, Request(ASKED))
    await model.close()
    assert isinstance(fault, RateLimited)
    assert (fault.blame, len(server.requests)) == ("judge", 2 * ASKS_PER_TRY)


async def test_a_failure_that_stays_is_the_judges_and_shows_no_key(server: LoopbackServer, judge: OpenAIModel) -> None:
    server.answer = lambda body: misbehaviour.status(400, "no model m-1 for key sk-1")
    fault = await fault_of(judge, Request(ASKED))
    assert isinstance(fault, ModelFault)
    assert (fault.kind, fault.evidence, len(server.requests)) == ("http", "no model m-1 for key ***", 1)


async def test_the_raw_exchange_is_kept_without_the_key(server: LoopbackServer, judge: OpenAIModel) -> None:
    reply = await judge.complete(Request([*ASKED, AIMessage(content="Fair."), *ASKED]))
    assert reply.raw is not None
    assert reply.raw["request"] == server.requests[0].body
    assert reply.raw["response"]["object"] == "chat.completion"
    assert "sk-1" not in str(reply.raw)


def knows(*modes: Mode, reply: Answer) -> Callable[[dict[str, Any]], Answer]:
    """Answer as an endpoint that knows some ways to ask for JSON, and refuses the others."""

    def answer(body: dict[str, Any]) -> Answer:
        form = body.get("response_format", {}).get("type", "tool" if "tools" in body else "prompted")
        if form in modes:
            return [ToolCall(id="1", name="Judge_reply_", args=reply)] if form == "tool" else reply  # pyright: ignore[reportArgumentType]
        about = "tools are" if form == "tool" else f"response_format '{form}' is"
        return misbehaviour.status(400, f"{about} not supported by this model")

    return answer


@pytest.mark.parametrize(("mode", "asked"), [("json_schema", 1), ("tool", 2), ("json_object", 3), ("prompted", 4)])
async def test_the_first_mode_that_the_endpoint_knows_is_used_from_then_on(
    server: LoopbackServer, judge: OpenAIModel, mode: Mode, asked: int
) -> None:
    server.answer = knows(mode, reply={"score": 0.5})
    for requests in (asked, asked + 1):
        reply = await judge.complete(Request(ASKED, schema=SCHEMA))
        assert (reply.parsed, reply.applied["mode"], reply.tool_calls) == ({"score": 0.5}, mode, ())
        assert json.loads(reply.text) == reply.parsed
        assert len(server.requests) == requests


async def test_calls_at_the_same_time_step_down_together(server: LoopbackServer, judge: OpenAIModel) -> None:
    server.answer = knows("tool", "prompted", reply={"score": 0.5})
    replies = await asyncio.gather(*(judge.complete(Request(ASKED, schema=SCHEMA)) for _ in range(8)))
    assert [reply.applied["mode"] for reply in replies] == ["tool"] * 8


async def test_a_mode_that_was_chosen_is_kept(server: LoopbackServer) -> None:
    server.answer = knows("tool", reply={"score": 0.5})
    model = OpenAIModel("m-1", base_url=server.base_url, structured="json_object")
    fault = await fault_of(model, Request(ASKED, schema=SCHEMA))
    await model.close()
    assert (fault.kind, len(server.requests)) == ("http", 1)


async def test_arguments_outside_the_schema_are_repaired_once(server: LoopbackServer) -> None:
    answers = iter([57, 0.57])
    server.answer = lambda body: [ToolCall(id="1", name="Judge_reply_", args={"score": next(answers)})]
    model = OpenAIModel("m-1", base_url=server.base_url, structured="tool")
    reply = await model.complete(Request(ASKED, schema=SCHEMA))
    await model.close()
    assert (reply.parsed, reply.applied["repaired"]) == ({"score": 0.57}, True)
    assert server.requests[1].body["messages"][-2] == {"role": "assistant", "content": '{"score": 57}'}


@pytest.mark.parametrize("mode", ["json_schema", "tool", "json_object", "prompted"])
async def test_a_reply_may_stand_in_prose_and_the_record_says_so(server: LoopbackServer, mode: Mode) -> None:
    server.answer = lambda body: 'I would say:\n```json\n{"score": 0.5}\n```'
    model = OpenAIModel("m-1", base_url=server.base_url, structured=mode)
    reply = await model.complete(Request(ASKED, schema=SCHEMA))
    await model.close()
    assert (reply.parsed, reply.applied["repaired"], reply.applied["read"]) == ({"score": 0.5}, False, "fenced, prose")
    assert reply.text.startswith("I would say")


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, "check the API key: OPENAI_API_KEY, or api_key_env in a suite"),
        (403, "check the API key"),
        (404, "check the name of the model, 'm-1', and the address"),
    ],
)
async def test_five_calls_that_fail_for_everybody_spare_the_others(
    server: LoopbackServer, judge: OpenAIModel, status: int, said: str
) -> None:
    server.answer = lambda body: misbehaviour.status(status, "no")
    faults = [await fault_of(judge, Request(ASKED)) for _ in range(8)]
    assert len(server.requests) == 5
    assert all(said in str(fault) for fault in faults)
    assert "not called" in str(faults[-1])


@pytest.mark.parametrize(
    "answer",
    [
        misbehaviour.status(400, "the context length is exceeded"),
        misbehaviour.html(),
        "in prose",
        {"role": "assistant", "content": None, "refusal": "no"},
    ],
)
async def test_failures_of_single_calls_never_stop_the_others(
    server: LoopbackServer, judge: OpenAIModel, answer: Answer
) -> None:
    server.answer = lambda body: answer
    for _ in range(7):
        await fault_of(judge, Request(ASKED, schema=SCHEMA))
    server.answer = lambda body: {"score": 0.5}
    assert (await judge.complete(Request(ASKED, schema=SCHEMA))).parsed == {"score": 0.5}


async def test_models_that_share_a_rate_wait_for_each_other(server: LoopbackServer) -> None:
    rate = RateLimit(requests_per_minute=60_000, tokens_per_minute=6_000_000)
    models = [OpenAIModel(name, base_url=server.base_url, rate=rate) for name in ("m-1", "m-2")]
    taken: list[float] = []
    acquire = rate.acquire

    async def watched(tokens_estimate: float = 0.0) -> None:
        taken.append(tokens_estimate)
        await acquire(tokens_estimate)

    rate.acquire = watched
    for model in models:
        await model.complete(Request(ASKED, settings={"max_tokens": 1000}))
        await model.close()
    assert taken == [len(json.dumps(received.body)) / 4 + 1000 for received in server.requests]


@pytest.fixture
def priced(server: LoopbackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a token of input cost 1 dollar, and one of output 10."""
    table = tmp_path / "prices.json"
    price = {"input": 1e6, "cached_input": 5e5, "output": 1e7}
    table.write_text(json.dumps({"models": {f"{server.base_url}#m-1": price}}))
    monkeypatch.setenv("VIVAVOCE_PRICES", str(table))


def used(text: str, **usage: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"content": text}}], "usage": usage}


def opened(server: LoopbackServer, budget: Budget | None = None) -> OpenAIModel:
    return OpenAIModel("m-1", base_url=server.base_url, budget=budget, tries=1)


async def test_without_a_price_the_cost_is_unknown(server: LoopbackServer, judge: OpenAIModel) -> None:
    reply = await judge.complete(Request(ASKED))
    assert reply.usage is not None
    assert reply.usage.cost is None


@pytest.mark.usefixtures("priced")
async def test_the_cost_of_an_answer_is_that_of_all_its_calls(server: LoopbackServer) -> None:
    tokens = {"prompt_tokens": 30, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 10}}
    server.answer = in_turn(used("prose", **tokens), used('{"score": 1}', **tokens))
    model = opened(server, budget := Budget())
    reply = await model.complete(Request(ASKED, schema=SCHEMA))
    await model.close()
    assert reply.usage is not None
    assert (reply.usage.calls, reply.usage.cost, budget.cost) == (2, 90.0, 90.0)


@pytest.mark.usefixtures("priced")
async def test_the_cost_is_unknown_when_one_of_the_calls_did_not_say_what_it_used(server: LoopbackServer) -> None:
    server.answer = in_turn(used("prose"), used('{"score": 1}', prompt_tokens=30, completion_tokens=2))
    model = opened(server)
    reply = await model.complete(Request(ASKED, schema=SCHEMA))
    await model.close()
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.cost) == (30, None)


TOKENS = {"prompt_tokens": 30, "completion_tokens": 2}
LOST: list[tuple[list[Answer], int, float | None]] = [
    ([used("prose", **TOKENS)] * 2, 2, 100.0),
    ([used("prose", **TOKENS), used("prose")], 2, None),
    ([{"choices": [{"message": {"content": None, "refusal": "No."}}], "usage": TOKENS}], 1, 50.0),
    ([{"choices": [{"message": {"content": "{"}, "finish_reason": "length"}], "usage": TOKENS}], 1, 50.0),
    ([{"choices": [], "usage": TOKENS}], 1, 50.0),
    ([{"choices": []}], 1, None),
    ([used("prose", **TOKENS), misbehaviour.status(400)], 1, 50.0),
    ([misbehaviour.status(500)], 0, None),
]


@pytest.mark.usefixtures("priced")
@pytest.mark.parametrize(("answers", "calls", "cost"), LOST)
async def test_what_was_paid_for_no_verdict_stays_in_the_failure(
    server: LoopbackServer, answers: list[Answer], calls: int, cost: float | None
) -> None:
    server.answer = in_turn(*answers)
    model = opened(server, budget := Budget())
    usage = usage_of(await fault_of(model, Request(ASKED, schema=SCHEMA)))
    await model.close()
    assert (usage.calls if usage else 0, usage and usage.cost) == (calls, cost)
    if cost is not None:
        assert budget.cost == cost


@pytest.mark.usefixtures("priced")
async def test_nothing_is_sent_that_may_cost_more_than_is_left(server: LoopbackServer) -> None:
    server.answer = lambda body: used("fine", prompt_tokens=20, completion_tokens=3)
    budget = Budget(max_cost=200)
    model = opened(server, budget)
    asked = Request(ASKED, settings={"max_completion_tokens": 10})
    for _ in range(2):
        await model.complete(asked)
    most = -(-len(json.dumps(server.requests[0].body)) // 3) + 10 * 10
    with pytest.raises(BudgetExhausted, match=rf"may cost \${most}, and \$100 of \$200 is spent"):
        await model.complete(asked)
    await model.close()
    assert (len(server.requests), budget.cost) == (2, 100.0)


@pytest.mark.usefixtures("priced")
async def test_an_answer_may_have_4096_tokens_where_nothing_bounds_it(server: LoopbackServer) -> None:
    model = opened(server, Budget(max_cost=40_960))
    with pytest.raises(BudgetExhausted):
        await model.complete(Request(ASKED))
    await model.close()
    assert server.requests == []


@pytest.mark.usefixtures("priced")
@pytest.mark.parametrize("answer", [misbehaviour.status(400), misbehaviour.rate_limited(), misbehaviour.reset()])
async def test_a_call_that_was_refused_costs_nothing(server: LoopbackServer, answer: Answer) -> None:
    server.answer = lambda body: answer
    model = opened(server, budget := Budget(max_cost=1e6))
    await fault_of(model, Request(ASKED))
    await model.close()
    assert budget.cost == 0


@pytest.mark.usefixtures("priced")
@pytest.mark.parametrize("answer", [misbehaviour.html(), used("fine")])
async def test_an_answer_that_does_not_say_what_it_used_is_taken_to_cost_the_most(
    server: LoopbackServer, answer: Answer
) -> None:
    server.answer = lambda body: answer
    model = opened(server, budget := Budget(max_cost=1e6))
    await asyncio.gather(model.complete(Request(ASKED)), return_exceptions=True)
    await model.close()
    assert budget.cost > 40_960


def test_a_cost_without_a_price_cannot_be_limited() -> None:
    said = r"the price of http://localhost/v1#m-1 is unknown, .*VIVAVOCE_PRICES"
    with pytest.raises(UsageError, match=said):
        OpenAIModel("m-1", base_url="http://localhost/v1", budget=Budget(max_cost=1))


async def test_a_time_limit_is_no_setting_of_a_request(server: LoopbackServer, judge: OpenAIModel) -> None:
    with pytest.raises(UsageError, match="'timeout' is not a request setting"):
        await judge.complete(Request(ASKED, settings={"timeout": 1}))
    with pytest.raises(UsageError, match="'timeout' is not a request setting"):
        OpenAIModel("m-1", base_url=server.base_url, settings={"timeout": 1})
    assert server.requests == []


def test_a_model_may_be_called_by_another_name() -> None:
    assert OpenAIModel("gpt-4.1-mini", base_url="http://localhost/v1", name="openai:gpt-4.1-mini").name[:7] == "openai:"
