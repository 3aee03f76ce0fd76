"""Planted defects: the truth points at the message that was changed, and nothing else is."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any

import pytest

from recordings import RECORDINGS, needs_recordings
from vivavoce.messages import AIMessage, AnyMessage, read_messages
from vivavoce.testing.defects import plant
from vivavoce.testing.defects.calls import CALL_DEFECTS
from vivavoce.testing.defects.planted import Planted


def call(name: str, reference: str, **arguments: object) -> dict[str, Any]:
    return {"role": "assistant", "content": "", "tool_calls": [{"id": reference, "name": name, "arguments": arguments}]}


CONVERSATION: list[dict[str, Any]] = [
    {"role": "system", "content": "Ask for a yes before you change a booking."},
    {"role": "user", "content": "Move my booking B7XK to June 3, and what does it cost?"},
    call("get_booking", "a", booking="B7XK"),
    {"role": "tool", "tool_call_id": "a", "content": '{"booking": "B7XK", "date": "2024-06-01", "fee": 45}'},
    {"role": "assistant", "content": "Moving it costs $45. Shall I?"},
    {"role": "user", "content": "Yes, $45 is fine, go ahead."},
    call("move_booking", "b", booking="B7XK", date="2024-06-03", notify=True),
    {"role": "tool", "tool_call_id": "b", "content": '{"booking": "B7XK", "date": "2024-06-03", "fee": 45}'},
    {"role": "assistant", "content": "It is moved to June 3, for $45."},
    {"role": "user", "content": "Thanks!"},
]
TAU_BENCH = RECORDINGS / "tau_bench_airline" / "sierra__gpt-4o__airline.jsonl"
MESSAGES: Sequence[AnyMessage] = read_messages(CONVERSATION)


def plant_operator(operator: str, seed: int = 0) -> Planted:
    result = plant(operator, MESSAGES, seed)
    assert result is not None
    return result


def truth(result: Planted) -> tuple[int, int | None, str, str]:
    return result.root.message, result.root.turn, result.root.whose, result.root.kind


def others(result: Planted, *indices: int) -> bool:
    """Say whether all messages but those at these indices are as they were."""
    assert len(result.messages) == len(MESSAGES)
    return all(result.messages[i] == message for i, message in enumerate(MESSAGES) if i not in indices)


@pytest.mark.parametrize("seed", range(12))
def test_a_wrong_argument_is_one_other_value_in_the_last_change_and_its_result(seed: int) -> None:
    result = plant_operator("wrong_argument", seed)
    assert truth(result) == (6, 1, "assistant", "wrong_argument")
    assert result.no_return == result.root
    assert others(result, 6, 7)
    calling = result.messages[6]
    assert isinstance(calling, AIMessage)
    assert calling.tool_calls
    right = {"booking": "B7XK", "date": "2024-06-03", "notify": True}
    args = calling.tool_calls[0].args
    (wrong,) = [name for name in right if args[name] != right[name]]
    assert wrong == "notify" or f'"{wrong}": "{args[wrong]}"' in result.messages[7].text
    assert (calling.tool_calls[0].id, calling.tool_calls[0].name) == ("b", "move_booking")


def test_every_value_comes_to_be_wrong_with_some_seed() -> None:
    assert len({str(plant_operator("wrong_argument", seed).messages[6]) for seed in range(30)}) >= 4


def test_of_a_dropped_call_only_the_claim_is_left() -> None:
    result = plant_operator("dropped_call")
    assert result.messages == (*MESSAGES[:6], *MESSAGES[8:])
    assert truth(result) == (6, 1, "assistant", "false_statement")


def test_what_was_said_with_a_dropped_call_stays() -> None:
    rows = copy.deepcopy(CONVERSATION)
    rows[6]["content"] = "One moment."
    result = plant("dropped_call", read_messages(rows))
    assert result is not None
    assert [message.text for message in result.messages[6:8]] == ["One moment.", "It is moved to June 3, for $45."]
    assert result.messages[result.root.message].text.startswith("It is moved")


def test_a_failed_result_has_its_root_in_the_tool_and_is_final_with_the_claim() -> None:
    result = plant_operator("failed_result")
    assert truth(result) == (7, 1, "tool", "tool_error")
    assert (result.no_return.message, result.no_return.whose, result.no_return.kind) == (
        8,
        "assistant",
        "false_statement",
    )
    assert others(result, 7)
    assert result.messages[7].text.startswith("Error: ")


def test_a_false_amount_is_kept_up_in_all_later_words_and_in_no_result() -> None:
    result = plant_operator("false_amount")
    assert truth(result) == (4, 0, "assistant", "false_statement")
    assert others(result, 4, 5, 8)
    assert not any("45" in result.messages[i].text for i in (4, 5, 8))
    assert len({result.messages[i].text.partition("$")[2][:2] for i in (4, 5, 8)}) == 1


def test_an_ignored_request_ends_with_an_answer_to_something_else_and_a_goodbye() -> None:
    result = plant_operator("ignored_request")
    assert truth(result) == (6, 1, "assistant", "ignored_request")
    assert (result.messages[:6], result.messages[7:]) == (tuple(MESSAGES[:6]), (MESSAGES[9],))


def test_without_confirmation_the_question_and_the_yes_are_gone() -> None:
    result = plant_operator("unconfirmed")
    assert result.messages == (*MESSAGES[:4], *MESSAGES[6:])
    assert truth(result) == (4, 0, "assistant", "broken_rule")


def test_a_user_who_gives_up_is_the_root() -> None:
    result = plant_operator("user_gives_up")
    assert truth(result) == (5, 1, "user", "bad_input")
    assert result.messages[:5] == tuple(MESSAGES[:5])
    assert len(result.messages) == 6


@pytest.mark.parametrize("operator", CALL_DEFECTS)
def test_the_same_seed_plants_the_same_and_the_original_is_left_alone(operator: str) -> None:
    messages = read_messages(CONVERSATION)
    assert plant(operator, messages, 5) == plant(operator, messages, 5)
    assert messages == MESSAGES


@pytest.mark.parametrize("operator", CALL_DEFECTS)
@pytest.mark.parametrize("place", [9, 7, 3, 1, 0])
def test_where_there_is_no_place_for_it_nothing_is_planted(operator: str, place: int) -> None:
    result = plant(operator, MESSAGES[:place])
    assert result is None or result.root.message < len(result.messages)
    assert plant(operator, read_messages([{"role": "user", "content": "Hi!"}])) is None


def test_a_change_that_failed_or_of_which_nothing_is_said_is_no_place() -> None:
    rows = copy.deepcopy(CONVERSATION)
    rows[7]["content"] = "Error: no such booking"
    failing = ("wrong_argument", "dropped_call", "failed_result", "unconfirmed", "user_gives_up")
    assert [plant(operator, read_messages(rows)) for operator in failing] == [None] * 5
    assert [plant(operator, MESSAGES[:8]) for operator in failing] == [None] * 5


def test_two_yeses_are_not_told_from_one() -> None:
    rows = [*CONVERSATION[:4], *CONVERSATION[4:6], *CONVERSATION[4:]]
    assert plant("unconfirmed", read_messages(rows)) is None


def lost_its_call(now: AnyMessage, then: AnyMessage) -> bool:
    """Say whether a message is only what was said with a call that is gone."""
    return bool(then.text) and now == AIMessage(content=then.text)


@needs_recordings
@pytest.mark.parametrize("operator", CALL_DEFECTS)
def test_in_recorded_conversations_the_first_message_that_differs_is_the_root(operator: str) -> None:
    count = 0
    for line in TAU_BENCH.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        messages = read_messages(row["messages"])
        result = plant(operator, messages) if row["labels"]["success"] else None
        if result is None:
            continue
        count += 1
        pairs = enumerate(zip(result.messages, messages, strict=False))
        differing = [i for i, (now, then) in pairs if now != then and not lost_its_call(now, then)]
        assert result.root.message == differing[0]
        roles = [message.role for message in result.messages[: result.root.message + 1]]
        assert result.root.turn == roles.count("user") - 1
        assert result.root.whose == ("assistant" if roles[-1] == "assistant" else roles[-1])
    assert count >= 8
