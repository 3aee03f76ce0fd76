from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.errors import ModelFault
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.exact.embedded import EmbeddedMetric, similarity
from vivavoce.metrics.exact.semantic_retention import SemanticRetentionMetric
from vivavoce.metrics.exact.topic_drift import TopicDriftMetric
from vivavoce.metrics.measuring import Measured, Part
from vivavoce.models.embedder import OpenAIEmbedder, Vector
from vivavoce.testing import LoopbackServer, misbehaviour

COORDINATES = st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=3)


class Letters:
    """An embedder of one letter each: how often it occurs."""

    name = "letters"

    def __init__(self, letters: str = "ab") -> None:
        self.letters = letters
        self.asked: list[Sequence[str]] = []

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.asked.append(texts)
        await asyncio.sleep(0)
        return [[float(text.count(letter)) for letter in self.letters] for text in texts]

    async def close(self) -> None:
        pass


class First(EmbeddedMetric):
    """The first coordinate of the last message."""

    def __init__(self, embedder: Letters | None) -> None:
        super().__init__(MetricConfig(name="first", maximum=None), embedder)

    def texts(self, part: Part) -> Iterable[str]:
        return [message.text for message in part.messages]

    def measure(self, part: Part) -> Measured:
        return Measured(self.vectors[part.messages[-1].text][0], "")


def said(*texts: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text} for text in texts]


def test_without_an_embedder_the_metric_is_skipped_and_says_what_it_needs() -> None:
    for metric in (First(None), TopicDriftMetric(), SemanticRetentionMetric()):
        result = metric.evaluate(said("a", "b"))
        assert (result.state, result.score) == ("skipped", None)
        assert "needs an embedder" in str(result.reasoning)


def test_each_text_is_embedded_once() -> None:
    embedder = Letters()
    assert First(embedder).evaluate(said("aa", "b", "aa")).score == 2
    assert embedder.asked == [["aa", "b"]]


async def test_conversations_side_by_side_do_not_mix() -> None:
    metric = First(Letters())
    results = await asyncio.gather(*(metric.aevaluate(said("b", "a" * n)) for n in range(1, 9)))
    assert [result.score for result in results] == list(range(1, 9))
    assert metric.vectors == {}


def test_the_embedder_is_part_of_what_decides_a_score() -> None:
    assert "letters" in First(Letters()).parameters.values()
    assert First(Letters()).fingerprint != First(None).fingerprint


async def test_an_embedder_that_fails_is_an_error_and_no_score() -> None:
    async with LoopbackServer(lambda _: misbehaviour.status(400)) as server:
        embedder = OpenAIEmbedder("e", base_url=server.base_url)
        result = await TopicDriftMetric(embedder=embedder).aevaluate(said("a", "b"))
        await embedder.close()
    assert (result.state, result.score) == ("error", "error")
    assert result.error is not None
    assert result.error.kind == "http"


def test_an_embedder_that_forgets_a_text_is_an_error() -> None:
    class Forgetful(Letters):
        async def embed(self, texts: Sequence[str]) -> list[Vector]:
            return (await super().embed(texts))[1:]

    result = First(Forgetful()).evaluate(said("a", "b"))
    assert result.error is not None
    assert result.error.message == "letters returned 1 vectors for 2 texts"
    assert ModelFault.blame == result.error.blame


@given(COORDINATES, COORDINATES, st.floats(0.001, 1000))
def test_similarity_is_symmetric_bounded_and_about_direction_only(one: Vector, other: Vector, scale: float) -> None:
    near = similarity(one, other)
    assert -1 <= near <= 1
    assert near == similarity(other, one)
    assert similarity([scale * x for x in one], other) == pytest.approx(near, abs=1e-6)


def test_a_vector_without_a_direction_is_like_nothing() -> None:
    assert similarity([0, 0], [1, 0]) == 0
    assert similarity([2, 0], [5, 0]) == 1
    assert similarity([1, 0], [-1, 0]) == -1


class Broken(Letters):
    """An embedder whose vectors do not compare."""

    def __init__(self, *vectors: Vector) -> None:
        super().__init__()
        self.vectors = list(vectors)

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return self.vectors


@pytest.mark.parametrize("vectors", [([1.0, float("nan")], [1.0, 0.0]), ([1.0, 0.0], [1.0])])
def test_vectors_that_do_not_compare_are_an_error_and_not_alike(vectors: Sequence[Vector]) -> None:
    result = TopicDriftMetric(embedder=Broken(*vectors)).evaluate(said("a", "b"))
    assert result.error is not None
    assert (result.state, result.error.kind) == ("error", "format")
