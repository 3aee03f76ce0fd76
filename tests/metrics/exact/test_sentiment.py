from __future__ import annotations

import json
import sys
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordings import RECORDINGS, needs_recordings
from vivavoce.errors import UsageError
from vivavoce.metrics.exact.sentiment import (
    LONGEST,
    SentimentLexiconMetric,
    SentimentTrendMetric,
    _analyzer,  # pyright: ignore[reportPrivateUsage]
    sentiment,
)
from vivavoce.metrics.factory import create_metric


def asked(*texts: str) -> list[dict[str, Any]]:
    return [
        {"role": role, "content": text} for text in texts for role, text in (("user", text), ("assistant", "Okay."))
    ]


def test_words_have_a_sentiment_that_not_turns_round() -> None:
    assert sentiment("This is great, thank you!") > 0.5
    assert sentiment("This is not great.") < 0
    assert sentiment("The train leaves at nine.") == 0
    assert sentiment("Ich bin sehr wütend.") == 0


def test_a_long_text_is_the_mean_of_its_sentences_and_not_louder_than_they_are() -> None:
    once = sentiment("I love it.")
    assert sentiment("I love it. " * 30) == pytest.approx(once)
    assert sentiment("I love it.\n\nThe train leaves at nine.") == pytest.approx(once / 2)


def test_a_long_row_of_emoji_is_read_in_parts_of_bounded_length(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    analyzer = _analyzer()
    plain = analyzer.polarity_scores

    def measured(text: str) -> dict[str, float]:
        seen.append(len(text))
        return plain(text)

    monkeypatch.setattr(analyzer, "polarity_scores", measured)
    assert sentiment("\N{SMILING FACE WITH SMILING EYES}" * 20_000) > 0.5
    assert max(seen) <= LONGEST


def test_an_emoji_counts_as_the_words_it_is_read_as() -> None:
    assert sentiment("Thanks \N{GRINNING FACE}") == pytest.approx(sentiment("Thanks grinning face"))


def test_only_the_beginning_of_an_endless_message_is_measured() -> None:
    assert sentiment("fine. " * 4000 + "terrible. " * 4000) > 0.1


@pytest.mark.parametrize("name", ["sentiment_lexicon", "sentiment_trend"])
def test_without_its_lexicon_a_metric_says_what_to_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vaderSentiment", None)
    with pytest.raises(UsageError, match=rf"metric '{name}': its English lexicon needs .* 'vivavoce\[sentiment\]'"):
        create_metric(name)


def test_the_user_is_measured_unless_told_otherwise() -> None:
    talk = asked("This is terrible.", "The best day ever!")
    result = SentimentLexiconMetric().evaluate(talk)
    assert [entry["turn"] for entry in result.details["series"]] == [0, 1]
    assert result.evidence[0].text == "This is terrible."
    assert SentimentLexiconMetric(speaker="assistant").evaluate(talk).score == sentiment("Okay.") > 0


def test_another_language_is_skipped_and_not_called_neutral() -> None:
    talk = asked("Das ist wirklich schrecklich und ich bin wütend.", "今日は最悪だ")
    assert SentimentLexiconMetric().evaluate(talk).reasoning == "no user message has a word of the English lexicon"
    assert SentimentTrendMetric().evaluate(talk).state == "skipped"
    assert SentimentLexiconMetric().evaluate([{"role": "assistant", "content": "Great!"}]).state == "skipped"


def test_a_user_who_becomes_angry_has_a_falling_trend_and_the_fall_is_shown() -> None:
    talk = asked("Hi, I love your shop!", "I love it", "This is terrible service.", "I hate it, you are awful.")
    result = SentimentTrendMetric(threshold=-0.5).evaluate(talk)
    assert isinstance(result.score, float)
    assert result.score < -0.5
    assert result.passed is False
    assert result.details["slope"] < 0
    assert result.evidence[0].turn == 2
    risen = SentimentTrendMetric().evaluate(asked("This is terrible.", "so?", "Great, thanks!"))
    assert isinstance(risen.score, float)
    assert risen.score > 0.5


def test_one_message_has_no_trend() -> None:
    assert SentimentTrendMetric().evaluate(asked("I love it!")).reasoning == "the user has fewer than two messages"


@given(st.lists(st.sampled_from(["I love it!", "I hate it!", "Nine.", "\ud800 ok", "😀"]), min_size=1, max_size=7))
def test_scores_stay_in_their_range_and_turning_the_order_turns_the_trend(texts: list[str]) -> None:
    mean = SentimentLexiconMetric().evaluate(asked(*texts))
    if mean.state == "scored":
        assert isinstance(mean.score, float)
        assert -1 <= mean.score <= 1
    there, back = (SentimentTrendMetric().evaluate(asked(*order)) for order in (texts, texts[::-1]))
    assert there.state == back.state
    if isinstance(there.score, float) and isinstance(back.score, float):
        assert -2 <= there.score <= 2
        assert there.score == pytest.approx(-back.score)


@needs_recordings
def test_users_who_rant_sound_worse_than_users_who_book_flights() -> None:
    def mean(path: str) -> float:
        rows = [json.loads(line) for line in (RECORDINGS / path).read_text(encoding="utf-8").splitlines()]
        scores = [SentimentLexiconMetric().evaluate(row["messages"]).score for row in rows]
        return fmean(score for score in scores if isinstance(score, float))

    assert mean("diasafety/diasafety.jsonl") < 0 < mean("tau_bench_airline/sierra__gpt-4o__airline.jsonl")


def test_a_text_without_sentences_takes_no_longer_than_its_length_explains() -> None:
    assert sentiment("good but " * 20_000) > 0.5
