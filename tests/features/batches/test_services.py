"""The services of both wires: what they send is what would be sent directly, and what they read may be anything."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from vivavoce.errors import ModelFault, UsageError
from vivavoce.features.batches.questions import batch_service
from vivavoce.features.batches.service import BatchService, Settled, State, custom_id
from vivavoce.messages import HumanMessage, SystemMessage
from vivavoce.models.model import Model, Request
from vivavoce.models.names import open_model
from vivavoce.records.replies import Batch
from vivavoce.testing import BatchServer, ScriptedModel, misbehaviour

pytestmark = pytest.mark.filterwarnings("ignore:The model .* is deprecated:DeprecationWarning")
SCHEMA: dict[str, Any] = {
    "title": "Verdict",
    "type": "object",
    "properties": {"score": {"type": "number"}},
    "required": ["score"],
    "additionalProperties": False,
}
ASKED = Request(
    [SystemMessage(content="Be strict."), HumanMessage(content="How good 🎓 is it?")],
    schema=SCHEMA,
    settings={"temperature": 0.0, "max_tokens": 99},
)
KEY, SECRET = "a" * 32, "sk-0123456789abcdef"
NAMES = ["openai", "anthropic:claude-sonnet-4-5", "anthropic:claude-3-5-haiku-latest"]


def judge(body: dict[str, Any]) -> dict[str, Any]:
    return {"score": 0.5}


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[BatchServer]:
    async with BatchServer(judge) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
        yield server


@pytest.fixture(params=NAMES)
async def model(request: pytest.FixtureRequest, server: BatchServer) -> AsyncIterator[Model]:
    if request.param == "openai":
        yield open_model(f"{server.base_url}#m", api_key=SECRET)
        return
    pytest.importorskip("pydantic_ai", reason="pip install 'vivavoce[providers]'")
    yield open_model(request.param)


@pytest.fixture
async def service(model: Model) -> AsyncIterator[BatchService]:
    service = batch_service(model)
    yield service
    await service.close()


async def settled(service: BatchService, state: State) -> list[Settled]:
    return [one async for one in service.results(state)]


async def submitted(service: BatchService, *lines: bytes) -> State:
    file = await service.upload(lines, "x.jsonl") if service.takes_files else None
    return await service.create(lines, file)


async def test_a_request_in_a_batch_is_the_one_that_is_sent_directly(
    server: BatchServer, model: Model, service: BatchService
) -> None:
    answers: list[dict[str, Any]] = []

    def keep(body: dict[str, Any]) -> Any:
        answers.append(body)
        if "response_format" in body:
            return {"score": 0.5}
        tool = body["tools"][0]["name"] if body.get("tools") else ""
        content = {"type": "tool_use", "id": "t", "name": tool, "input": {"score": 0.5}}
        text = {"type": "text", "text": '{"score": 0.5}'}
        usage = {"input_tokens": 1, "output_tokens": 1}
        told = {"id": "m", "type": "message", "role": "assistant", "model": body["model"], "usage": usage}
        return {**told, "content": [content if tool else text], "stop_reason": "end_turn", "stop_sequence": None}

    server.answer = keep
    prepared = await service.prepare(custom_id(KEY, "x"), ASKED)
    assert answers == [], "nothing is sent"
    await model.complete(ASKED)
    (sent,) = answers
    line = json.loads(prepared.line)
    assert {name: value for name, value in sent.items() if name != "stream"} == line.get("body", line.get("params"))
    assert (line["custom_id"], prepared.most_output) == (custom_id(KEY, "x"), 99)


async def test_the_answer_is_read_with_what_it_used(server: BatchServer, service: BatchService) -> None:
    prepared = await service.prepare(custom_id(KEY, "x"), ASKED)
    state = await submitted(service, prepared.line)
    assert (state.stage, state.settled) == ("going", 0)
    state = await service.look(state.id)
    assert (state.stage, state.settled, state.broken) == ("ended", 1, 0)
    (found,) = await settled(service, state)
    assert found.custom_id == custom_id(KEY, "x")
    assert found.reply is not None
    assert found.reply.parsed == {"score": 0.5}
    assert found.reply.usage is not None
    assert found.reply.usage.calls == 1
    assert SECRET not in str(state)


async def test_a_key_is_sent_in_the_header_of_its_service_and_nowhere_else(
    server: BatchServer, service: BatchService
) -> None:
    server.plan.before["look"] = [misbehaviour.status(400, f"no: {SECRET}")]
    with pytest.raises(ModelFault) as caught:
        await service.look("batch_1")
    assert caught.value.evidence == "no: ***"


async def test_a_batch_that_may_have_been_made_is_found(server: BatchServer, service: BatchService) -> None:
    prepared = await service.prepare(custom_id(KEY, "x"), ASKED)
    for _ in range(2):
        await submitted(service, prepared.line)
    file = server.batches[0].file or None
    batch = Batch("b", "r", "m", "m", 1, server.batches[0].created_at, file=file)
    assert await service.find(batch, ()) == "batch_1"
    assert await service.find(batch, {"batch_1"}) == (None if service.takes_files else "batch_2")
    assert await service.find(batch, {"batch_1", "batch_2"}) is None


async def test_only_questions_that_ask_for_json_are_asked_in_batches(service: BatchService) -> None:
    tool: dict[str, Any] = {"type": "function", "function": {"name": "look"}}
    for request in (Request(ASKED.messages), Request(ASKED.messages, schema=SCHEMA, tools=[tool])):
        with pytest.raises(ModelFault, match="offer no tools") as caught:
            await service.prepare(custom_id(KEY, "x"), request)
        assert caught.value.kind == "unsupported"


BROKEN = {
    "no object": ("[]", "not a JSON object"),
    "no id": ("{}", "no usable id"),
    "a path": ('{"id": "../../v1/models"}', "no usable id"),
    "not JSON": ("<html>", "is not JSON"),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_a_service_that_answers_something_else_is_a_fault(
    server: BatchServer, service: BatchService, name: str
) -> None:
    text, said = BROKEN[name]
    server.plan.before["look"] = [misbehaviour.body(text)]
    with pytest.raises(ModelFault, match=said):
        await service.look("batch_1")


async def test_results_that_are_cut_off_are_a_fault(server: BatchServer, service: BatchService) -> None:
    prepared = await service.prepare(custom_id(KEY, "x"), ASKED)
    state = await service.look((await submitted(service, prepared.line)).id)
    server.plan.before["results"] = [misbehaviour.body('{"custom_id": "x"')]
    with pytest.raises(ModelFault, match="line 1 of the results is not JSON"):
        await settled(service, state)


@pytest.mark.parametrize("result", [None, {"type": "succeeded"}, {"type": "sold"}, {"type": "errored", "error": None}])
async def test_a_line_without_a_result_is_a_failure_of_its_question_alone(
    server: BatchServer, service: BatchService, result: Any
) -> None:
    prepared = await service.prepare(custom_id(KEY, "x"), ASKED)
    server.plan.strange = [{"custom_id": "odd", "result": result}]
    state = await service.look((await submitted(service, prepared.line)).id)
    found = {one.custom_id: one for one in await settled(service, state)}
    assert found["odd"].fault is not None
    assert found[custom_id(KEY, "x")].reply is not None


@pytest.mark.parametrize(
    ("stop", "kind", "said"),
    [("refusal", "refusal", "declined"), ("max_tokens", "format", "cut off"), ("end_turn", "format", "not JSON")],
)
async def test_what_a_model_of_anthropic_did_not_answer_has_what_it_used(
    server: BatchServer, stop: str, kind: str, said: str
) -> None:
    pytest.importorskip("pydantic_ai", reason="pip install 'vivavoce[providers]'")
    service = batch_service(open_model("anthropic:claude-sonnet-4-5"))
    usage = {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 4}
    message = {"model": "claude-sonnet-4-5-20250929", "content": [{"type": "text", "text": "No."}], "usage": usage}
    server.plan.strange = [
        {"custom_id": "y", "result": {"type": "succeeded", "message": {**message, "stop_reason": stop}}}
    ]
    prepared = await service.prepare(custom_id(KEY, "x"), ASKED)
    state = await service.look((await submitted(service, prepared.line)).id)
    fault = next(one.fault for one in await settled(service, state) if one.custom_id == "y")
    await service.close()
    assert fault is not None
    assert (fault.kind, said in str(fault)) == (kind, True)
    assert fault.usage is not None
    assert getattr(fault.usage, "cost", None) == pytest.approx((10 * 3 + 4 * 0.3 + 5 * 15) / 1e6 / 2)


def test_other_models_have_no_batch_service() -> None:
    with pytest.raises(UsageError, match="scripted does not support batches; use a judge openai:NAME"):
        batch_service(ScriptedModel([]))
