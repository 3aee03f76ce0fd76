from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordings import RECORDINGS, needs_recordings
from vivavoce.metrics.exact.topic_drift import TopicDriftMetric
from vivavoce.models.embedder import Vector
from vivavoce.models.local_embedder import PACKAGE, LocalEmbedder

CONVERSATIONS = RECORDINGS / "mt_bench_101/mt_bench_101.jsonl"


class Topics:
    """An embedder that knows three topics by their words."""

    name = "topics"

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [[float(text.count(word)) for word in ("flight", "soup", "cat")] for text in texts]

    async def close(self) -> None:
        pass


def chat(*texts: str) -> list[dict[str, Any]]:
    return [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(texts)]


def test_a_conversation_that_keeps_to_its_topic_does_not_drift() -> None:
    result = TopicDriftMetric(embedder=Topics()).evaluate(chat("my flight", "which flight?", "that flight", "ok"))
    assert (result.score, result.value) == (0, 1)


def test_each_step_counts_and_the_longest_is_shown() -> None:
    talk = chat("my flight", "which?", "flight", "flight", "now soup", "soup it is", "flight", "flight", "", "")
    result = TopicDriftMetric(embedder=Topics(), threshold=0.5).evaluate(talk)
    assert result.score == pytest.approx(2 / 3)
    assert result.passed is False
    assert result.details["steps"] == [0, 1, 1]
    assert result.details["from_start"] == [0, 1, 0]
    assert result.details["turns"] == [1, 2, 3]
    assert [(found.text, found.turn) for found in result.evidence] == [("now soup\nsoup it is", 2)]


def test_one_turn_has_nowhere_to_go() -> None:
    assert TopicDriftMetric(embedder=Topics()).evaluate(chat("flight", "flight")).state == "skipped"
    lone = [{"role": "assistant", "content": "flight"}]
    assert TopicDriftMetric(embedder=Topics()).evaluate(lone).reasoning == "fewer than two turns have words"


@given(st.lists(st.sampled_from(["flight", "soup", "cat", "flight soup", "nothing"]), min_size=4, max_size=9))
def test_drift_lies_between_0_and_1_and_is_the_same_backwards(texts: list[str]) -> None:
    def drift(order: list[str]) -> Any:
        return TopicDriftMetric(embedder=Topics()).evaluate([{"role": "user", "content": text} for text in order]).score

    assert 0 <= drift(texts) <= 1
    assert drift(texts) == pytest.approx(drift(texts[::-1]))


@needs_recordings
@pytest.mark.skipif(
    find_spec(PACKAGE) is None or find_spec("tokenizers") is None, reason="needs the local embedder: vivavoce[embed]"
)
def test_conversations_that_shift_their_topic_drift_more_than_others() -> None:
    rows = [json.loads(line) for line in CONVERSATIONS.read_text(encoding="utf-8").splitlines()]
    metric = TopicDriftMetric(embedder=LocalEmbedder())

    def drifts(ability: str) -> list[Any]:
        chosen = [row for row in rows if row["labels"]["ability"] == ability][:8]
        return [metric.evaluate(row["messages"]).score for row in chosen]

    others = [drift for ability in ("AR", "CC", "GR", "IC", "MR") for drift in drifts(ability)]
    pairs = [shifted > other for shifted in drifts("TS") for other in others]
    assert sum(pairs) / len(pairs) > 0.95
