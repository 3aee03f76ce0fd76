"""Agents of the OpenAI Agents SDK as targets, shaped as the real ones are (openai-agents 0.24)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from asking import asked, installed, told
from vivavoce.errors import TargetFault
from vivavoce.messages import HumanMessage, ImagePart, ImageURL
from vivavoce.records.score import Usage
from vivavoce.targets import FrameworkTarget
from vivavoce.targets.target import Opening

USED = SimpleNamespace(
    requests=2,
    input_tokens=9,
    output_tokens=4,
    input_tokens_details=SimpleNamespace(cached_tokens=3),
    output_tokens_details=SimpleNamespace(reasoning_tokens=1),
)


def an_agent(name: str) -> Any:
    return SimpleNamespace(name=name, handoffs=[], instructions="", input_guardrails=[])


DESK, RECEPTION = an_agent("desk"), an_agent("reception")


def item(agent: Any, **raw: Any) -> Any:
    return SimpleNamespace(agent=agent, to_input_item=lambda: raw)


def text(agent: Any, words: str) -> Any:
    return item(agent, type="message", role="assistant", content=[{"type": "output_text", "text": words}])


ITEMS = [
    item(RECEPTION, type="function_call", call_id="h1", name="transfer_to_desk", arguments="{}"),
    item(RECEPTION, type="function_call_output", call_id="h1", output="desk"),
    text(DESK, "Let me see."),
    item(DESK, type="function_call", call_id="c1", name="find", arguments='{"n": 1}'),
    item(DESK, type="function_call_output", call_id="c1", output="sent"),
    text(DESK, "It was sent."),
]


class Runner:
    """Notes how it is run; the result is one of the class."""

    runs: list[tuple[str, Any, dict[str, Any]]] = []  # noqa: RUF012
    result: Any = None

    @classmethod
    async def run(cls, agent: Any, given: Any, **options: Any) -> Any:
        cls.runs.append((agent.name, given, options))
        return cls.result

    @classmethod
    def run_streamed(cls, agent: Any, given: Any, **options: Any) -> Any:
        async def events() -> AsyncIterator[Any]:
            yield SimpleNamespace(data=SimpleNamespace(type="response.created"))
            yield SimpleNamespace(data=SimpleNamespace(type="response.output_text.delta"))

        cls.result.stream_events = events
        return cls.result


def result(items: list[Any], **more: Any) -> Any:
    fields: dict[str, Any] = {"final_output": "It was sent.", "last_agent": DESK, "interruptions": []}
    context = SimpleNamespace(usage=USED)
    return SimpleNamespace(new_items=items, context_wrapper=context, **{**fields, **more})


@pytest.fixture(autouse=True)
def _package(monkeypatch: pytest.MonkeyPatch) -> None:
    def session(name: str) -> Any:
        return SimpleNamespace(name=name, close=lambda: None)

    installed(monkeypatch, "agents", Runner=Runner, SQLiteSession=session)
    Runner.runs, Runner.result = [], result(ITEMS)


async def test_who_took_over_is_named_and_answers_the_next_message() -> None:
    first, second = await asked(FrameworkTarget(RECEPTION, options={"max_turns": 3}), "Where?", "And now?")
    assert told(first) == [
        ("assistant", "reception", "", [("h1", "transfer_to_desk", "{}")]),
        ("tool", None, "desk", []),
        ("assistant", "desk", "Let me see.", [("c1", "find", '{"n": 1}')]),
        ("tool", None, "sent", []),
        ("assistant", "desk", "It was sent.", []),
    ]
    assert told(second) == told(first)
    used = Usage(input_tokens=9, output_tokens=4, cached_input_tokens=3, reasoning_tokens=1, calls=2)
    assert first.usage == used
    assert [(agent, given, options["max_turns"]) for agent, given, options in Runner.runs] == [
        ("reception", "Where?", 3),
        ("desk", "And now?", 3),
    ]
    assert {options["session"].name for _, _, options in Runner.runs} == {"c-1"}


async def test_the_first_piece_is_timed() -> None:
    (reply,) = await asked(FrameworkTarget(RECEPTION, stream=True), "Where?")
    assert 0 < (reply.messages[0].metadata or {})["first_token"] < 1


async def test_an_image_is_given_as_an_item() -> None:
    session = await FrameworkTarget(RECEPTION).open(Opening("c-1", "s"))
    part = ImagePart(image_url=ImageURL(url="https://x/y.png"))
    await session.send([HumanMessage(content=[part])])
    [(_, given, _)] = Runner.runs
    assert given == [{"role": "user", "content": [{"type": "input_image", "image_url": "https://x/y.png"}]}]


async def test_a_tool_that_waits_for_approval_is_named() -> None:
    Runner.result = result([], interruptions=[SimpleNamespace(name="refund")])
    with pytest.raises(TargetFault, match="reception waits for the approval of refund, which a conversation") as raised:
        await asked(FrameworkTarget(RECEPTION), "Refund me")
    assert raised.value.kind == "interrupted"


async def test_an_answer_of_a_schema_is_written_as_json() -> None:
    Runner.result = result(ITEMS[:2], final_output={"city": "Rome"})
    (reply,) = await asked(FrameworkTarget(RECEPTION), "Where?")
    assert reply.messages[-1].text == '{"city": "Rome"}'
