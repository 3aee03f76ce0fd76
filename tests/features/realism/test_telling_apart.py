from __future__ import annotations

import numpy as np

from features.realism.talks import side, users
from vivavoce.features.realism.measuring import Both
from vivavoce.features.realism.reading import UserSides
from vivavoce.features.realism.telling_apart import (
    EMBEDDED,
    FIRST_WORDS,
    by_manner,
    by_meaning,
    chosen_for_meaning,
    text_to_embed,
)


def test_another_topic_is_told_by_meaning_and_not_by_manner() -> None:
    both = Both(users("a", 60, 1), users("b", 60, 2))
    assert by_manner(both).apart.can_tell is False
    draw = np.random.default_rng(1)
    topics = draw.normal(size=(120, 32))
    topics[:60, 0] += 4
    topics /= np.linalg.norm(topics, axis=1, keepdims=True)
    result = by_meaning(both, chosen_for_meaning(both), topics)
    assert result.by == "manner and meaning"
    assert result.can_tell is True


def test_vectors_that_mean_nothing_tell_nothing() -> None:
    both = Both(users("a", 60, 1), users("b", 60, 2))
    noise = np.random.default_rng(2).normal(size=(120, 384)) / np.sqrt(384)
    assert by_meaning(both, chosen_for_meaning(both), noise).can_tell is False


def test_of_many_conversations_some_of_each_side_are_read_each_time_the_same() -> None:
    many = UserSides("logs", [side(f"order {place}") for place in range(EMBEDDED + 50)])
    both = Both(users("a", 10), many)
    is_selected = chosen_for_meaning(both)
    assert (int(is_selected[both.is_simulated].sum()), int(is_selected[~both.is_simulated].sum())) == (10, EMBEDDED)
    assert is_selected.tolist() == chosen_for_meaning(both).tolist()


def test_the_beginning_of_what_a_user_says_is_read() -> None:
    assert text_to_embed(["one\ntwo", "three"]) == "one two three"
    assert len(text_to_embed(["word " * 500]).split()) == FIRST_WORDS


def test_the_same_words_on_both_sides_do_not_help_to_tell_them_apart() -> None:
    mixed = [*users("a", 30, 1).sides, *users("a", 30, 2).sides]
    both = Both(UserSides("a", mixed[:45]), UserSides("b", [*mixed[30:], *users("b", 30, 3).sides]))
    assert both.same == 15
    assert by_manner(both).apart.can_tell is False
