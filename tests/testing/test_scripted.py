from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from vivavoce.errors import ModelFault
from vivavoce.messages import HumanMessage, ToolCall
from vivavoce.models.model import Model, Request
from vivavoce.testing import ScriptedModel


class Verdict(BaseModel):
    score: float


def request(text: str = "hi", schema: dict[str, Any] | None = None) -> Request:
    return Request([HumanMessage(content=text)], schema=schema)


async def test_a_list_is_used_in_order_and_requests_are_recorded() -> None:
    script = ScriptedModel(["one", {"score": 1}, [ToolCall(name="look", args={})]])
    model: Model = script
    replies = [await model.complete(request(text)) for text in "abc"]
    assert [reply.text for reply in replies] == ["one", '{"score": 1}', ""]
    assert [reply.parsed for reply in replies] == [None, {"score": 1}, None]
    assert [call.name for call in replies[2].tool_calls] == ["look"]
    assert [request.messages[0].text for request in script.requests] == ["a", "b", "c"]


async def test_a_function_sees_the_request() -> None:
    model = ScriptedModel(lambda request: request.messages[-1].text.upper())
    assert (await model.complete(request("hi"))).text == "HI"


@pytest.mark.parametrize(
    "model", [ScriptedModel([RuntimeError("down")]), ScriptedModel(lambda request: RuntimeError("down"))]
)
async def test_an_exception_is_raised(model: ScriptedModel) -> None:
    with pytest.raises(RuntimeError, match="down"):
        await model.complete(request())


async def test_the_end_of_the_script_is_an_error() -> None:
    model = ScriptedModel(["only"], name="tester")
    await model.complete(request())
    with pytest.raises(ModelFault, match="tester has 1 replies and was asked 2 times"):
        await model.complete(request())


async def test_a_text_is_parsed_where_json_is_asked_for() -> None:
    model = ScriptedModel(['{"score": 1}', "great", "[]"])
    assert (await model.complete(request(schema={}))).parsed is None
    with pytest.raises(ModelFault, match="is not JSON"):
        await model.complete(request(schema={"type": "object"}))
    with pytest.raises(ModelFault, match="is not a JSON object"):
        await model.complete(request(schema={"type": "object"}))


def test_generate_answers_as_simple_models_do() -> None:
    model = ScriptedModel(["one", {"score": 1}, [ToolCall(name="look", args={})]])
    assert model.generate("a") == "one"
    assert model.generate("b", schema=Verdict) == {"score": 1}
    assert model.generate("c") == {
        "tool_calls": [{"type": "function", "function": {"name": "look", "arguments": "{}"}}]
    }
    assert model.requests[1].schema == Verdict.model_json_schema()
