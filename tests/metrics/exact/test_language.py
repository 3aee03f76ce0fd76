from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordings import RECORDINGS, needs_recordings
from vivavoce.errors import UsageError
from vivavoce.metrics.exact.language import LanguageMetric, language_of

WRITTEN = {
    "ar": "يسعدني أن أساعدك في حجز رحلتك إلى القاهرة يوم الجمعة القادم.",
    "de": "Gern helfe ich Ihnen bei der Buchung; wann möchten Sie denn abreisen?",
    "en": "I can help you with your booking; when would you like to leave?",
    "es": "Con mucho gusto le ayudo con la reserva; ¿cuándo quiere salir?",
    "fr": "Je peux vous aider à réserver ; quand souhaitez-vous partir ?",
    "hi": "मैं आपकी बुकिंग में मदद कर सकता हूँ, आप कब जाना चाहते हैं?",
    "it": "Posso aiutarla con la prenotazione; quando vorrebbe partire?",
    "ja": "ご予約をお手伝いします。いつ出発されますか。",
    "ko": "예약을 도와드리겠습니다. 언제 출발하시겠습니까?",
    "nl": "Ik help u graag met de boeking; wanneer wilt u vertrekken?",
    "pl": "Chętnie pomogę w rezerwacji; kiedy chciałaby pani wyjechać?",
    "pt": "Posso ajudar com a sua reserva; quando você gostaria de viajar?",
    "ru": "Я помогу вам с бронированием; когда вы хотите уехать?",
    "tr": "Rezervasyonunuzda size yardımcı olabilirim; ne zaman gitmek istersiniz?",
    "zh": "我很乐意帮您预订机票，请问您想什么时候出发？",
}


def chat(*texts: str) -> list[dict[str, str]]:
    return [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(texts)]


@pytest.mark.parametrize("code", sorted(WRITTEN))
def test_a_sentence_is_enough_to_say_its_language(code: str) -> None:
    assert language_of(WRITTEN[code]) == code


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ok",
        "No problem",
        "谢谢",
        "12345 67890 12345 67890 12345",
        "```\nprint('hello world, how are you today')\n```",
        "https://example.com/we/are/happy/to/help/you/with/this",
        "AB12CD HAT123 JFK LAX",
        "\ud800\udfff",
    ],
)
def test_what_is_too_short_or_no_language_is_left_undecided(text: str) -> None:
    assert language_of(text) is None


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("已经退款给您", "zh"),
        ("您的包裹已经发出，预计明天送达，请您耐心等待。", "zh"),
        ("最后一个问题，几点关门？", "zh"),
        ("Order 1042 已经退款给您", "zh"),
        ("はい、できます。", "ja"),
        ("네, 가능합니다.", "ko"),
        ("ได้ครับ ขอบคุณ", "th"),
    ],
)
def test_a_short_answer_is_decided_in_scripts_that_write_words_with_few_letters(text: str, language: str) -> None:
    assert language_of(text) == language


def test_code_within_an_answer_does_not_decide_it() -> None:
    text = f"{WRITTEN['de']}\n```python\nfor each in range(10): print(the_value_of_this_thing)\n```"
    assert language_of(text) == "de"


def test_an_answer_in_another_language_than_the_users_is_found() -> None:
    result = LanguageMetric().evaluate(chat(WRITTEN["de"], WRITTEN["de"], "Ja.", WRITTEN["en"], "?", "Ok."))
    assert (result.score, result.passed) == (0.5, False)
    assert [(found.text, found.turn) for found in result.evidence] == [(WRITTEN["en"], 1)]
    assert [entry["language"] for entry in result.details["answers"]] == ["de", "en", None]


def test_a_user_who_changes_the_language_is_followed() -> None:
    assert LanguageMetric().evaluate(chat(WRITTEN["de"], WRITTEN["de"], WRITTEN["fr"], WRITTEN["fr"])).passed is True


def test_a_language_may_be_expected_whatever_the_user_speaks() -> None:
    talk = chat(WRITTEN["ko"], WRITTEN["de"])
    assert LanguageMetric(expected="de-AT").evaluate(talk).score == 1
    assert LanguageMetric(expected="en").evaluate(talk).score == 0
    with pytest.raises(UsageError, match="unknown language 'klingon'"):
        LanguageMetric(expected="klingon")


def test_undecided_conversations_are_skipped() -> None:
    assert LanguageMetric().evaluate(chat("ok", WRITTEN["de"])).state == "skipped"
    assert LanguageMetric(expected="de").evaluate(chat(WRITTEN["de"], "Ja.")).state == "skipped"


@given(st.lists(st.sampled_from([*WRITTEN.values(), "ok", ""]), min_size=2, max_size=6))
def test_the_share_lies_between_0_and_1_and_counts_only_what_is_decided(texts: list[str]) -> None:
    result = LanguageMetric().evaluate(chat(*texts))
    if isinstance(result.score, float):
        right = [one for one in result.details["answers"] if None not in (one["language"], one["wanted"])]
        assert result.score == sum(one["language"] == one["wanted"] for one in right) / len(right)


@needs_recordings
@pytest.mark.parametrize(
    "file",
    ["tau_bench_airline/sierra__gpt-4o__airline", "usr_topicalchat/usr_topicalchat", "xstest/xstest_completions"],
)
def test_english_answers_are_taken_for_english_or_left_undecided(file: str) -> None:
    rows = [json.loads(line) for line in (RECORDINGS / f"{file}.jsonl").read_text(encoding="utf-8").splitlines()]
    answers = [
        one["content"] for row in rows for one in row["messages"] if one["role"] == "assistant" and one["content"]
    ]
    said = [language_of(text) for text in answers]
    assert set(said) <= {"en", None}
    assert said.count(None) < 0.1 * len(said)


@pytest.mark.parametrize("piece", ["a", "0", "ab:", "<", "!", "中"])
def test_a_hostile_text_takes_no_longer_than_its_length_explains(piece: str) -> None:
    assert language_of(f"{piece * 300_000} is what we have on offer for you today.") in (None, "en", "zh")


def test_an_answer_before_the_user_could_be_understood_is_held_to_what_the_user_says_first() -> None:
    result = LanguageMetric().evaluate(chat("Hi!", WRITTEN["es"], WRITTEN["en"], WRITTEN["en"]))
    assert (result.raw, [one.turn for one in result.evidence]) == (0.5, [0])
