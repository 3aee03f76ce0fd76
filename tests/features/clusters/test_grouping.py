from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from vivavoce.features.clusters import grouping
from vivavoce.features.clusters.grouping import group_rows
from vivavoce.features.clusters.reasons import BY_WORDS
from vivavoce.features.clusters.signatures import mask_details
from vivavoce.features.clusters.words import word_vectors

from .cases import pairs_right, planted_causes


@pytest.mark.parametrize("few", [2000, 2])
def test_directions_apart_are_groups_apart(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouping, "FEW", few)
    monkeypatch.setattr(grouping, "BLOCK", 3)
    angles = np.array([0.0, 1.5, 0.1, 3.0, 1.6, 0.05, 3.05])
    rows = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    assert group_rows(rows, 0.9) == [0, 1, 0, 2, 1, 0, 2]


def test_nothing_and_one_row_are_grouped() -> None:
    assert group_rows(np.zeros((0, 3)), 0.5) == []
    assert group_rows(np.zeros((1, 3)), 0.5) == [0]


def test_a_text_without_a_telling_word_is_alone() -> None:
    assert group_rows(word_vectors(["", "?!", "wrong price", "prices wrong"]), 0.2) == [0, 1, 2, 2]


def test_words_find_most_planted_causes_and_mix_none() -> None:
    causes = planted_causes("held_out")
    texts = [mask_details(text) for texts in causes.values() for text in texts]
    truth = [number for number, texts in enumerate(causes.values()) for _ in texts]
    right, complete = pairs_right(group_rows(word_vectors(texts), 0.2), truth)
    assert right == 1.0
    assert complete >= 0.85


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("no order 4711 for 'Ada'", "no order <id> for <value>"),
        ("GET https://x.example/a?b=1 gave 503", "GET <url> gave <id>"),
        ("it doesn't say that it isn't late", "it doesn't say that it isn't late"),
        ("timeout after 1.5 s", "timeout after <id> s"),
        ("ada@example.org, req-7f3a", "<email>, <id>"),
    ],
)
def test_what_differs_from_case_to_case_is_masked(text: str, left: str) -> None:
    assert mask_details(text) == left


@pytest.mark.parametrize("number", [1900, 5000])
def test_three_phrasings_remain_one_cluster_among_many_that_name_single_cases(number: int) -> None:
    causes = {**planted_causes("chosen"), **planted_causes("held_out")}
    phrased = [(cause, text) for cause, texts in causes.items() for text in texts]
    chance = random.Random(1)
    names = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(4, 9))) for _ in range(3000)]
    truth = [phrased[at % len(phrased)][0] for at in range(number)]
    texts = [f"{phrased[at % len(phrased)][1]} It was {' '.join(chance.choices(names, k=2))}." for at in range(number)]
    groups = group_rows(word_vectors(texts), BY_WORDS)
    result: dict[str, Counter[int]] = {}
    for cause, group in zip(truth, groups, strict=True):
        result.setdefault(cause, Counter())[group] += 1
    whole = [cause for cause, counts in result.items() if max(counts.values()) >= 0.98 * counts.total()]
    assert len(whole) >= len(causes) - 2
    assert len({counts.most_common(1)[0][0] for counts in result.values()}) == len(causes)


def test_many_dense_rows_of_one_direction_are_one_group() -> None:
    chance = np.random.default_rng(1)
    directions = np.eye(40)[:8]
    rows = directions[np.arange(3000) % 8] + 0.12 * chance.standard_normal((3000, 40))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    groups = group_rows(rows.astype(np.float32), 0.3)
    counter = Counter(groups)
    assert sorted(counter.values()) == [375] * 8
    assert [groups[at] for at in range(3000)] == [groups[at % 8] for at in range(3000)]
