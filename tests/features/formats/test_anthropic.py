"""Anthropic's Messages become ours and come back as they were."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from features.formats.translation import back_and_forth, read_values
from vivavoce.features.formats.anthropic import FORMAT


def _words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _thinking(text: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": "s"}


def _lists(item: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(item, max_size=2)


texts = st.text(min_size=1)
words = st.builds(_words, texts)
thinking = st.builds(_thinking, texts)
images: st.SearchStrategy[Any] = st.sampled_from(
    [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
    ]
)
json_values: st.SearchStrategy[Any] = st.recursive(st.none() | st.booleans() | st.integers() | texts, _lists)


@st.composite
def conversations(draw: st.DrawFn) -> dict[str, Any]:
    """Conversations whose every call is answered by the message of the user that follows."""
    messages: list[dict[str, Any]] = []
    open_calls: list[str] = []
    for number in range(draw(st.integers(1, 5))):
        results: list[Any] = [
            {
                "type": "tool_result",
                "tool_use_id": call,
                "content": draw(texts | st.lists(words | images, min_size=1, max_size=2)),
                **draw(st.sampled_from([{}, {"is_error": True}])),
            }
            for call in open_calls
        ]
        contents: list[Any] = results + draw(st.lists(words | images, min_size=not results, max_size=2))
        messages.append(
            {"role": "user", "content": contents if results else draw(st.sampled_from([contents, "What?"]))}
        )
        open_calls = [f"call_{number}_{n}" for n in range(draw(st.integers(0, 2)))]
        calls: list[Any] = [
            {"type": "tool_use", "id": call, "name": "look_up", "input": draw(st.dictionaries(texts, json_values))}
            for call in open_calls
        ]
        blocks: list[Any] = draw(st.lists(words | thinking, min_size=not calls, max_size=2)) + calls
        messages.append({"role": "assistant", "content": blocks if calls else draw(st.sampled_from([blocks, "Yes."]))})
    system = draw(st.sampled_from([{}, {"system": "Be kind."}, {"system": [{"type": "text", "text": "Be kind."}]}]))
    return {**system, "messages": messages}


@given(conversations())
def test_what_is_read_is_written_as_it_was(conversation: dict[str, Any]) -> None:
    assert back_and_forth(FORMAT, [conversation]) == [conversation]


def test_results_and_words_of_a_user_are_messages_of_their_own() -> None:
    conversation = {
        "messages": [
            {"role": "user", "content": "Where is 1042?"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "find", "input": {"n": 1}}]},
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "sent"}]},
                    {"type": "text", "text": "And?"},
                ],
            },
        ]
    }
    [row], loss = read_values(FORMAT, [conversation])
    plain = [{key: value for key, value in message.items() if key != "metadata"} for message in row["messages"]]
    assert plain == [
        {"role": "user", "content": "Where is 1042?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "t", "type": "function", "function": {"name": "find", "arguments": '{"n": 1}'}}],
        },
        {"role": "tool", "content": "sent", "tool_call_id": "t"},
        {"role": "user", "content": [{"type": "text", "text": "And?"}]},
    ]
    assert loss.entries() == []


def test_what_ours_cannot_show_is_told() -> None:
    messages = [
        {"role": "user", "content": [{"type": "document", "source": {"type": "text", "data": "…"}}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Hi."}]},
    ]
    _, loss = read_values(FORMAT, [{"id": "c", "messages": messages}, {"messages": [{"role": "narrator"}]}, 5])
    assert [(entry.kind, entry.what, entry.places) for entry in loss.entries()] == [
        ("broken", "message 0: needs a role, user, assistant or system, and content", ["line 2"]),
        ("broken", "no messages of Anthropic Messages in a record", ["line 3"]),
        ("dropped", "document", ["line 1, conversation 'c', message 0"]),
        ("aside", "thinking", ["line 1, conversation 'c', message 1"]),
    ]
