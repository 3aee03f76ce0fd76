"""Agents of Pydantic AI as targets, shaped as the real ones are (pydantic-ai 2.68)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from asking import asked, told
from vivavoce.errors import SuiteFault, TargetFault
from vivavoce.messages import HumanMessage, ImagePart, ImageURL
from vivavoce.records.score import Usage
from vivavoce.targets import FrameworkTarget
from vivavoce.targets.target import Opening

Message = dict[str, Any]


class PydanticAgent:
    """Answers with what it is made with, and notes what it is given."""

    name = "desk"
    run_sync = iter = override = toolsets = None

    def __init__(self, output: Any = "It was sent.") -> None:
        self.output = output
        self.given: list[tuple[Any, dict[str, Any]]] = []

    async def run(self, prompt: Any, **options: Any) -> Any:
        self.given.append((prompt, options))
        if listen := options.get("event_stream_handler"):
            await listen(None, pieces())
        new = messages(prompt)
        used = SimpleNamespace(requests=2, input_tokens=9, output_tokens=4, cache_read_tokens=3, details={})
        history = [*options["message_history"], *new]
        return SimpleNamespace(
            output=self.output, new_messages=lambda: new, all_messages=lambda: history, usage=lambda: used
        )


async def pieces() -> AsyncIterator[Any]:
    yield SimpleNamespace(event_kind="part_delta")


def messages(prompt: str) -> list[Message]:
    call = {"part_kind": "tool-call", "tool_name": "find", "args": {"n": 1}, "tool_call_id": "c1"}
    returned = {"part_kind": "tool-return", "tool_name": "find", "content": "sent", "tool_call_id": "c1"}
    return [
        {"kind": "request", "instructions": "Be kind.", "parts": [{"part_kind": "user-prompt", "content": prompt}]},
        {"kind": "response", "parts": [call]},
        {"kind": "request", "parts": [returned]},
        {"kind": "response", "parts": [{"part_kind": "text", "content": "It was sent."}]},
    ]


async def test_it_gets_the_messages_so_far_and_gives_the_new_ones() -> None:
    agent = PydanticAgent()
    first, second = await asked(FrameworkTarget(agent, options={"deps": 1}), "Where?", "And now?")
    assert told(first) == [
        ("assistant", None, "", [("c1", "find", '{"n": 1}')]),
        ("tool", "find", "sent", []),
        ("assistant", None, "It was sent.", []),
    ]
    assert told(second) == told(first)
    assert first.usage == Usage(input_tokens=9, output_tokens=4, cached_input_tokens=3, calls=2)
    assert [(prompt, len(options["message_history"]), options["deps"]) for prompt, options in agent.given] == [
        ("Where?", 0, 1),
        ("And now?", 4, 1),
    ]
    assert agent.given[0][1]["conversation_id"] == "c-1"


async def test_the_first_piece_is_timed() -> None:
    (reply,) = await asked(FrameworkTarget(PydanticAgent(), stream=True), "Where?")
    assert 0 < (reply.messages[0].metadata or {})["first_token"] < 1


async def test_a_call_that_somebody_else_must_answer_is_named() -> None:
    output = SimpleNamespace(calls=[SimpleNamespace(tool_name="ship")], approvals=[SimpleNamespace(tool_name="pay")])
    with pytest.raises(TargetFault, match="desk waits for the result or the approval of pay, ship"):
        await asked(FrameworkTarget(PydanticAgent(output)), "Where?")


async def test_an_image_is_refused_as_what_the_suite_asks() -> None:
    session = await FrameworkTarget(PydanticAgent()).open(Opening("c-1", "s"))
    part = ImagePart(image_url=ImageURL(url="https://x/y.png"))
    with pytest.raises(SuiteFault, match=r"an object of Pydantic AI takes only text, .* of type image_url"):
        await session.send([HumanMessage(content=[part])])
