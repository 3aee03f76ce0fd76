"""Agents, apps and runners of Google's ADK as targets, shaped as the real ones are (google-adk 2.13)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from asking import asked, installed, told
from vivavoce.errors import TargetFault
from vivavoce.records.score import Usage
from vivavoce.targets import FrameworkTarget

USED = SimpleNamespace(prompt_token_count=5, candidates_token_count=2, cached_content_token_count=1)


class Event:
    """An event with what `model_dump` returns of it."""

    partial = None
    usage_metadata: Any = None

    def __init__(self, author: str, part: dict[str, Any] | None = None, **more: Any) -> None:
        content = None if part is None else {"role": "model", "parts": [part]}
        self.fields = {"author": author, "invocation_id": "i", "content": content}
        vars(self).update(more)

    def model_dump(self) -> dict[str, Any]:
        return self.fields


CALL = {"function_call": {"id": "c1", "name": "find", "args": {"n": 1}}}
RESULT = {"function_response": {"id": "c1", "name": "find", "response": {"result": "sent"}}}
EVENTS = [
    Event("desk", CALL, usage_metadata=USED),
    Event("desk", RESULT),
    Event("writer", {"text": "It"}, partial=True),
    Event("writer", {"text": "It was sent."}, usage_metadata=USED),
]


class Runner:
    """Notes what it is given, and gives events."""

    app_name = "shop"

    def __init__(self, *events: Event) -> None:
        self.events = events
        self.given: list[dict[str, Any]] = []
        self.sessions: list[dict[str, Any]] = []
        self.session_service, self.closed = self, 0

    async def create_session(self, **known: Any) -> Any:
        self.sessions.append(known)
        return SimpleNamespace(id=f"s-{known['session_id']}")

    async def run_async(self, **given: Any) -> AsyncIterator[Event]:
        self.given.append(given)
        for event in self.events:
            yield event

    async def close(self) -> None:
        self.closed += 1


@pytest.fixture(autouse=True)
def _package(monkeypatch: pytest.MonkeyPatch) -> None:
    config = SimpleNamespace(SSE="sse")
    installed(monkeypatch, "google.adk.agents.run_config", StreamingMode=config, RunConfig=dict)
    installed(monkeypatch, "google.genai.types", Content=SimpleNamespace(model_validate=dict))


async def test_agents_are_named_and_the_session_is_that_of_the_service() -> None:
    runner = Runner(*EVENTS)
    first, _ = await asked(FrameworkTarget(runner, "shop"), "Where?", "And now?")
    assert told(first) == [
        ("assistant", "desk", "", [("c1", "find", '{"n": 1}')]),
        ("tool", "find", "sent", []),
        ("assistant", "writer", "It was sent.", []),
    ]
    assert first.usage == Usage(input_tokens=10, output_tokens=4, cached_input_tokens=2, calls=2)
    assert 0 < (first.messages[0].metadata or {})["first_token"] < 1
    assert runner.sessions == [{"app_name": "shop", "user_id": "user", "session_id": "c-1"}]
    content = {"role": "user", "parts": [{"text": "And now?"}]}
    assert runner.given[1] == {"user_id": "user", "session_id": "s-c-1", "new_message": content}
    assert runner.closed == 0


async def test_an_agent_has_a_runner_of_its_own_which_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = Runner(*EVENTS)
    made: list[tuple[Any, Any]] = []

    def make(agent: Any = None, **options: Any) -> Runner:
        made.append((agent, options))
        return runner

    installed(monkeypatch, "google.adk.runners", InMemoryRunner=make)
    agent = SimpleNamespace(name="desk", run_async=None, sub_agents=[])
    await asked(FrameworkTarget(agent, stream=True), "Where?")
    assert made == [(agent, {"app_name": "vivavoce"})]
    assert (runner.given[0]["run_config"], runner.closed) == ({"streaming_mode": "sse"}, 1)
    app = SimpleNamespace(name="shop", root_agent=agent, plugins=[])
    await asked(FrameworkTarget(app), "Where?")
    assert made[1] == (None, {"app": app})


async def test_an_event_that_says_it_failed_is_a_fault() -> None:
    failed = Event("desk", error_code="SAFETY", error_message=None)
    with pytest.raises(TargetFault, match="desk ended with SAFETY: it says no more"):
        await asked(FrameworkTarget(Runner(failed), "desk"), "Where?")


async def test_a_turn_without_a_message_is_a_fault() -> None:
    with pytest.raises(TargetFault, match="desk said nothing and called no tool"):
        await asked(FrameworkTarget(Runner(), "desk"), "Where?")
