"""The sides of a comparison, each a graded run or a baseline, and which of their samples are the same scenario."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vivavoce.report.comparison.sides import pair, scenarios_of

SIDES = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from("xyz").map(lambda name: frozenset({name})))


def side(**scenarios: str) -> dict[str, frozenset[str]]:
    return {sample: frozenset({scenario}) for sample, scenario in scenarios.items()}


def test_the_same_scenario_is_paired_whatever_the_ids() -> None:
    pairing = pair(side(a="x", b="y"), side(b="x", c="z"))
    assert (pairing.pairs, pairing.only_a, pairing.only_b) == ((("a", "b"),), ("b",), ("c",))


def test_a_changed_scenario_is_not_paired_though_the_id_is_the_same() -> None:
    assert pair(side(a="x"), side(a="changed")).pairs == ()


def test_samples_that_share_a_scenario_are_paired_by_id() -> None:
    pairing = pair(side(a="x", b="x", c="x"), side(b="x", a="x", d="x"))
    assert (set(pairing.pairs), pairing.only_a, pairing.only_b) == ({("a", "a"), ("b", "b")}, ("c",), ("d",))


def test_the_recorded_trials_of_one_sample_are_one_scenario_together() -> None:
    scenarios = scenarios_of([*"aaaa", "b"], ["talk 0", "talk 1", "talk 0", "talk 1", "alone"])
    assert scenarios == {"a": frozenset({"talk 0", "talk 1"}), "b": "alone"}


@given(SIDES, SIDES)
def test_every_sample_is_in_one_pair_or_left_over(a: dict[str, frozenset[str]], b: dict[str, frozenset[str]]) -> None:
    pairing = pair(a, b)
    assert sorted([*(pair_id for pair_id, _ in pairing.pairs), *pairing.only_a]) == sorted(a)
    assert sorted([*(other for _, other in pairing.pairs), *pairing.only_b]) == sorted(b)
    assert all(a[first] == b[other] for first, other in pairing.pairs)


@given(SIDES, SIDES)
def test_the_order_of_the_sides_does_not_matter(a: dict[str, frozenset[str]], b: dict[str, frozenset[str]]) -> None:
    assert {(other, first) for first, other in pair(a, b).pairs} == set(pair(b, a).pairs)
