from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from pydantic import BaseModel

from vivavoce.errors import BudgetExhausted, ModelFault, RateLimited, UsageError
from vivavoce.messages import AIMessage, HumanMessage, SystemMessage
from vivavoce.models.custom import as_model
from vivavoce.models.model import Request
from vivavoce.testing import ScriptedModel


class Verdict(BaseModel):
    score: float


ASKED = Request([SystemMessage(content="Be kind."), HumanMessage(content="Good?"), AIMessage(content="Yes.")])
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"score": {"type": "number", "maximum": 1}},
    "required": ["score"],
}
JUDGED = Request(ASKED.messages, schema=SCHEMA, settings={"temperature": 0})


class Homemade:
    """A model of the user's own that says what it was given."""

    def __init__(self, answer: object) -> None:
        self.answer = answer
        self.asked: list[tuple[str, object]] = []

    def generate(self, prompt: str, schema: object = None) -> Any:
        self.asked.append((prompt, schema))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Async(Homemade):
    def get_model_name(self) -> str:
        return "lab/one"

    async def generate(self, prompt: str, schema: object = None) -> Any:
        return super().generate(prompt, schema)


class Plain:
    def generate(self, prompt: str) -> str:
        return f"{prompt}!"


@pytest.mark.parametrize("kind", [Homemade, Async])
async def test_a_dict_is_the_structured_answer(kind: type[Homemade]) -> None:
    thing = kind({"score": 0.5})
    model = as_model(thing)
    reply = await model.complete(JUDGED)
    await model.close()
    assert (reply.parsed, reply.text) == ({"score": 0.5}, '{"score": 0.5}')
    assert reply.applied == {"mode": "homemade", "temperature": None}
    assert thing.asked == [("Be kind.\n\nGood?\n\nYes.", SCHEMA)]
    assert model.name == ("lab/one" if kind is Async else "Homemade")


async def test_a_class_is_passed_on_as_it_is_and_its_object_may_come_back() -> None:
    thing = Homemade(Verdict(score=0.5))
    reply = await as_model(thing).complete(Request(ASKED.messages, schema=Verdict))
    assert reply.parsed == {"score": 0.5}
    assert thing.asked[0][1] is Verdict


async def test_a_text_around_the_answer_is_cut_off_and_the_record_says_so() -> None:
    reply = await as_model(Homemade('It is ```{"score": 1}```')).complete(JUDGED)
    assert (reply.parsed, reply.applied["read"]) == ({"score": 1}, "fenced, prose")


async def test_a_text_is_read_where_a_schema_is_asked_for_and_kept_where_not() -> None:
    assert (await as_model(Homemade('{"score": 1}')).complete(JUDGED)).parsed == {"score": 1}
    assert (await as_model(Plain()).complete(ASKED)).text.endswith("Yes.!")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"score": 57}, "57 is greater than the maximum of 1"),
        ("About 0.9", "not JSON"),
        ({"score": {1}}, "a dict that is not JSON"),
        (None, "returned a NoneType; a text or a dict is needed"),
        (0.9, "returned a float"),
    ],
)
async def test_an_answer_outside_the_schema_is_a_fault(answer: object, why: str) -> None:
    with pytest.raises(ModelFault, match=why) as caught:
        await as_model(Homemade(answer)).complete(JUDGED)
    assert caught.value.kind == "format"


async def test_what_it_raises_is_the_cause_of_a_fault() -> None:
    error = ConnectionError("no route")
    with pytest.raises(ModelFault, match="Homemade raised ConnectionError: no route") as caught:
        await as_model(Homemade(error)).complete(ASKED)
    assert caught.value.__cause__ is error


async def test_what_stops_a_run_still_stops_it() -> None:
    with pytest.raises(BudgetExhausted):
        await as_model(Homemade(BudgetExhausted("enough"))).complete(ASKED)


async def test_it_cannot_be_given_tools() -> None:
    with pytest.raises(ModelFault, match="cannot call tools") as caught:
        await as_model(Plain()).complete(Request(ASKED.messages, tools=[{"type": "function"}]))
    assert caught.value.kind == "unsupported"


async def test_one_that_blocks_holds_up_nobody() -> None:
    class Slow:
        def generate(self, prompt: str) -> str:
            both.wait(timeout=30)  # ends only when another call runs at the same time
            return "done"

    both = threading.Barrier(2)
    model = as_model(Slow())
    assert [reply.text for reply in await asyncio.gather(model.complete(ASKED), model.complete(ASKED))] == ["done"] * 2


def test_a_model_passes_and_a_name_is_opened() -> None:
    model = ScriptedModel([])
    assert as_model(model) is model
    assert as_model("http://localhost:1/v1#m").name == "http://localhost:1/v1#m"
    with pytest.raises(UsageError, match="no provider 'opnai'; did you mean 'openai'"):
        as_model("opnai:m")


@pytest.mark.parametrize(
    ("thing", "got"), [(42, "int"), (None, "NoneType"), (Plain, "the class Plain itself"), (object(), "object")]
)
def test_anything_else_is_refused_with_what_is_accepted(thing: Any, got: str) -> None:
    with pytest.raises(UsageError, match=rf"expected a name such as openai:.*, or an object with .*; got {got}"):
        as_model(thing)


async def test_a_model_that_asks_to_slow_down_is_a_judge_and_no_target() -> None:
    with pytest.raises(RateLimited) as caught:
        await as_model(Homemade(RateLimited("slow down", retry_after=3))).complete(ASKED)
    assert (caught.value.blame, caught.value.retry_after) == ("judge", 3)
