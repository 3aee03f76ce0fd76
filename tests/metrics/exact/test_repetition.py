from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.errors import UsageError
from vivavoce.metrics.exact.repetition import RepetitionMetric

ASK = "Could you please give me your booking number?"


def chat(*texts: str) -> list[dict[str, str]]:
    return [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(texts)]


def test_an_answer_that_says_nearly_the_same_again_is_found_with_both_turns() -> None:
    result = RepetitionMetric().evaluate(
        chat("hi", ASK, "AB12", "Thank you, one moment please.", "so?", "could you  please give me YOUR booking number")
    )
    assert result.score == pytest.approx(1 / 3)
    assert result.details["repeats"] == [{"turn": 2, "of": 0, "similarity": 1.0}]
    assert [found.turn for found in result.evidence] == [2]
    assert "turn 3 that of turn 1" in str(result.reasoning)


def test_the_earlier_message_that_is_nearest_is_named() -> None:
    again = chat("a", "Your table for two is ready now", "b", ASK, "c", ASK)
    assert RepetitionMetric().evaluate(again).details["repeats"][0]["of"] == 1


def test_the_user_may_be_meant_instead() -> None:
    talk = chat("I want my money back now", "Sure.", "I want my money back now!", "Of course.")
    assert RepetitionMetric(speaker="user").evaluate(talk).score == 0.5
    assert RepetitionMetric().evaluate(talk).state == "skipped"


def test_short_phrases_may_come_as_often_as_they_like() -> None:
    result = RepetitionMetric().evaluate(chat("a", "You are welcome.", "b", "You are welcome.", "c", ASK))
    assert result.reasoning == "the assistant has fewer than two messages of 4 words"


def test_how_near_is_nearly_can_be_said() -> None:
    talk = chat("a", "Your flight leaves at 9 today", "b", "Your flight leaves at 10 today")
    assert RepetitionMetric().evaluate(talk).score == 0
    assert RepetitionMetric(similarity=0.8).evaluate(talk).score == 0.5
    with pytest.raises(UsageError, match="similarity is above 0 and at most 1, got 90"):
        RepetitionMetric(similarity=90)


def test_signs_that_are_words_by_themselves_are_compared_one_by_one() -> None:
    talk = chat("a", "お名前を教えてください", "b", "お名前を教えてください。")
    assert RepetitionMetric().evaluate(talk).score == 0.5


@given(st.lists(st.text(alphabet="ab ", min_size=1), min_size=2, max_size=8))
def test_the_share_is_one_less_for_every_message_that_is_new(texts: list[str]) -> None:
    talk = chat(*(part for text in texts for part in ("?", text)))
    result = RepetitionMetric(similarity=1, fewest_words=0).evaluate(talk)
    kept = [" ".join(text.split()) for text in texts if text.strip()]
    if len(kept) < 2:
        assert result.state == "skipped"
    else:
        assert result.score == pytest.approx(1 - len(set(kept)) / len(kept))


def test_thousands_of_messages_in_a_language_of_many_words_are_compared() -> None:
    talk = [{"role": "assistant", "content": " ".join(f"w{i * n}" for n in range(1, 9))} for i in range(1, 3000)]
    result = RepetitionMetric().evaluate([*talk, talk[7]])
    assert [(one["turn"], one["similarity"]) for one in result.details["repeats"]] == [(None, 1.0)]
