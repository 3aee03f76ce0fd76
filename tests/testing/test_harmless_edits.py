"""Harmless edits: they change what they name everywhere, and nothing that matters."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from vivavoce.features.metric_tests.versions import OWN
from vivavoce.messages import AnyMessage, read_messages
from vivavoce.testing.defects.harmless_edits import FLATTERY, HARMLESS, PADDING, PERSUASIVE, POLITE
from vivavoce.testing.defects.planted import calls_of

CONVERSATION: list[dict[str, Any]] = [
    {"role": "user", "content": "My name is Dana, and my order is GX-4821."},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "a", "name": "get", "arguments": {"order": "GX-4821", "all": True}}],
    },
    {
        "role": "tool",
        "tool_call_id": "a",
        "content": '{"order": "GX-4821", "first_name": "Dana", "mail": "dana@example.com"}',
    },
    {"role": "assistant", "content": "Order GX-4821 is yours, Dana. It is packed."},
    {"role": "user", "content": "Thanks!"},
    {"role": "assistant", "content": "You are welcome. Bye, Dana."},
]


def edit(name: str, rows: list[dict[str, Any]] = CONVERSATION) -> list[AnyMessage]:
    result = HARMLESS[name](list(read_messages(rows)), Random(0))
    assert result is not None
    return result


def join_texts(messages: list[AnyMessage]) -> str:
    return "\n".join(
        [
            *(message.text for message in messages),
            *(call.function.arguments for message in messages for call in calls_of(message)),
        ]
    )


def test_an_id_is_another_one_everywhere() -> None:
    text = join_texts(edit("renamed_ids"))
    assert "GX-4821" not in text
    new = json.loads(edit("renamed_ids")[2].text)["order"]
    assert text.count(new) == join_texts(list(read_messages(CONVERSATION))).count("GX-4821") == 4
    assert [len(part) for part in new.split("-")] == [2, 4]


def test_a_person_has_another_name_everywhere() -> None:
    text = join_texts(edit("renamed_people"))
    assert "dana" not in text.lower()
    new = json.loads(edit("renamed_people")[2].text)["first_name"]
    assert text.count(new) == 4
    assert f"{new.lower()}@example.com" in text


@pytest.mark.parametrize("name", ["key_order", "indented_results"])
def test_data_is_the_same_written_in_another_way(name: str) -> None:
    now = edit(name)
    assert json.loads(now[2].text) == json.loads(CONVERSATION[2]["content"])
    assert now[2].text != CONVERSATION[2]["content"]
    assert calls_of(now[1])[0].args == {"order": "GX-4821", "all": True}
    assert [message.text for i, message in enumerate(now) if i != 2] == [
        row["content"] for i, row in enumerate(CONVERSATION) if i != 2
    ]


@pytest.mark.parametrize("name", ["whitespace", "markdown"])
def test_words_stay_the_same_in_another_form(name: str) -> None:
    now = edit(name)
    assert " ".join(now[3].text.replace("*", "").split()) == CONVERSATION[3]["content"]
    assert now[3].text != CONVERSATION[3]["content"]


def test_a_greeting_comes_first() -> None:
    assert [message.text for message in edit("polite_turn")[:2]] == ["Hello!", "Hello! How can I help you?"]
    assert edit("polite_turn")[2:] == list(read_messages(CONVERSATION))


def test_padding_politeness_and_flattery_are_added_to_replies() -> None:
    assert [edit("padding")[i].text for i in (3, 5)] == [f"{CONVERSATION[i]['content']} {PADDING}" for i in (3, 5)]
    assert [edit("politeness")[i].text for i in (3, 5)] == [f"{POLITE} {CONVERSATION[i]['content']}" for i in (3, 5)]
    assert [edit("flattery")[i].text for i in (3, 5)] == [
        CONVERSATION[3]["content"],
        f"{CONVERSATION[5]['content']}\n\n{FLATTERY}",
    ]
    assert set(PERSUASIVE) <= set(HARMLESS)


@pytest.mark.parametrize("name", HARMLESS)
def test_what_finds_nothing_to_change_changes_nothing(name: str) -> None:
    assert HARMLESS[name]([], Random(0)) is None
    rows = [json.loads(line)["messages"] for line in OWN.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        messages = read_messages(row)
        result = HARMLESS[name](list(messages), Random(1))
        assert result is None or result != list(messages)
        assert [message.to_dict() for message in messages] == [message.to_dict() for message in read_messages(row)]
