from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from vivavoce.messages import AnyMessage, read_messages
from vivavoce.metrics.evidence import Checker
from vivavoce.metrics.transcript import Shown, transcript

CONVERSATION = read_messages(
    [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Refund order 17, please – it’s “broken”."},
        {"role": "assistant", "tool_calls": [{"id": "a", "name": "refund", "args": {"order": 17}}]},
        {"role": "tool", "tool_call_id": "a", "content": "refunded 30 euros"},
        {"role": "assistant", "content": "Done.\nYou get 30 euros back.", "retrieval_context": [{"rule": "in 5 days"}]},
        {"role": "user", "content": "我想取消我的汽车保险。"},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "That I must not do."}]},
    ]
)
WORDS = st.text(st.characters(exclude_categories=["Cs", "N"], exclude_characters="*_`"), min_size=1, max_size=8)
SENTENCES = st.lists(WORDS, min_size=1, max_size=8).map(" ".join)


def checker(messages: list[AnyMessage]) -> Checker:
    return Checker(messages, transcript(messages))


@pytest.mark.parametrize(
    ("quote", "turn"),
    [
        ("Be brief.", None),
        ("refund ORDER 17,   please", 0),
        ('please - it\'s "broken"', 0),
        ('"Refund order 17, please … broken"', 0),
        ("refunded 30 euros", 0),
        ("Done. You get 30 euros back.", 0),
        ("Done.\\nYou get 30 euros back.", 0),
        ("in 5 days", 0),
        ('refund {"order": 17}', 0),
        ("取消我的汽车", 1),
        ("I must not do", 1),
        ("I", 1),
    ],
)
def test_a_faithful_quote_is_found_in_its_turn(quote: str, turn: int | None) -> None:
    found = checker(CONVERSATION).look_up(quote)
    assert (found.text, found.kind, found.turn, found.verified) == (quote, "quote", turn, True)


@pytest.mark.parametrize(
    "quote",
    [
        "You get 40 euros back.",
        "order 1",
        "fund order 17",
        "Refund order 17, please – it’s brok",
        "Refund ord… 17",
        "broken … Refund",
        "Done. ... Be brief.",
        "please broken",
        "",
        "a",
        "...",
        "!?",
        "取消我的房屋",
        "\\",
        'nobody said "\\n" this\\',
    ],
)
def test_what_nobody_said_in_this_way_is_not_verified(quote: str) -> None:
    found = checker(CONVERSATION).look_up(quote)
    assert (found.turn, found.verified) == (None, False)


@pytest.mark.parametrize("reference", ["c0", "C0", "#c0", "call c0", "result c0:", " (c0) "])
def test_a_call_is_found_by_its_reference(reference: str) -> None:
    found = checker(CONVERSATION).look_up(reference)
    assert (found.text, found.kind, found.turn, found.verified) == ("c0", "call", 0, True)


@given(st.integers(1, 10**6))
def test_a_call_that_was_never_made_is_not_verified(number: int) -> None:
    found = checker(CONVERSATION).look_up(f"c{number}")
    assert (found.kind, found.turn, found.verified) == ("call", None, False)


def test_each_piece_of_evidence_is_given_once() -> None:
    found = checker(CONVERSATION).checked(["c0", "Be brief.", " ", "call c0", "Be brief."])
    assert [one.text for one in found] == ["c0", "Be brief."]


@given(st.lists(SENTENCES, min_size=1, max_size=5), st.data())
def test_words_taken_from_a_message_are_verified_with_its_turn(texts: list[str], data: st.DataObject) -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": text} for text in texts]
    turn = data.draw(st.integers(0, len(texts) - 1))
    words = texts[turn].split()
    start = data.draw(st.integers(0, len(words)))
    quote = " ".join(words[start : data.draw(st.integers(start, len(words)))])
    assume(any(map(str.isalnum, quote.replace("…", ""))))
    found = checker(read_messages(messages)).look_up(quote)
    if found.kind == "call":
        assert not found.verified
        return
    assert found.verified
    assert found.turn is not None
    assert found.turn <= turn


@given(st.lists(st.text("abcdefgh ", max_size=30), max_size=4), st.text("stuvwxyz", min_size=2, max_size=12))
def test_words_that_nobody_used_are_never_verified(texts: list[str], quote: str) -> None:
    messages = read_messages([{"role": "user", "content": text} for text in texts])
    assert not checker(messages).look_up(quote).verified


@pytest.mark.parametrize(
    ("evidence", "places"),
    [
        ("Be brief.", [(0, None, "system")]),
        ("30 euros", [(3, 0, "tool"), (4, 0, "assistant")]),
        ("c0", [(2, 0, "assistant"), (3, 0, "tool")]),
        ("result c0:", [(2, 0, "assistant"), (3, 0, "tool")]),
        ('call c0 refund {"order": 17}', [(2, 0, "assistant")]),
        ("must not do", [(6, 1, "assistant")]),
        ("c1", []),
        ("60 euros", []),
    ],
)
def test_evidence_has_places_in_messages(evidence: str, places: list[tuple[int, int | None, str]]) -> None:
    found = checker(CONVERSATION).places(evidence)
    assert [(place.message, place.turn, place.role) for place in found] == places


