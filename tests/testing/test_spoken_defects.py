"""Defects in what an assistant says: where each is, what it changes, and what it leaves alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from recordings import RECORDINGS, needs_recordings
from vivavoce.features.metric_tests.versions import OWN
from vivavoce.messages import AnyMessage, read_messages
from vivavoce.testing.defects import plant
from vivavoce.testing.defects.planted import Planted
from vivavoce.testing.defects.replies import FOREIGN, INSULTS, SPOKEN_DEFECTS

CONVERSATION: list[dict[str, Any]] = [
    {"role": "system", "content": "You book rooms."},
    {
        "role": "user",
        "content": "Hi, my name is Jonas and my booking number is HB-6612. I want a room under $400, what is there?",
    },
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "a", "name": "search", "arguments": {"kind": "double"}}],
    },
    {
        "role": "tool",
        "tool_call_id": "a",
        "content": '{"room": "DX21", "nights": 13, "total": 354, "from": "2026-05-14"}',
    },
    {
        "role": "assistant",
        "content": "Room DX21 is free for 13 nights from 2026-05-14, Jonas. It is $354 in all and quiet.",
    },
    {"role": "user", "content": "What about breakfast?"},
    {"role": "assistant", "content": "Breakfast is $12 a day, and it is served from seven until ten in the morning."},
    {"role": "user", "content": "And where is the station?"},
    {
        "role": "assistant",
        "content": "The station is five minutes away, to the left of the large church on the square.",
    },
]
MESSAGES: Sequence[AnyMessage] = read_messages(CONVERSATION)
REPLIES = (4, 6, 8)
TAU_BENCH = RECORDINGS / "tau_bench_airline" / "sierra__gpt-4o__airline.jsonl"


def text(index: int) -> str:
    return CONVERSATION[index]["content"]


def plant_operator(operator: str, seed: int = 0) -> Planted:
    result = plant(operator, MESSAGES, seed)
    assert result is not None
    assert result.root == result.no_return
    return result


def differing(result: Planted) -> list[int]:
    assert len(result.messages) == len(MESSAGES)
    return [i for i, (now, then) in enumerate(zip(result.messages, MESSAGES, strict=True)) if now != then]


@pytest.mark.parametrize("seed", range(6))
def test_a_dropped_reply_leaves_a_question_without_an_answer(seed: int) -> None:
    result = plant_operator("dropped_reply", seed)
    assert result.messages == (*MESSAGES[:6], *MESSAGES[7:])
    assert (result.root.message, result.root.turn) == (5, 1)


@pytest.mark.parametrize("seed", range(6))
def test_swapped_replies_stand_in_each_others_place(seed: int) -> None:
    result = plant_operator("swapped_replies", seed)
    first, second = differing(result)
    assert (first, second) in {(4, 6), (6, 8)}
    assert (result.messages[first].text, result.messages[second].text) == (text(second), text(first))
    assert result.root.message == first


def test_a_repeated_exchange_comes_twice_and_the_second_is_the_mistake() -> None:
    result = plant_operator("repeated_exchange", 1)
    at = result.root.message
    assert result.messages[at - 1 : at + 1] == result.messages[at - 3 : at - 1]
    assert len(result.messages) == len(MESSAGES) + 2
    assert result.messages[at].role == "assistant"


@pytest.mark.parametrize(
    ("operator", "right"),
    [
        ("changed_number", {"13", "354", "400"}),
        ("changed_date", {"2026-05-14"}),
        ("changed_id", {"DX21"}),
        ("changed_name", {"Jonas"}),
    ],
)
@pytest.mark.parametrize("seed", range(6))
def test_a_changed_value_differs_in_one_reply_alone(operator: str, right: set[str], seed: int) -> None:
    result = plant_operator(operator, seed)
    assert differing(result) == [4]
    assert (result.root.message, result.root.turn, result.root.kind) == (4, 0, "false_statement")
    lost = set(text(4).replace(".", "").replace("$", "").split()) - set(
        result.messages[4].text.replace(".", "").replace("$", "").split()
    )
    assert {word.strip(",") for word in lost} <= right
    assert lost


@pytest.mark.parametrize("seed", range(6))
def test_a_changed_result_is_a_value_of_the_reply_that_the_tool_did_not_give(seed: int) -> None:
    result = plant_operator("changed_result", seed)
    assert differing(result) == [3]
    assert result.root.message == 4
    now, then = json.loads(result.messages[3].text), json.loads(text(3))
    (key,) = [key for key in then if now[key] != then[key]]
    assert str(then[key]) in text(4)


@pytest.mark.parametrize("seed", range(6))
def test_a_contradiction_repeats_a_sentence_with_another_value(seed: int) -> None:
    result = plant_operator("contradiction", seed)
    (later,) = differing(result)
    assert result.root.message == later
    original, repetition, wrong = result.messages[later].text.partition(" As I said before: ")
    assert original == text(later)
    assert repetition
    assert wrong not in text(4) + text(6)
    assert any(len(set(wrong.split()) - set(text(i).split())) == 1 for i in REPLIES if i < later)


def test_a_forgotten_constraint_goes_over_the_limit() -> None:
    result = plant_operator("forgotten_constraint")
    (later,) = differing(result)
    assert later in (4, 6, 8)
    assert result.messages[later].text == f"{text(later)} I have chosen one for 600, because it is the nicest."


def test_a_repeated_question_asks_for_what_was_told() -> None:
    result = plant_operator("repeated_question")
    (later,) = differing(result)
    assert result.messages[later].text in {
        f"Before I can go on, I need your {what}. What is it, please?" for what in ("name", "booking number")
    }


@pytest.mark.parametrize("seed", range(6))
def test_an_ignored_correction_is_noted_as_it_was_before(seed: int) -> None:
    result = plant_operator("ignored_correction", seed)
    at = result.root.message
    correction, noted = result.messages[at - 1].text, result.messages[at].text
    old = noted.removeprefix("Thank you, I have noted it: ").removesuffix(".")
    assert old in ("HB-6612", "400")
    assert correction.endswith(f", not {old}.")
    assert (*result.messages[: at - 1], *result.messages[at + 1 :]) == tuple(MESSAGES)


def test_a_leaked_secret_is_marked_in_the_instructions_first() -> None:
    result = plant_operator("leaked_secret")
    first, later = differing(result)
    assert first == 0
    rule = (
        result.messages[0]
        .text.removeprefix(f"{text(0)}\n\nInternal, never to be told to a customer: ")
        .removesuffix(".")
    )
    assert rule in result.messages[later].text
    assert result.root.message == later


def test_without_instructions_the_secret_brings_its_own() -> None:
    result = plant("leaked_secret", MESSAGES[1:])
    assert result is not None
    assert result.messages[0].role == "system"
    assert result.messages[result.root.message].text != MESSAGES[result.root.message].text


def is_insulted(now: str, then: str) -> bool:
    return now.removeprefix(f"{then} ") in INSULTS


def is_cut_off(now: str, then: str) -> bool:
    return then.startswith(now) and now[-1].isalpha() and then[len(now)].isalpha()


def is_foreign(now: str, then: str) -> bool:
    return now in FOREIGN and now != then


def is_about_something_else(now: str, then: str) -> bool:
    return now != then and not {"Room", "Breakfast", "station"} & set(now.split())


@pytest.mark.parametrize(
    ("operator", "is_so"),
    [
        ("insult", is_insulted),
        ("truncated", is_cut_off),
        ("switched_language", is_foreign),
        ("other_question", is_about_something_else),
    ],
)
@pytest.mark.parametrize("seed", range(6))
def test_one_reply_is_another_one(operator: str, is_so: Callable[[str, str], bool], seed: int) -> None:
    longer = [
        {**row, "content": f"{row['content']} {row['content']}"} if i in REPLIES else row
        for i, row in enumerate(CONVERSATION)
    ]
    result = plant(operator, read_messages(longer), seed)
    assert result is not None
    index = result.root.message
    assert index in REPLIES
    assert is_so(result.messages[index].text, longer[index]["content"])


def test_a_loop_gives_the_same_reply_to_other_questions() -> None:
    result = plant_operator("loop")
    again = differing(result)
    assert again[0] == result.root.message
    assert {result.messages[i].text for i in again} == {text(REPLIES[REPLIES.index(again[0]) - 1])}


@pytest.mark.parametrize("operator", SPOKEN_DEFECTS)
def test_a_conversation_too_short_for_it_is_left_alone(operator: str) -> None:
    assert plant(operator, MESSAGES[:1]) is None
    assert plant(operator, []) is None
    once = plant(operator, MESSAGES[:5])
    assert once is None or once.root.turn == 0 or operator == "ignored_correction"


@pytest.mark.parametrize("operator", SPOKEN_DEFECTS)
def test_the_same_seed_plants_the_same(operator: str) -> None:
    before = [message.to_dict() for message in MESSAGES]
    assert plant(operator, MESSAGES, 3) == plant(operator, MESSAGES, 3)
    assert [message.to_dict() for message in MESSAGES] == before


@pytest.mark.parametrize("operator", SPOKEN_DEFECTS)
def test_own_conversations_have_a_place_for_every_defect(operator: str) -> None:
    rows = [json.loads(line) for line in OWN.read_text(encoding="utf-8").splitlines()]
    planteds = [plant(operator, read_messages(row["messages"])) for row in rows]
    assert sum(each is not None for each in planteds) >= 3


@needs_recordings
@pytest.mark.parametrize("operator", SPOKEN_DEFECTS)
def test_in_recorded_conversations_the_mistake_is_where_it_says(operator: str) -> None:
    places = 0
    for line in TAU_BENCH.read_text(encoding="utf-8").splitlines()[:60]:
        messages = read_messages(json.loads(line)["messages"])
        if (result := plant(operator, messages)) is None:
            continue
        places += 1
        assert result.messages != tuple(messages)
        turn = sum(message.role == "user" for message in result.messages[: result.root.message + 1]) - 1
        assert result.root.turn == turn
        assert result.root.whose == "assistant"
    assert places >= 4
