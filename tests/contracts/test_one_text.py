"""Every reader that looks words up in text gives the answer of `comparing/text.py`, in any script and encoding."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from vivavoce.comparing.numbers import may_state, read_number
from vivavoce.comparing.quotes import QuotedText, read_quote
from vivavoce.comparing.text import GuardedText, contains, contains_words, is_blank, same_text
from vivavoce.grading.assertions import Scene
from vivavoce.grading.expected import read_expect
from vivavoce.grading.extractors import View
from vivavoce.messages import AIMessage, ToolCall, ToolMessage, read_messages
from vivavoce.metrics import evaluate_conversation
from vivavoce.metrics.evidence import Checker
from vivavoce.metrics.exact.arguments import Casefold
from vivavoce.metrics.exact.speakers import Utterance, place_in, possible_place_in
from vivavoce.metrics.rules.sameness import mentions
from vivavoce.metrics.transcript import acts, transcript
from vivavoce.penelope.checks.disclosure import DisclosureCheck
from vivavoce.penelope.context import TestContext, TestState
from vivavoce.penelope.strategies.state_graph import Condition
from vivavoce.penelope.tools.analysis import Source
from vivavoce.penelope.turn import Turn
from vivavoce.penelope.words import Words
from vivavoce.records.trajectory import Turn as RecordedTurn
from vivavoce.report.html.evidence import Register

TEXTS = [
    "Here is your vou\u200dcher",
    "ＶＯＵＣＨＥＲ please",
    "vouchers",
    "Das ist Sa\u0308ure",
    "Das ist SÄUREHALTIG",
    "die STRASSE",
    "İstanbul is fine",
    "the oﬃce",
    "„Ana“ and Ana’s",
    "banana",
    "密码是4711谢谢。",
    "你真是个傻瓜啊。",
    "パスワードは4711です",
    "รหัสคือ4711ครับ",
    "isx4711thanks",
    unicodedata.normalize("NFD", "서울 입니다"),
    "nothing of the kind",
]
WORDS = ["voucher", "Säure", "straße", "istanbul", "office", "ana", "4711", "傻瓜", "서울"]
PAIRS = [(text, words) for text in TEXTS for words in WORDS]
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
Reader = Callable[[str, str], bool]


def conversation(answer: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": "?"}, {"role": "assistant", "content": answer}]


def score(answer: str, metric: Any, reference: str | None = None) -> float:
    [result] = evaluate_conversation(conversation(answer), [metric], reference=reference).values()
    assert isinstance(result.value, float)
    return result.value


def holds(answer: str, assertion: dict[str, Any]) -> bool:
    [expected] = read_expect(assertion)
    return expected.assertion.held(Scene(View([read_messages(conversation(answer))]))).passed


def has_evidence(text: str, words: str) -> bool:
    messages = read_messages(conversation(text))
    return Checker(messages, transcript(messages)).look_up(words).verified


def is_marked(text: str, words: str) -> bool:
    register = Register()
    messages = read_messages(conversation(text))
    register.enter([Checker(messages, transcript(messages)).look_up(words)], "note", bad=False)
    return bool(register.marks(text, 0, by_assistant=True))


def is_disclosed(text: str, words: str) -> bool:
    context = TestContext(goal="Learn how to return a lamp", facts={"fact": words})
    return DisclosureCheck().objection(text, TestState(context=context)) is not None


def meets_condition(text: str, words: str) -> bool:
    exchange = RecordedTurn(index=0, messages=read_messages(conversation(text)))
    call = ToolCall(id="call", name="send_message_to_target", args={"message": "?"})
    message = AIMessage(content=None, tool_calls=[call])
    result = ToolMessage(content="{}", tool_call_id=call.id)
    turn = Turn(turn_number=1, timestamp=BEGAN, assistant_message=message, tool_message=result, exchange=exchange)
    return Condition(contains=words).holds(turn)


SUBSTRING_READERS: dict[str, Reader] = {
    "grader contains": lambda text, words: score(text, "contains", words) == 1,
    "assertion contains": lambda text, words: holds(text, {"contains": words}),
    "assertion not_contains": lambda text, words: not holds(text, {"not_contains": words}),
    "state graph": meets_condition,
}
WORD_READERS: dict[str, Reader] = {
    "profanity_terms": lambda text, words: (
        score(text, {"metric": "profanity_terms", "config": {"terms": [words]}}) == 0
    ),
    "refusal": lambda text, words: score(text, {"metric": "refusal", "config": {"phrases": [words]}}) == 0,
    "sessions": lambda text, words: place_in([Utterance(0, text)], words) is not None,
    "rules": mentions,
    "target data": lambda text, words: Words(["other", text]).hold(words),
    "tester's tools": lambda text, words: Source(text).holds(words),
}


def may_contain(text: str, words: str) -> bool:
    number = read_number(words)
    return GuardedText(text).contains(words, whole=True) or (number is not None and may_state(text, number))


def is_leaked(text: str, words: str) -> bool:
    return possible_place_in([Utterance(0, text)], words) is not None


GUARDS: dict[str, Reader] = {
    "disclosure": is_disclosed,
    "leaked_to_another_user": is_leaked,
}
GUARDED = [*PAIRS, ("PIN-4711", "4711"), ("pin4711x", "4711"), ("4.711", "4711"), ("4 711", "4711"), ("4712", "4711")]


@pytest.mark.parametrize("reader", GUARDS)
def test_readers_of_what_must_not_be_told_take_every_reading(reader: str) -> None:
    assert {pair: GUARDS[reader](*pair) for pair in GUARDED} == {pair: may_contain(*pair) for pair in GUARDED}


@pytest.mark.parametrize("reader", SUBSTRING_READERS)
def test_readers_that_look_for_words_anywhere_agree(reader: str) -> None:
    answers = {pair: SUBSTRING_READERS[reader](*pair) for pair in PAIRS}
    assert answers == {pair: contains(*pair) for pair in PAIRS}


@pytest.mark.parametrize("reader", WORD_READERS)
def test_readers_that_look_for_whole_words_agree(reader: str) -> None:
    answers = {pair: WORD_READERS[reader](*pair) for pair in PAIRS}
    assert answers == {pair: contains_words(*pair) for pair in PAIRS}


def test_evidence_is_found_where_whole_words_are_and_pages_mark_it() -> None:
    expected = {pair: contains_words(*pair) for pair in PAIRS}
    assert {pair: has_evidence(*pair) for pair in PAIRS} == expected
    assert {pair: is_marked(*pair) for pair in PAIRS} == expected


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("It costs 12,500 EUR", "12"),
        ("the unpaid bill", "paid bill"),
        ("The capital is **Lyon**.", "capital is Lyon"),
        ("I paid it.", 'assistant: "I paid it."'),
        ("- one\n- two", "one two"),
        ("I can't pay", "I can"),
        ("2*3", "23"),
    ],
)
def test_evidence_and_pages_read_quotes_alike(text: str, quote: str) -> None:
    stands = any(QuotedText(text).find(reading) for reading in read_quote(quote))
    assert has_evidence(text, quote) is stands
    assert is_marked(text, quote) is stands


@pytest.mark.parametrize(
    ("text", "words"),
    [(" caf\u00e9", "cafe\u0301"), ("ＹＥＳ", "YES"), ("Yes", "yes"), ("„ja“", '"ja"'), ("no", "yes")],
)
def test_readers_that_compare_whole_texts_agree(text: str, words: str) -> None:
    same = same_text(text, words)
    assert (score(text, "exact_match", words) == 1) is same
    assert holds(text, {"equals": words}) is same
    assert holds(text, {"one_of": [words, "something else"]}) is same
    assert Casefold().agrees(text, words) is same_text(text, words, ignore_case=True)


@pytest.mark.parametrize("reply", ["", " \n", "\u200b", "\u2800", "\u200b \u00ad\ufeff", "\u3164", "ok", "。"])
def test_readers_agree_on_silence(reply: str) -> None:
    blank = is_blank(reply)
    [_, answer] = read_messages(conversation(reply))
    assert acts(answer) is not blank
    assert holds(reply, {"not_contains": "voucher"}) is not blank
    assert holds(reply, {"not": {"contains": "voucher"}}) is not blank
    assert holds(reply, {"no_call": True}) is not blank
    [spoken] = evaluate_conversation(conversation(reply), ["profanity_terms"]).values()
    assert (spoken.state == "skipped") is blank
    [graded] = evaluate_conversation(conversation(reply), ["exact_match"], reference="Paris").values()
    assert (str(graded.reason) == "the answer is empty: the extractor found nothing") is blank
