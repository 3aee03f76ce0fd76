"""Agents and chat engines of LlamaIndex as targets, shaped as the real ones are (llama-index-core 0.14)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator
from types import SimpleNamespace
from typing import Any

import pytest

from asking import asked, installed, told
from vivavoce.errors import TargetFault
from vivavoce.records.score import Usage
from vivavoce.targets import FrameworkTarget

CALL = SimpleNamespace(tool_id="c1", tool_name="find", tool_kwargs={"n": 1})


def output(content: str | None, *calls: Any, **used: int) -> Any:
    response = SimpleNamespace(content=content)
    raw = {"usage": used}
    return SimpleNamespace(response=response, current_agent_name="desk", tool_calls=list(calls), raw=raw)


EVENTS = [
    SimpleNamespace(delta="", response=""),
    output("", CALL, prompt_tokens=5, completion_tokens=2),
    SimpleNamespace(tool_name="find", tool_kwargs={"n": 1}, tool_id="c1"),
    SimpleNamespace(tool_name="find", tool_id="c1", tool_output=SimpleNamespace(content="sent")),
    output("It was sent.", CALL, input_tokens=7, output_tokens=3),
]


class Handler:
    def __init__(self, events: list[Any]) -> None:
        self.events = events

    async def stream_events(self) -> AsyncIterator[Any]:
        for event in self.events:
            yield event

    def __await__(self) -> Generator[Any, Any, Any]:
        yield from ()
        return output("It was sent.")


class Agent:
    llm = "m"
    run_agent_step = aggregate_tool_results = None

    def __init__(self, events: list[Any]) -> None:
        self.events = events
        self.given: list[dict[str, Any]] = []

    def run(self, **given: Any) -> Handler:
        self.given.append(given)
        return Handler(self.events)


@pytest.fixture(autouse=True)
def _package(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = SimpleNamespace(from_defaults="memory of {llm}".format)
    installed(monkeypatch, "llama_index.core.memory", ChatMemoryBuffer=buffer)
    installed(monkeypatch, "llama_index.core.workflow", Context=type)


@pytest.mark.parametrize("kind", ["agent", "workflow"])
async def test_the_events_of_an_agent_are_its_messages(kind: str) -> None:
    agent = Agent(EVENTS)
    if kind == "workflow":
        del Agent.llm
        agent.agents, agent.root_agent = {"desk": SimpleNamespace(llm="m")}, "desk"  # pyright: ignore
        Agent.llm = "m"
    first, _ = await asked(FrameworkTarget(agent), "Where?", "And now?")
    assert told(first) == [
        ("assistant", "desk", "", [("c1", "find", '{"n": 1}')]),
        ("tool", "find", "sent", []),
        ("assistant", "desk", "It was sent.", []),
    ]
    assert first.usage == Usage(input_tokens=12, output_tokens=5, calls=2)
    assert 0 < (first.messages[0].metadata or {})["first_token"] < 1
    assert agent.given[1] == {"user_msg": "And now?", "ctx": Agent, "memory": "memory of m"}


async def test_an_answer_that_no_event_tells_is_the_end() -> None:
    (reply,) = await asked(FrameworkTarget(Agent(EVENTS[:4])), "Where?")
    assert told(reply)[-1] == ("assistant", None, "It was sent.", [])


class Engine:
    """Answers with all that it remembers; its tools and what it found are told beside."""

    reset = None

    def __init__(self, answer: str | None = None) -> None:
        self.answer = answer
        self.chat_history: list[str] = []

    async def achat(self, text: str, chat_history: list[str]) -> Any:
        self.chat_history = [*chat_history, text]
        source = SimpleNamespace(tool_name="search", raw_input={"kwargs": {"q": text}}, content="found")
        nodes = [SimpleNamespace(text="a page")]
        answer = " ".join(self.chat_history) if self.answer is None else self.answer
        return SimpleNamespace(response=answer, sources=[source], source_nodes=nodes)


async def test_a_chat_engine_gets_the_history_of_each_conversation() -> None:
    target = FrameworkTarget(Engine())
    (first, second), (other,) = await asked(target, "a", "b"), await asked(target, "x")
    assert told(first) == [
        ("assistant", None, "", [("search-0", "search", '{"q": "a"}')]),
        ("tool", "search", "found", []),
        ("assistant", None, "a", []),
    ]
    assert first.messages[-1].retrieval_context == ["a page"]
    assert (second.messages[-1].text, other.messages[-1].text) == ("a b", "x")


async def test_an_answer_without_a_text_is_a_fault() -> None:
    with pytest.raises(TargetFault, match="Engine returned an answer without text"):
        await asked(FrameworkTarget(Engine("")), "a")
