"""`EmbeddedMetric`: computes a score from the vectors that an embedder makes of texts."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from copy import copy
from operator import mul
from typing import Unpack

from vivavoce.messages import split_turns
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.measuring import ExactMetric, MeasuringOptions, Part
from vivavoce.metrics.result import MetricResult
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.models.embedder import Embedder, EmbedderLike, Vector, as_embedder, vectors_of
from vivavoce.pacing.loops import wait_for


class EmbeddedMetric(ExactMetric):
    """An exact metric over vectors: a subclass names the `texts` that it needs, and reads `vectors` in `measure`.

    Every text is embedded once per conversation. Without an embedder the metric is skipped: equal words
    are not a substitute for equal meaning.
    """

    waits = True

    def __init__(
        self, config: MetricConfig, embedder: EmbedderLike | None, **options: Unpack[MeasuringOptions]
    ) -> None:
        super().__init__(config, **options)
        self.embedder: Embedder | None = None if embedder is None else as_embedder(embedder)
        self.vectors: Mapping[str, Vector] = {}

    @abstractmethod
    def texts(self, part: Part) -> Iterable[str]:
        """Return the texts whose vectors `measure` needs."""

    @property
    def parameters(self) -> Mapping[str, object]:
        """The embedder."""
        return {"embedder": None if self.embedder is None else self.embedder.name}

    def evaluate_conversation(self, evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
        """Measure a conversation."""
        return wait_for(self.aevaluate_conversation(evaluation_input))

    async def aevaluate_conversation(self, evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
        """Embed what is needed, and measure.

        Raises:
            ModelFault: the embedder failed, or its vectors do not compare.
        """
        if self.embedder is None:
            return self.skipped("needs an embedder: embedder='local', or the name of a model such as openai:NAME")
        opening, turns = split_turns(evaluation_input.messages)
        whole = Part(evaluation_input, turns, 0, opening)
        texts = list(dict.fromkeys(text for text in self.texts(whole)))
        vectors = await vectors_of(self.embedder, texts)
        ready = copy(self)  # conversations are measured side by side
        ready.vectors = dict(zip(texts, vectors, strict=True))
        return super(EmbeddedMetric, ready).evaluate_conversation(evaluation_input)

    async def close(self) -> None:
        """Close the connections of the embedder."""
        if self.embedder is not None:
            await self.embedder.close()


def similarity(a: Vector, b: Vector) -> float:
    """Return the cosine of the angle between two vectors, from -1 to 1; 0 where one of them has no direction."""
    dot = math.fsum(map(mul, a, b))
    lengths = math.hypot(*a) * math.hypot(*b)
    return max(-1.0, min(1.0, dot / lengths)) if lengths else 0.0
