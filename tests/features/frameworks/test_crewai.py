"""Agents, crews and flows of CrewAI as targets, shaped as the real ones are (crewai 1.15)."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from asking import Told, asked, installed, told
from vivavoce.errors import UsageError
from vivavoce.records.score import Usage
from vivavoce.targets import FrameworkTarget

CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{}"}}
SAID = [
    {"role": "system", "content": "You are a desk."},
    {"role": "user", "content": "Where?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "name": "find", "content": "sent"},
]
TOLD: list[Told] = [
    ("assistant", "desk", "", [("c1", "find", "{}")]),
    ("tool", "find", "sent", []),
    ("assistant", "desk", "It was sent.", []),
]


class Bus:
    """Calls who listens at once."""

    def __init__(self) -> None:
        self.handlers: dict[str, Callable[..., Any]] = {}
        self.flushed = 0

    def register_handler(self, kind: str, handler: Callable[..., Any]) -> None:
        self.handlers[kind] = handler

    def emit(self, kind: str, **fields: Any) -> None:
        self.handlers[kind](None, SimpleNamespace(**fields))

    def flush(self) -> None:
        self.flushed += 1


@pytest.fixture
def bus(monkeypatch: pytest.MonkeyPatch) -> Bus:
    bus = Bus()
    names = {"LLMCallCompletedEvent": "answer", "LLMStreamChunkEvent": "piece"}
    installed(monkeypatch, "crewai.events", crewai_event_bus=bus, **names)
    return bus


class CrewAgent:
    role = "desk"

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.given: list[Any] = []

    def kickoff(self, messages: Any) -> Any:
        self.given.append(messages)
        self.bus.emit("piece")
        for _ in range(2):
            self.bus.emit("answer", usage={"prompt_tokens": 5, "completion_tokens": 2})
        return SimpleNamespace(agent_role="desk", raw="It was sent.", messages=SAID)


class Crew:
    tasks = ()

    def __init__(self, *placeholders: str) -> None:
        self.placeholders = set(placeholders)
        self.given: list[Any] = []
        self.copies = 0

    def fetch_inputs(self) -> set[str]:
        return self.placeholders

    def copy(self) -> Crew:
        self.copies += 1
        return self

    def kickoff(self, inputs: Any) -> Any:
        self.given.append(inputs)
        task = {
            "description": "Where?",
            "output_format": "raw",
            "agent": "desk",
            "raw": "It was sent.",
            "messages": SAID,
        }
        return Output(raw="It was sent.", tasks_output=[task])


class Output(SimpleNamespace):
    def model_dump(self) -> dict[str, Any]:
        return vars(self)


async def test_an_agent_gets_the_messages_and_its_events_tell_what_it_used(bus: Bus) -> None:
    agent = CrewAgent(bus)
    first, _ = await asked(FrameworkTarget(agent), "Where?", "And now?")
    assert told(first) == TOLD
    assert first.usage == Usage(input_tokens=10, output_tokens=4, calls=2)
    assert 0 < (first.messages[0].metadata or {})["first_token"] < 1
    assert agent.given[1] == [
        {"role": "user", "content": "Where?"},
        {"role": "assistant", "content": "It was sent."},
        {"role": "user", "content": "And now?"},
    ]
    assert bus.flushed == 2


async def test_a_crew_gets_the_text_and_the_history_as_inputs(bus: Bus) -> None:
    crew = Crew("question", "history")
    first, second = await asked(FrameworkTarget(crew), "Where?", "And now?")
    assert (told(first), told(second)) == (TOLD, TOLD)
    assert first.usage is None
    assert crew.given == [
        {"question": "Where?", "history": "", "conversation_id": "c-1"},
        {"question": "And now?", "history": "User: Where?\nAssistant: It was sent.", "conversation_id": "c-1"},
    ]
    assert crew.copies == 1


async def test_a_crew_that_streams_is_heard_to_its_end(bus: Bus) -> None:
    class Streaming(Crew):
        def kickoff(self, inputs: Any) -> Any:
            return Pieces(super().kickoff(inputs))

    class Pieces:
        is_completed = False

        def __init__(self, result: Any) -> None:
            self.result = result

        def __iter__(self) -> Any:
            return iter([SimpleNamespace(content="It")])

    (reply,) = await asked(FrameworkTarget(Streaming("message")), "Where?")
    assert told(reply) == TOLD
    assert 0 < (reply.messages[0].metadata or {})["first_token"] < 1


async def test_a_flow_gets_the_message_as_an_input(bus: Bus) -> None:
    def kickoff(inputs: dict[str, str]) -> str:
        return f"so: {inputs['message']}"

    flow = SimpleNamespace(state={}, kickoff=kickoff)
    (reply,) = await asked(FrameworkTarget(flow, "flow"), "Where?")
    assert told(reply) == [("assistant", None, "so: Where?", [])]


@pytest.mark.parametrize(
    ("placeholders", "rule"),
    [
        ((), "the tasks of desk have no placeholder for the message; write {message} in a description"),
        (("a", "b"), "the tasks of desk have the placeholders a, b; it gets 'message', 'history'"),
        (("message", "b"), "the tasks of desk have the placeholders b, message; it gets 'message'"),
    ],
)
def test_tasks_that_do_not_fit_are_refused_before_anything_runs(placeholders: tuple[str, ...], rule: str) -> None:
    with pytest.raises(UsageError, match=rule):
        FrameworkTarget(Crew(*placeholders), "desk")
