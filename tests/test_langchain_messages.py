"""Message objects of LangChain and Ragas, as the real ones are shaped (langchain-core 1.7, ragas 0.4)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from vivavoce import ConversationHistory, evaluate
from vivavoce.messages import AIMessage, read_message, read_messages


def message(kind: str, content: Any, **more: Any) -> Any:
    beside: dict[str, Any] = {"additional_kwargs": {}, "response_metadata": {}, "name": None, "id": None}
    if kind.startswith(("ai", "AI")):
        beside |= {"tool_calls": [], "invalid_tool_calls": [], "usage_metadata": None}
    return SimpleNamespace(**{"type": kind, "content": content, **beside, **more})


CALL = {"name": "f", "args": {"a": 1}, "id": "c1", "type": "tool_call"}


def test_messages_of_langchain_are_read_by_their_types() -> None:
    rows = [
        message("system", "Be brief."),
        message("human", ["Look:", {"type": "text", "text": "here", "index": 0}]),
        message("ai", "", tool_calls=[CALL]),
        message("tool", "1", tool_call_id="c1", name="f", status="success", artifact=None),
        message("AIMessageChunk", "Done."),
    ]
    read = [message.to_dict() for message in read_messages(rows)]
    assert read == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Look:"}, {"type": "text", "text": "here"}]},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}],
        },
        {"role": "tool", "content": "1", "name": "f", "tool_call_id": "c1"},
        {"role": "assistant", "content": "Done."},
    ]


def test_parts_that_repeat_the_calls_are_left_out_and_what_is_known_besides_is_kept() -> None:
    parts = [{"type": "text", "text": "x"}, {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}}]
    own = {"additional_kwargs": {"tool_calls": [1], "refusal": "no"}, "response_metadata": {"model": "m"}, "id": "r-1"}
    read = read_message(message("ai", parts, tool_calls=[CALL], **own))
    assert isinstance(read, AIMessage)
    assert read.text == "x"
    assert [call.args for call in read.tool_calls or ()] == [{"a": 1}]
    metadata = {"id": "r-1", "response_metadata": {"model": "m"}, "additional_kwargs": {"refusal": "no"}}
    assert read.metadata == {"langchain": metadata}
    assert "metadata" not in read.to_wire()


def test_a_call_whose_arguments_were_no_json_keeps_its_text() -> None:
    broken = {"name": "f", "args": '{"a": ', "id": "c1", "error": "bad", "type": "invalid_tool_call"}
    read = read_message(message("ai", "", invalid_tool_calls=[broken]))
    assert isinstance(read, AIMessage)
    assert [call.function.arguments for call in read.tool_calls or ()] == ['{"a": ']


def test_blocks_that_ours_has_no_part_for_are_kept_beside() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    image = {"type": "image", "base64": "aGk=", "mime_type": "image/png"}
    read = read_messages([message("human", [image, thought]), message("ai", [thought, {"type": "text", "text": "x"}])])
    url = "data:image/png;base64,aGk="
    assert read[0].to_dict()["content"] == [{"type": "image_url", "image_url": {"url": url}}]
    assert (read[1].content, read[1].metadata) == ("x", {"langchain": {"blocks": [thought]}})


def test_messages_of_ragas_have_objects_as_calls() -> None:
    old_message = SimpleNamespace(
        type="ai", content="", metadata={"k": 1}, tool_calls=[SimpleNamespace(name="f", args={"a": 1})]
    )
    read = read_message(old_message)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert isinstance(read, AIMessage)
    assert ([call.name for call in read.tool_calls or ()], read.metadata) == (["f"], {"k": 1})


@pytest.mark.parametrize("thing", ["human", SimpleNamespace(type="human"), SimpleNamespace(type="x", content="y"), 5])
def test_other_things_are_refused_as_before(thing: Any) -> None:
    with pytest.raises(ValueError, match="message 0"):
        read_messages([thing])


def test_a_key_type_of_a_message_of_ours_is_its_own() -> None:
    ours = AIMessage.model_validate({"role": "assistant", "content": "Hi", "type": "human"})
    assert read_messages([ours]) == [ours]


def test_a_list_of_them_is_a_conversation() -> None:
    messages = [message("human", "Refund me."), message("ai", "I cannot help with that.")]
    assert [message.role for message in ConversationHistory(messages=messages).messages] == ["user", "assistant"]
    result = evaluate(messages, "refusal")
    assert result.summary.grader("refusal").scored == 1
