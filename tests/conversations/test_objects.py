"""Objects of other packages, as a caller in Python has them, become our conversations."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage

from vivavoce import UsageError
from vivavoce.conversations.objects import LossWarning, conversation_of, plain
from vivavoce.samples.conversations import as_rows, given_samples
from vivavoce.samples.sample import Sample

QUESTION = HumanMessage(content="And in Rome?")
CALLING = AIMessage(content="", tool_calls=[{"name": "weather", "args": {"city": "Rome"}, "id": "c1"}])
CHAT: list[BaseMessage] = [
    QUESTION,
    CALLING,
    ToolMessage(content="rain", tool_call_id="c1"),
    AIMessage(content="It rains."),
]
ROLES = ["user", "assistant", "tool", "assistant"]


def samples(value: Any) -> list[Sample]:
    result = given_samples(as_rows(value))
    assert not hasattr(result, "__aiter__")
    return list(result)  # pyright: ignore[reportArgumentType, reportUnknownVariableType]


def roles(sample: Sample) -> list[str]:
    return [message.role for message in sample.messages or []]


def test_a_list_of_live_messages_is_one_conversation() -> None:
    [sample] = samples(CHAT)
    assert roles(sample) == ROLES
    assert [message.text for message in sample.messages or []] == ["And in Rome?", "", "rain", "It rains."]


def test_lists_of_them_are_one_each_and_states_with_messages_too() -> None:
    assert [roles(sample) for sample in samples([CHAT, CHAT[:1]])] == [ROLES, ["user"]]
    assert [roles(sample) for sample in samples({"messages": CHAT})] == [ROLES]
    first, second = samples([{"id": "a", "messages": CHAT, "goal": "the weather"}, {"messages": CHAT, "step": 3}])
    assert (first.id, first.goal, second.metadata) == ("a", "the weather", {"step": 3})


def test_a_result_that_returns_its_messages_is_a_conversation() -> None:
    class Result:
        def all_messages(self) -> list[BaseMessage]:
            return CHAT

        def model_dump(self) -> dict[str, Any]:
            raise AssertionError("not asked, for it has messages")

    assert [roles(sample) for sample in samples([Result(), Result()])] == [ROLES, ROLES]
    assert [roles(sample) for sample in samples(Result())] == [ROLES]


def test_our_own_spelling_may_have_answers_of_a_client_in_it() -> None:
    from anthropic.types import Message as AnthropicMessage  # 3,000 modules, which each worker would load to collect

    block: Any = {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Rome"}}
    answer = AnthropicMessage.model_validate(
        {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [block],
            "stop_reason": "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
    )
    [sample] = samples([{"role": "user", "content": "And in Rome?"}, answer])
    assert roles(sample) == ["user", "assistant"]
    assert (sample.messages or [])[1].to_dict()["tool_calls"][0]["function"]["name"] == "weather"


def test_what_is_left_out_is_said() -> None:
    with pytest.warns(
        LossWarning, match=r"a conversation in the format LangChain messages was read with losses: dropped: 1 × remove"
    ):
        assert conversation_of([QUESTION, RemoveMessage(id="m1")]) is not None


def test_what_cannot_be_read_is_an_error_with_the_row() -> None:
    with pytest.raises(UsageError, match=r"row 1: an object of the class object cannot be read"):
        samples([{"messages": CHAT}, {"messages": [ToolMessage(content="x", tool_call_id="c", artifact=object())]}])
    with pytest.raises(UsageError, match="row 0: cannot read this as LangChain messages: message 1: the content is"):
        samples([[QUESTION, SystemMessage(content="x").model_dump() | {"content": 5}]])
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(UsageError, match="more than 64 levels"):
        samples([{"messages": [{"type": "human", "content": endless}]}])


def test_objects_become_plain_data() -> None:
    @dataclass
    class Part:
        when: datetime
        data: bytes
        more: list[Any] = field(default_factory=list[Any])

    part = Part(datetime(2026, 1, 2, tzinfo=UTC), b"hi", [("a", {1: None})])
    assert plain(part) == {"when": "2026-01-02T00:00:00+00:00", "data": "aGk=", "more": [["a", {"1": None}]]}
