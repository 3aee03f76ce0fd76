"""Reasons that say the same, in other words: compared by an embedder or by their words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vivavoce.errors import MissingExtra, UsageError
from vivavoce.features.clusters.grouping import group_rows
from vivavoce.features.clusters.words import word_vectors
from vivavoce.models.embedder import EmbedderLike, as_embedder, vectors_of
from vivavoce.pacing.loops import wait_for

WORDS = "words"
"""What stands for comparing by words, in place of the name of an embedder."""
BY_WORDS = 0.20
BY_MEANING = 0.44
"""The mean cosine from which two groups are one; chosen by bench/clusters.py."""
MOST_EMBEDDED = 500
"""Different reasons that the local embedder reads unless it is asked for by name: each takes it some 10 ms."""
MOST_CHARACTERS = 40_000
"""Characters of all of them: it needs longer for long ones, such as those that hold the arguments of tools."""


@dataclass(frozen=True, slots=True)
class Compared:
    """The group of each text, and how they were compared."""

    groups: Sequence[int]
    method: str


def group_texts(texts: Sequence[str], embedder: EmbedderLike | None) -> Compared:
    """Group texts, which come with the most frequent first.

    None means the local embedder where it is installed and there are at most `MOST_EMBEDDED` texts of at
    most `MOST_CHARACTERS` together, otherwise words.

    Raises:
        UsageError: the embedder has no known form, or lacks an address or a key.
        ModelFault: the embedder failed.
    """
    if embedder is not None and embedder != WORDS:
        return _by_meaning(texts, embedder)
    if embedder == WORDS:
        return _by_words(texts, "words")
    if len(texts) > MOST_EMBEDDED:
        return _by_words(texts, f"words: {len(texts):,} different reasons, more than {MOST_EMBEDDED}")
    if (length := sum(map(len, texts))) > MOST_CHARACTERS:
        return _by_words(texts, f"words: reasons of {length:,} characters are more than {MOST_CHARACTERS:,}")
    try:
        opened = as_embedder("local")
    except (MissingExtra, UsageError):
        return _by_words(texts, "words: the local embedder is not installed (vivavoce[embed])")
    return _by_meaning(texts, opened)


def _by_words(texts: Sequence[str], method: str) -> Compared:
    return Compared(group_rows(word_vectors(texts), BY_WORDS), method)


def _by_meaning(texts: Sequence[str], embedder: EmbedderLike) -> Compared:
    import numpy as np

    async def embed() -> tuple[str, Any]:
        opened = as_embedder(embedder)
        try:
            return opened.name, await vectors_of(opened, texts)
        finally:
            if isinstance(embedder, str):
                await opened.close()

    name, rows = wait_for(embed())
    if not texts:
        return Compared([], name)
    vectors = np.array(rows, dtype=np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return Compared(group_rows(vectors / np.maximum(lengths, 1e-12), BY_MEANING), name)
