from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordings import RECORDINGS, needs_recordings
from vivavoce.errors import UsageError
from vivavoce.metrics.exact.semantic_retention import SemanticRetentionMetric
from vivavoce.models.embedder import Vector
from vivavoce.models.local_embedder import PACKAGE, LocalEmbedder

CONVERSATIONS = RECORDINGS / "usr_topicalchat/usr_topicalchat.jsonl"


class Topics:
    """An embedder that knows two topics by their words."""

    name = "topics"

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [[float(text.count(word)) for word in ("flight", "soup")] for text in texts]

    async def close(self) -> None:
        pass


def chat(*texts: str) -> list[dict[str, Any]]:
    return [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(texts)]


def test_an_answer_is_compared_with_all_that_was_said_the_latest_most() -> None:
    metric = SemanticRetentionMetric(embedder=Topics())
    result = metric.evaluate(chat("flight", "flight", "soup", "soup"))
    assert result.score == pytest.approx(1 / (1 + 0.75**2) ** 0.5)
    assert [answer["turn"] for answer in result.details["answers"]] == [1]
    last = SemanticRetentionMetric(embedder=Topics(), decay=0).evaluate(chat("flight", "flight", "soup", "soup"))
    assert last.score == 1


def test_the_answer_that_is_farthest_is_shown() -> None:
    talk = chat("flight", "flight", "and my flight?", "flight", "so?", "try our soup")
    result = SemanticRetentionMetric(embedder=Topics(), threshold=0.7).evaluate(talk)
    assert (result.score, result.passed) == (0.5, False)
    assert [(found.text, found.turn) for found in result.evidence] == [("try our soup", 2)]


def test_the_first_turn_has_nothing_earlier_to_keep_to() -> None:
    assert SemanticRetentionMetric(embedder=Topics()).evaluate(chat("flight", "soup")).state == "skipped"
    greeted = [{"role": "assistant", "content": "soup"}, *chat("flight", "soup")]
    assert SemanticRetentionMetric(embedder=Topics()).evaluate(greeted).state == "skipped"


def test_a_decay_beyond_1_would_weigh_the_oldest_most_and_is_refused() -> None:
    with pytest.raises(UsageError, match="decay must be from 0 to 1, got 2"):
        SemanticRetentionMetric(decay=2)


@given(st.lists(st.sampled_from(["flight", "soup", "flight soup", "nothing"]), min_size=4, max_size=9), st.floats(0, 1))
def test_nearness_lies_between_0_and_1(texts: list[str], decay: float) -> None:
    score = SemanticRetentionMetric(embedder=Topics(), decay=decay).evaluate(chat(*texts)).score
    assert isinstance(score, float)
    assert 0 <= score <= 1


@needs_recordings
@pytest.mark.skipif(
    find_spec(PACKAGE) is None or find_spec("tokenizers") is None, reason="needs the local embedder: vivavoce[embed]"
)
def test_nearness_goes_with_peoples_judgement_better_than_length_does() -> None:
    metric = SemanticRetentionMetric(embedder=LocalEmbedder())
    rows = [json.loads(line) for line in CONVERSATIONS.read_text(encoding="utf-8").splitlines()][::3]
    judged = [row for row in rows if len(row["messages"]) > 3]
    answers = [metric.evaluate(row["messages"][-6:]).details["answers"][-1]["nearness"] for row in judged]
    people = [row["labels"]["mean"]["Maintains Context"] for row in judged]
    lengths = [len(row["messages"][-1]["content"]) for row in judged]
    rank: Any = importlib.import_module("scipy.stats").spearmanr
    assert len(judged) > 100
    assert rank(answers, people).statistic > 0.35 > rank(lengths, people).statistic