def test_the_result_of_a_call_is_that_of_the_latest_with_its_id() -> None:
    again = [*CONVERSATION[1:4], *CONVERSATION[1:4]]
    found = [[place.message for place in checker(again).places(name)] for name in ("c0", "c1")]
    assert found == [[1, 2], [4, 5]]


def test_what_is_not_shown_has_no_place_by_its_reference() -> None:
    hidden = Checker(CONVERSATION, transcript(CONVERSATION, Shown(tools=False)))
    assert hidden.places("c0") == []


def test_places_are_found_in_messages_that_came_later() -> None:
    messages = list(CONVERSATION)
    growing = checker(messages)
    assert growing.places("30 pounds") == []
    messages += read_messages([{"role": "user", "content": "And 30 pounds?"}])
    assert [place.message for place in growing.places("30 pounds")] == [7]


@given(st.text(max_size=60), SENTENCES)
def test_looking_up_never_fails_and_keeps_the_words(quote: str, said: str) -> None:
    found = checker(read_messages([{"role": "user", "content": said}])).look_up(quote)
    assert found.kind == "call" or found.text == quote


@pytest.mark.parametrize(
    ("quote", "turn"),
    [
        ('"order_id": "A1"', 0),
        ('{"order_id": "A1", "name": "Zoë"}', 0),
        ('call c0 cancel {"order_id": "A1", "name": "Zoë"}', 0),
        ("non-refundable", 0),
        ("Your order [...] cancelled", 0),
        ("Your order (…) cancelled", 0),
    ],
)
def test_what_a_judge_sees_in_another_spelling_is_found(quote: str, turn: int) -> None:
    call = {"id": "a", "name": "cancel", "arguments": '{"order_id":"A1","name":"Zo\\u00eb"}'}
    messages = read_messages(
        [
            {"role": "user", "content": "Cancel it"},
            {"role": "assistant", "tool_calls": [call]},
            {"role": "assistant", "content": "Your order, non\u2011refundable, is cancelled."},
        ]
    )
    found = checker(messages).look_up(quote)
    assert (found.turn, found.verified) == (turn, True)
    assert not checker(messages).look_up('"order_id": "A2"').verified


@pytest.mark.parametrize(
    ("quote", "roles"),
    [
        ("paid", ["user", "assistant"]),
        ("assistant: paid", ["assistant"]),
        ('[turn 1] user: "paid?"', ["user"]),
        ("tool: paid", []),
        ('refund({"order": 17, "to": "Ana"})', ["assistant"]),
        ('refund({"order":17,"to":"Ana"})', ["assistant"]),
        ('refund {"order":17,"to":"Ana"}', ["assistant"]),
        ('`refund({"order": 17, "to": "Ana"})`', ["assistant"]),
        ('refund({"order": 1, "to": "Ana"})', []),
        ('refund({"order": 1', []),
        ("ref", []),
    ],
)
def test_a_quote_may_name_its_speaker_or_be_a_call(quote: str, roles: list[str]) -> None:
    messages = read_messages(
        [
            {"role": "user", "content": "Is it paid?"},
            {"role": "assistant", "tool_calls": [{"id": "a", "name": "refund", "args": {"order": 17, "to": "Ana"}}]},
            {"role": "assistant", "content": "It is **paid**."},
        ]
    )
    assert [place.role for place in checker(messages).places(quote)] == roles


def test_what_counts_against_the_assistant_is_the_repetition_and_not_what_it_repeats() -> None:
    said = [
        "At nine.",
        "Where is it?",
        "At nine.",
        "Hello?",
        "At nine.",
        "And the price, at nine?",
        "Ten euros, at nine.",
    ]
    rows = [{"role": "user", "content": "When?"}]
    rows += [{"role": ("assistant", "user")[i % 2], "content": text} for i, text in enumerate(said)]
    looked_up = checker(read_messages(rows))
    assert looked_up.look_up("At nine.").turn == 0
    assert looked_up.look_up("At nine.", against=True).turn == 1
    assert [one.turn for one in looked_up.checked(["At nine.", "Ten euros"], against=True)] == [1, 3]
    assert looked_up.look_up("Where is it?", against=True).turn == 1


@pytest.mark.parametrize(
    ("quote", "places"),
    [
        ("[turn 1] You get 30 euros back.", [4]),
        ("turn 1: assistant: You get 30 euros back.", [4]),
        ("[turn 2] You get 30 euros back.", []),
        ("[turn 2] assistant: That I must not do.", [6]),
        ("[turn 1] assistant: That I must not do.", []),
        ("[turn 3] That I must not do.", []),
        ("[turn 1] Be brief.", []),
        ("(turn 1, session 1) You get 30 euros back.", []),
    ],
)
def test_a_quote_counts_only_in_the_turn_that_it_names(quote: str, places: list[int]) -> None:
    assert [place.message for place in checker(CONVERSATION).places(quote)] == places


def test_a_quote_counts_only_in_the_session_that_it_names() -> None:
    sessions = [{"number": 1}, {"number": 2}]
    talk = [{"role": "user", "content": f"It is {n}", "session": mark} for n, mark in zip("ab", sessions, strict=True)]
    messages = read_messages(talk)
    assert checker(messages).look_up("[turn 2, session 2] It is b").verified
    assert not checker(messages).look_up("[turn 2, session 1] It is b").verified
