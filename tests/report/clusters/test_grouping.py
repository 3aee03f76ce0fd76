from __future__ import annotations

import numpy as np
import pytest

from vivavoce.report.clusters import grouping
from vivavoce.report.clusters.grouping import grouped
from vivavoce.report.clusters.signatures import masked
from vivavoce.report.clusters.words import word_vectors

from .cases import pairs_right, planted


@pytest.mark.parametrize("few", [2000, 2])
def test_directions_apart_are_groups_apart(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouping, "FEW", few)
    monkeypatch.setattr(grouping, "BLOCK", 3)
    angles = np.array([0.0, 1.5, 0.1, 3.0, 1.6, 0.05, 3.05])
    rows = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    assert grouped(rows, 0.9) == [0, 1, 0, 2, 1, 0, 2]


def test_nothing_and_one_row_are_grouped() -> None:
    assert grouped(np.zeros((0, 3)), 0.5) == []
    assert grouped(np.zeros((1, 3)), 0.5) == [0]


def test_a_text_without_a_telling_word_is_alone() -> None:
    assert grouped(word_vectors(["", "?!", "wrong price", "prices wrong"]), 0.2) == [0, 1, 2, 2]


def test_words_find_most_planted_causes_and_mix_none() -> None:
    causes = planted("held_out")
    texts = [masked(text) for texts in causes.values() for text in texts]
    truth = [number for number, texts in enumerate(causes.values()) for _ in texts]
    right, complete = pairs_right(grouped(word_vectors(texts), 0.2), truth)
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
    assert masked(text) == left
