"""Groups of vectors that point alike: by average link where they are few, by leaders where they are many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

FEW = 2000
"""Vectors that are compared each with each; beyond it each is compared with the first of every group."""
BLOCK = 512
STRICTER = 0.2
"""Part of the way from the threshold to 1 that a leader asks for more: one reason says less than the mean of a group.
"""


def group_rows(vectors: Any, threshold: float) -> list[int]:
    """Return the group of each row, numbered in the order of their first rows.

    Rows have the length 1 or are zero; a row of zeros is a group of its own. Two groups are one where the mean cosine
    between their rows reaches `threshold`, from 0 to 1. The rows come in the order of their weight: of more than `FEW`
    rows, each joins the most similar earlier leader that reaches a stricter threshold, or leads a group itself, and
    then the `FEW` largest of these groups are joined like rows.
    """
    count = vectors.shape[0]
    if count < 2:
        return list(range(count))
    if count <= FEW:
        return _number_groups(_average_link(vectors, threshold))
    return _number_groups(_join_groups(vectors, _leaders(vectors, threshold + STRICTER * (1 - threshold)), threshold))


def _join_groups(vectors: Any, groups: Sequence[int], threshold: float) -> Sequence[int]:
    """Join groups whose rows have a mean cosine that reaches the threshold: it is that of the means of their rows."""
    import numpy as np
    from scipy.sparse import csr_matrix

    sizes = np.bincount(groups)
    largest = np.argsort(-sizes, kind="stable")[:FEW]
    place = np.full(len(sizes), -1, dtype=np.int64)
    place[largest] = np.arange(len(largest))
    inside = np.flatnonzero(place[groups] >= 0)
    rows = place[groups][inside]
    weights = (1.0 / sizes[largest][rows]).astype(np.float32)
    means = csr_matrix((weights, (rows, inside)), shape=(len(largest), vectors.shape[0])) @ vectors
    joined = np.array(_average_link(means, threshold)) + len(sizes)
    into = np.arange(len(sizes))
    into[largest] = joined
    return into[groups].tolist()


def _average_link(vectors: Any, threshold: float) -> Sequence[int]:
    import numpy as np
    from scipy.cluster import hierarchy
    from scipy.spatial.distance import squareform

    distances = 1.0 - _dense(vectors @ vectors.T).astype(np.float64)
    np.clip(distances, 0.0, 2.0, out=distances)
    np.fill_diagonal(distances, 0.0)
    clustering: Any = hierarchy
    tree = clustering.linkage(squareform((distances + distances.T) / 2, checks=False), method="average")
    return clustering.fcluster(tree, t=1.0 - threshold, criterion="distance").tolist()


def _leaders(vectors: Any, threshold: float) -> Sequence[int]:
    import numpy as np

    count = vectors.shape[0]
    group = np.full(count, -1, dtype=np.int64)
    leaders: list[int] = []
    for start in range(0, count, BLOCK):
        block = vectors[start : start + BLOCK]
        size = block.shape[0]
        best = np.full(size, -1.0, dtype=np.float32)
        mine = np.full(size, -1, dtype=np.int64)
        if leaders:
            similarities = _dense(block @ vectors[leaders].T)
            mine, best = similarities.argmax(axis=1), similarities.max(axis=1)
        within = _dense(block @ block.T)
        for row in range(size):  # a row may lead the later ones of its own block
            if best[row] >= threshold:
                group[start + row] = mine[row]
                continue
            group[start + row] = len(leaders)
            closer = within[row] > best
            best[closer], mine[closer] = within[row][closer], len(leaders)
            leaders.append(start + row)
    return group.tolist()


def _dense(matrix: Any) -> Any:
    return matrix.toarray() if hasattr(matrix, "toarray") else matrix


def _number_groups(groups: Sequence[int]) -> list[int]:
    numbers: dict[int, int] = {}
    return [numbers.setdefault(group, len(numbers)) for group in groups]
