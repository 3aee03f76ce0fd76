"""Agents and pipelines of Haystack as targets, shaped as the real ones are (haystack-ai 3.4)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from asking import Told, asked, installed, told
from vivavoce.errors import TargetFault, UsageError
from vivavoce.records.score import Usage
from vivavoce.targets import FrameworkTarget


class ChatMessage:
    """A message in OpenAI's shape, as the real one can write itself."""

    def __init__(self, role: str, content: str | None, **more: Any) -> None:
        self.role = SimpleNamespace(value=role)
        self.fields = {"role": role, "content": content, **more}
        used = {"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1}}
        self.meta = {"usage": used} if role == "assistant" else {}

    @classmethod
    def from_user(cls, text: str) -> ChatMessage:
        return cls("user", text)

    def to_openai_dict_format(self, require_tool_call_ids: bool) -> dict[str, Any]:
        assert not require_tool_call_ids
        return self.fields


CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{}"}}
NEW = [
    ChatMessage("assistant", None, tool_calls=[CALL]),
    ChatMessage("tool", "sent", tool_call_id="c1"),
    ChatMessage("assistant", "It was sent."),
]
TOLD: list[Told] = [
    ("assistant", None, "", [("c1", "find", "{}")]),
    ("tool", None, "sent", []),
    ("assistant", None, "It was sent.", []),
]


@pytest.fixture(autouse=True)
def _package(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, "haystack.dataclasses", ChatMessage=ChatMessage)


class Agent:
    chat_generator = exit_conditions = None

    def __init__(self) -> None:
        self.given: list[list[ChatMessage]] = []

    def run(self, messages: list[ChatMessage], streaming_callback: Any = None) -> dict[str, Any]:
        if streaming_callback:
            streaming_callback("piece")
        self.given.append(messages)
        return {"messages": [*messages, *NEW], "last_message": NEW[-1]}


class AsyncAgent(Agent):
    async def run_async(self, messages: list[ChatMessage]) -> dict[str, Any]:
        return self.run(messages)


@pytest.mark.parametrize("kind", [Agent, AsyncAgent])
async def test_an_agent_gets_the_messages_so_far(kind: type[Agent]) -> None:
    agent = kind()
    first, second = await asked(FrameworkTarget(agent), "Where?", "And now?")
    assert (told(first), told(second)) == (TOLD, TOLD)
    assert first.usage == Usage(input_tokens=10, output_tokens=4, cached_input_tokens=2, calls=2)
    assert [len(messages) for messages in agent.given] == [1, 5]


async def test_the_first_piece_is_timed() -> None:
    (reply,) = await asked(FrameworkTarget(AsyncAgent(), stream=True), "Where?")
    assert 0 < (reply.messages[0].metadata or {})["first_token"] < 1


class Pipeline:
    add_component = None

    def __init__(self, returned: Any, **inputs: Any) -> None:
        self.returned = returned
        self.given: list[Any] = []
        self._inputs = {key: {"query": {"type": kind, "is_mandatory": True}} for key, kind in inputs.items()}

    def inputs(self) -> Any:
        return {**self._inputs, "other": {"top_k": {"type": int, "is_mandatory": False}}}

    def run(self, data: Any) -> Any:
        self.given.append(data)
        return self.returned


async def test_a_pipeline_gets_the_text_and_the_messages_where_it_needs_them() -> None:
    pipeline = Pipeline({"model": {"replies": [NEW[-1]]}}, prompt=str, model=list[ChatMessage])
    first, _ = await asked(FrameworkTarget(pipeline), "Where?", "And now?")
    assert told(first) == TOLD[2:]
    assert pipeline.given[1]["prompt"] == {"query": "And now?"}
    assert [one.fields["content"] for one in pipeline.given[1]["model"]["query"]] == [
        *("Where?", "It was sent.", "And now?")
    ]


async def test_an_answer_has_the_documents_that_were_found() -> None:
    document = SimpleNamespace(content="a page")
    answer = SimpleNamespace(data="It was sent.", documents=[document])
    (reply,) = await asked(FrameworkTarget(Pipeline({"reader": {"answers": [answer]}}, reader=str)), "Where?")
    assert told(reply) == TOLD[2:]
    assert reply.messages[0].retrieval_context == ["a page"]


async def test_what_has_no_answer_is_a_fault() -> None:
    with pytest.raises(TargetFault, match="Pipeline returned store; an answer is looked for as messages, replies"):
        await asked(FrameworkTarget(Pipeline({"store": {"written": 1}}, store=str)), "Where?")


@pytest.mark.parametrize(
    ("inputs", "rule"),
    [
        ({"ranker": int}, r"the pipeline rag needs ranker\.query, and it only gets a text and messages"),
        ({}, "the pipeline rag needs nothing, and no input has a place for a message"),
    ],
)
def test_inputs_that_are_neither_are_refused_before_anything_runs(inputs: Any, rule: str) -> None:
    with pytest.raises(UsageError, match=rule):
        FrameworkTarget(Pipeline({}, **inputs), "rag")
