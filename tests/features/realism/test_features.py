from __future__ import annotations

import numpy as np
import pytest

from features.realism.talks import side
from vivavoce.features.realism.features import FEATURES, measure
from vivavoce.features.realism.user_side import UserSide

OF = {feature.key: feature.of for feature in FEATURES}


def value(key: str, side: UserSide) -> float | None:
    return OF[key](side)


@pytest.mark.parametrize(
    ("key", "messages", "expected"),
    [
        ("messages", ["a b c", "d"], 2),
        ("words", ["one two three", "four"], 2),
        ("words", ["don't do that"], 3),
        ("words", ["東京まで"], 4),
        ("first_words", ["one two three", "four"], 3),
        ("sentence_words", ["One two. Three four five six."], 3),
        ("unevenness", ["one two three", "one"], 0.5),
        ("unevenness", ["one"], None),
        ("questions", ["Where is it?", "ok"], 0.5),
        ("details", ["I am Ada and want order 4711", "order 4711"], 1),
        ("at_once", ["Order 4711 for Ada", "it is 0815"], 2 / 3),
        ("at_once", ["my lamp"], None),
        ("new_words", ["the lamp", "the lamp is broken"], 2),
        ("new_words", ["the lamp"], None),
        ("repeats", ["where is my lamp now", "where is my lamp now"], 0.5),
        ("repeats", ["yes", "yes"], None),
        ("capitals", ["My lamp", "it is late", "4711"], 0.5),
        ("capitals", ["東京"], None),
        ("stops", ["My lamp.", "late", 'he said "no!"'], 2 / 3),
        ("punctuation", ["a, b: c d"], 50),
        ("exclamations", ["Now!", "please"], 0.5),
        ("layout", ["- one\n- two", "three"], 0.5),
        ("closes", ["My lamp is late", "Thanks, bye"], 1),
        ("jargon", ["Thank you. ###STOP###", "My lamp"], 0.5),
    ],
)
def test_a_feature_is_what_its_definition_says(key: str, messages: list[str], expected: float | None) -> None:
    assert value(key, side(*messages)) == (None if expected is None else pytest.approx(expected))


def test_a_detail_that_the_assistant_told_is_not_new() -> None:
    assert value("details", side("hello", "yes, 4711", answer="Is it order 4711?")) == 0


def test_words_taken_from_the_answer_are_counted_and_short_ones_are_not() -> None:
    user = side("hello", "the order number is on the parcel", answer="Tell me the order number")
    assert value("taken_up", user) == pytest.approx(2 / 3)  # order and number of order, number, parcel
    assert value("taken_up", side("hello")) is None


def test_a_question_left_open_is_one_of_the_assistant_at_the_end() -> None:
    assert value("leaves_open", side("hello", answer="Which one?")) == 1
    assert value("leaves_open", side("hello", answer="Done.")) == 0


def test_what_needs_english_words_is_measured_in_english_alone() -> None:
    rows = measure([side("please help"), side("bitte Hilfe")], [True, False])
    needs = np.array([feature.english for feature in FEATURES])
    assert needs.sum() == 10
    assert np.isnan(rows[1][needs]).all()
    assert not np.isnan(rows[0][needs]).any()


def test_each_feature_has_a_name_and_a_definition_of_its_own() -> None:
    assert len({feature.key for feature in FEATURES}) == len({feature.name for feature in FEATURES}) == len(FEATURES)
    assert all(feature.what and feature.unit in ("count", "share", "ratio") for feature in FEATURES)
