from __future__ import annotations

import numpy as np
import pytest

from features.realism.talks import users
from vivavoce.features.realism.features import FEATURES
from vivavoce.features.realism.kinds import MIN_CONVERSATIONS, MIN_SHARE, find_kinds, kinds_of
from vivavoce.features.realism.measuring import Both
from vivavoce.features.realism.reading import UserSides

PLACE = {feature.key: place for place, feature in enumerate(FEATURES)}


def test_users_who_write_unlike_each_other_are_kinds_of_their_own() -> None:
    brief, wordy = users("b", 80, 1, words=3, turns=(1, 2)), users("w", 40, 2, words=30, turns=(6, 7))
    both = Both(UserSides("both", [*brief.sides, *wordy.sides]), UserSides("both", [*brief.sides, *wordy.sides]))
    kinds = find_kinds(both.rows[:120])
    assert kinds is not None
    of = kinds.nearest(both.rows[:120])
    assert not set(of[:80]) & set(of[80:])
    assert np.bincount(of).min() >= MIN_SHARE * 120


def test_equal_rows_are_no_kinds_and_few_are_not_looked_at() -> None:
    assert find_kinds(np.ones((50, len(FEATURES)))) is None
    assert find_kinds(np.random.default_rng(1).normal(size=(MIN_CONVERSATIONS - 1, len(FEATURES)))) is None


def test_a_feature_that_nobody_has_makes_no_kind() -> None:
    rows = np.abs(np.random.default_rng(1).normal(size=(60, len(FEATURES))))
    rows[:, PLACE["at_once"]] = np.nan
    kinds = find_kinds(rows)
    assert kinds is not None
    assert kinds.nearest(rows).tolist() == find_kinds(rows).nearest(rows).tolist()  # pyright: ignore[reportOptionalMemberAccess]


def test_the_largest_kind_comes_first_and_shares_are_of_each_side() -> None:
    brief, wordy = users("b", 80, 1, words=3, turns=(1, 2)), users("w", 40, 2, words=30, turns=(6, 7))
    kinds = kinds_of(Both(users("a", 30, 3, words=30, turns=(6, 7)), UserSides("logs", [*brief.sides, *wordy.sides])))
    shares = [kind.real for kind in kinds]
    assert shares == sorted(shares, reverse=True)
    assert sum(kind.simulated for kind in kinds) == pytest.approx(1)
    assert not kinds[0].simulated
    assert kinds[0].rarer
