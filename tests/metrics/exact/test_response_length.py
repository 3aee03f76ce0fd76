from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.errors import UsageError
from vivavoce.metrics.exact.response_length import ResponseLengthMetric, characters, words


def chat(*texts: str) -> list[dict[str, Any]]:
    return [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("state-of-the-art, don't you think?", 4),
        ("- one\n- two **three** — 3.5", 4),
        ("…  ??  --", 0),
        ("यह हिन्दी है", 3),
        ("a\u00a0b", 2),
    ],
)
def test_a_word_stands_between_spaces_and_holds_a_letter_or_digit(text: str, count: int) -> None:
    assert words(text) == count


def test_the_score_is_the_mean_of_the_answers_and_the_longest_is_shown() -> None:
    result = ResponseLengthMetric().evaluate(chat("one two three four", "Yes.", "and?", "That is all, folks."))
    assert result.score == 2.5
    assert result.details["lengths"] == [1, 4]
    assert [(found.text, found.turn, found.verified) for found in result.evidence] == [("That is all, folks.", 1, True)]


def test_the_most_may_count_instead_of_the_mean() -> None:
    metric = ResponseLengthMetric(statistic="max", threshold=3)
    assert metric.evaluate(chat("?", "a b c", "?", "a")).passed is True
    assert metric.evaluate(chat("?", "a b c d", "?", "a")).passed is False


def test_text_without_spaces_is_counted_in_characters() -> None:
    assert ResponseLengthMetric(unit="characters").evaluate(chat("?", "今日は 晴れです。")).score == 8


def test_empty_answers_and_mere_tool_calls_are_no_answers() -> None:
    called: dict[str, Any] = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "1", "name": "f", "arguments": {}}],
    }
    result = ResponseLengthMetric().evaluate([{"role": "user", "content": "?"}, called, *chat("?", " \n ")])
    assert (result.state, result.reasoning) == ("skipped", "no assistant message has words")


def test_options_that_are_no_options_are_refused() -> None:
    with pytest.raises(UsageError, match="did you mean 'median'"):
        ResponseLengthMetric(statistic="medium")  # pyright: ignore[reportArgumentType]
    with pytest.raises(UsageError, match="no unit"):
        ResponseLengthMetric(unit="tokens")  # pyright: ignore[reportArgumentType]


@given(st.text(), st.text())
def test_lengths_add_up_over_white_space(one: str, other: str) -> None:
    assert words(f"{one} {other}") == words(one) + words(other)
    assert words(one) <= characters(one) <= len(one)
