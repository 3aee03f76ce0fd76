"""How well and how fast reasons are grouped: `python bench/clusters.py`.

The thresholds are chosen on the causes called `chosen` of tests/report/clusters/planted.json, and the agreement with
the planted causes (adjusted Rand index) is told for those that are held out. Then 20,000 different reasons are grouped.
"""

from __future__ import annotations

import json
import random
import resource
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vivavoce.features.clusters.grouping import group_rows
from vivavoce.features.clusters.reasons import BY_WORDS
from vivavoce.features.clusters.signatures import mask_details
from vivavoce.features.clusters.words import word_vectors
from vivavoce.models.local_embedder import LocalEmbedder
from vivavoce.pacing.loops import wait_for

PLANTED = Path(__file__).parents[1] / "tests" / "report" / "clusters" / "planted.json"
MANY = 20_000


def rand_index(first: list[int], other: list[int]) -> float:
    """Return the adjusted Rand index of two groupings. Source: L. Hubert and P. Arabie, Comparing Partitions (1985)."""
    a, b = np.array(first), np.array(other)
    table = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(table, (a, b), 1)

    def pairs(counts: Any) -> float:
        return float((counts * (counts - 1) / 2).sum())

    both, rows, columns = pairs(table), pairs(table.sum(axis=1)), pairs(table.sum(axis=0))
    chance = rows * columns / pairs(np.array([len(a)]))
    most = (rows + columns) / 2
    return 1.0 if most == chance else (both - chance) / (most - chance)


def build_planted(part: str) -> tuple[list[str], list[int]]:
    """Return reasons and their causes."""
    causes = json.loads(PLANTED.read_text())[part].values()
    return [text for texts in causes for text in texts], [n for n, texts in enumerate(causes) for _ in texts]


def main() -> None:
    """Print the figures."""
    embedder = LocalEmbedder()

    def by_meaning(texts: Sequence[str]) -> Any:
        return np.array(wait_for(embedder.embed(texts)), dtype=np.float32)

    ways: dict[str, Callable[[Sequence[str]], Any]] = {"words": word_vectors, "local": by_meaning}
    for way, vectors in ways.items():
        for part in ("chosen", "held_out"):
            texts, truth = build_planted(part)
            result = vectors([mask_details(text) for text in texts])
            steps = [n / 100 for n in range(4, 80, 4)]
            print(f"{way:6} {part:9}", *(f"{t:.2f}:{rand_index(group_rows(result, t), truth):.2f}" for t in steps))
    chance = random.Random(1)
    words = [f"{a}{b}" for a in ("ban", "cor", "del", "fim", "gor", "hul", "kep", "lam") for b in "abcdefghijklmnopqr"]
    many = list({" ".join(chance.choices(words, k=12)) for _ in range(MANY)})
    start_time = time.process_time()
    groups = group_rows(word_vectors([mask_details(text) for text in many]), BY_WORDS)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    took = time.process_time() - start_time
    print(f"{len(many):,} reasons: {max(groups) + 1:,} groups, {took:.1f} s of CPU, at most {memory:.0f} MB")


if __name__ == "__main__":
    main()
