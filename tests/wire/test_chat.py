from __future__ import annotations

import json
from typing import Any

import pytest

from vivavoce.errors import TargetFault, UsageError
from vivavoce.records.score import Usage, usage_of
from vivavoce.wire.chat import checked_settings, read_completion, read_usage
from vivavoce.wire.http import Answer


def answer(payload: object) -> Answer:
    return Answer("POST http://bot/v1", json.dumps(payload).encode())


def test_the_message_keeps_what_the_provider_added_and_drops_what_is_null() -> None:
    message = {"role": "assistant", "content": "4", "reasoning": "2 and 2", "audio": None, "refusal": None}
    completion = read_completion(answer({"choices": [{"message": message, "finish_reason": "stop"}]}))
    assert completion.message.to_wire() == {"role": "assistant", "content": "4", "reasoning": "2 and 2"}
    assert (completion.finish_reason, completion.usage) == ("stop", None)


MALFORMED: list[object] = [
    {},
    [],
    None,
    {"choices": []},
    {"choices": [{}]},
    {"choices": [{"message": "hi"}]},
    {"error": {"message": "overloaded"}},
    {"choices": [{"message": {"content": 5}}]},
]


@pytest.mark.parametrize("payload", MALFORMED)
def test_an_answer_of_another_form_is_a_format_fault(payload: object) -> None:
    with pytest.raises(TargetFault, match="POST http://bot/v1: the answer has") as caught:
        read_completion(answer(payload))
    assert (caught.value.kind, caught.value.evidence) == ("format", json.dumps(payload))


def test_usage_tells_cached_and_reasoning_tokens() -> None:
    reported: dict[str, Any] = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 64},
        "completion_tokens_details": {"reasoning_tokens": 12},
    }
    usage = read_usage(reported)
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cached_input_tokens, usage.reasoning_tokens) == (
        100,
        20,
        64,
        12,
    )
    assert (usage.calls, usage.cost) == (1, None)


def test_usage_without_details_is_read() -> None:
    usage = read_usage({"prompt_tokens": 3, "completion_tokens": None, "prompt_tokens_details": None})
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (3, 0)


@pytest.mark.parametrize("tokens", [-1, -1_000_000, 1.5, float("nan"), float("inf"), 1e12, "many", True, [3], None])
def test_a_number_of_tokens_that_no_call_has_is_unknown(tokens: object) -> None:
    fields = {"choices": [{"message": {"content": "x"}}]}
    for usage in (
        {"prompt_tokens": tokens, "completion_tokens": 2},
        {"prompt_tokens": 3, "completion_tokens": tokens or -1},
        {"prompt_tokens": 3, "prompt_tokens_details": {"cached_tokens": tokens or -1}},
        {"prompt_tokens": 3, "completion_tokens_details": {"reasoning_tokens": tokens or -1}},
        "much",
        [tokens],
    ):
        completion = read_completion(answer({**fields, "usage": usage}))
        assert (completion.message.text, completion.usage) == ("x", None)


def test_a_whole_number_of_tokens_may_be_written_as_a_fraction() -> None:
    assert read_usage({"prompt_tokens": 3.0}) == Usage(input_tokens=3, calls=1)


def test_what_a_malformed_answer_used_stays_in_the_failure() -> None:
    with pytest.raises(TargetFault) as caught:
        read_completion(answer({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}))
    assert usage_of(caught.value) == Usage(input_tokens=3, output_tokens=2, calls=1)


@pytest.mark.parametrize("key", ["model", "messages", "stream", "tools", "n", "response_format"])
def test_a_part_of_the_request_is_not_a_setting(key: str) -> None:
    with pytest.raises(UsageError, match=f"bot: '{key}' cannot be set"):
        checked_settings({key: 1}, "bot")
