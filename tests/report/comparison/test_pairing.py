from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from report.cases import BROKEN_JUDGE, FINGERPRINTS, capitals, grade, keep, outcome
from vivavoce.errors import UsageError
from vivavoce.features.compare.markdown import markdown_comparison
from vivavoce.records.run import Outcome
from vivavoce.records.score import Score, failed, skipped
from vivavoce.report.comparison.comparison import Comparison, GraderComparison, Side
from vivavoce.report.comparison.pairing import compare
from vivavoce.stats.paired import paired_difference
from vivavoce.store.store import Store

Scores = Mapping[str, float | Score]


def exact(scores: Scores, **more: Any) -> list[Outcome]:
    return [outcome(sample, {"exact": score}, **more) for sample, score in scores.items()]


async def compare_outcomes(store: Store, a: list[Outcome], b: list[Outcome], **options: Any) -> Comparison:
    first, other = await keep(store, a, "run-a"), await keep(store, b, "run-b")
    return compare(store, first.grading, other.grading, **options)


def only(comparison: Comparison) -> GraderComparison:
    (target,) = comparison.targets
    (grader,) = target.graders
    return grader


async def test_the_numbers_are_those_of_the_paired_test_over_shared_scenarios(store: Store) -> None:
    a, b = {"a": 0.25, "b": 0.5, "c": 1.0, "d": 0.0, "e": 0.5}, {"a": 0.75, "b": 1.0, "c": 0.5, "d": 0.0, "f": 0.5}
    comparison = await compare_outcomes(store, exact(a), exact(b))
    right = paired_difference({k: [v] for k, v in a.items()}, {k: [v] for k, v in b.items()})
    grader = only(comparison)
    assert right is not None
    assert (grader.difference, grader.low, grader.high) == (right.mean, right.low, right.high)
    assert (grader.n, grader.wins, grader.losses, grader.ties, grader.p_value) == (4, 2, 1, 1, right.p_value)
    assert (grader.mean_a, grader.mean_b) == (0.4375, 0.5625)
    target = comparison.targets[0]
    assert (target.matched, target.unmatched_a, target.unmatched_b) == (4, ["e"], ["f"])
    assert (comparison.run_a, comparison.grading_b, comparison.suite_a) == ("run-a", "run-b-g1", "support")


async def test_a_flip_says_both_scores_and_why_the_side_that_failed_did(store: Store) -> None:
    b = {"a": grade(0.5, "said Rome"), "b": grade(1.0, "right now"), "c": 1.0, "d": 0.25}
    grader = only(await compare_outcomes(store, exact({"a": 1.0, "b": 0.0, "c": 1.0, "d": 0.75}), exact(b)))
    (worse,), (better,) = grader.worsened, grader.improved
    assert (worse.sample_a, worse.score_a, worse.score_b, worse.why) == ("a", 1.0, 0.5, "exact: said Rome")
    assert (better.sample_b, better.score_a, better.score_b, better.why) == ("b", 0.0, 1.0, "exact: why")


async def test_a_flip_is_a_score_that_passed_on_one_side_whatever_its_value(store: Store) -> None:
    a = exact({"a": grade(0.75, passed=True), "b": 1.0, "c": grade(1.0, passed=False), "d": 0.25})
    b = exact({"a": grade(0.75, passed=False), "b": grade(0.5, passed=True), "c": grade(0.5, passed=True), "d": 0.75})
    grader = only(await compare_outcomes(store, a, b))
    assert [flip.sample_a for flip in grader.worsened] == ["a"]
    assert [flip.sample_a for flip in grader.improved] == ["c"]
    assert grader.passed == 1


async def test_a_scenario_passes_when_every_trial_with_a_score_does(store: Store) -> None:
    passed, missed = grade(0.75, passed=True), grade(0.75, passed=False)
    a = [outcome("a", {"exact": entry}, trial=i) for i, entry in enumerate([passed, failed(BROKEN_JUDGE)])]
    b = [outcome("a", {"exact": entry}, trial=i) for i, entry in enumerate([passed, missed])]
    grader = only(await compare_outcomes(store, a, b))
    assert (grader.mean_a, grader.mean_b) == (0.75, 0.75)
    assert [flip.sample_a for flip in grader.worsened] == ["a"]


async def test_the_trials_of_a_scenario_are_averaged_and_the_lowest_gives_the_reason(store: Store) -> None:
    a = [outcome("a", {"exact": score}, trial=i) for i, score in enumerate([1.0, 1.0])]
    b = [outcome("a", {"exact": grade(s, f"trial {i}")}, trial=i) for i, s in enumerate([1.0, 0.0, 0.5, 0.5])]
    grader = only(await compare_outcomes(store, a, b))
    assert (grader.n, grader.mean_a, grader.mean_b, grader.difference) == (1, 1.0, 0.5, -0.5)
    assert (grader.low, grader.high, grader.worsened[0].why) == (None, None, "exact: trial 1")


async def test_errors_and_skips_are_counted_on_their_side_and_never_compared(store: Store) -> None:
    a = exact({"a": 1.0, "b": failed(BROKEN_JUDGE), "c": 1.0})
    b = exact({"a": 1.0, "b": 0.0, "c": skipped("no truth")})
    grader = only(await compare_outcomes(store, a, b))
    assert (grader.n, grader.difference) == (1, 0.0)
    assert (grader.a, grader.b) == (Side(scored=2, errors=1, skipped=0), Side(scored=2, errors=0, skipped=1))
    assert not grader.worsened
    assert (grader.broke, grader.fixed) == ([], ["b"])


async def test_a_sample_that_only_breaks_on_b_is_named(store: Store) -> None:
    grader = only(
        await compare_outcomes(store, exact({"a": 1.0, "b": 1.0}), exact({"a": 1.0, "b": failed(BROKEN_JUDGE)}))
    )
    assert (grader.broke, grader.fixed) == (["b"], [])


async def test_where_nothing_is_shared_there_is_no_number(store: Store) -> None:
    grader = only(await compare_outcomes(store, exact({"a": 1.0}), exact({"b": 1.0})))
    assert (grader.n, grader.difference, grader.p_value, grader.mean_a) == (0, None, None, None)


async def test_samples_with_new_ids_are_paired_by_what_they_ask(store: Store) -> None:
    a, b = [outcome("a", {"exact": 1.0}, scenario="x")], [outcome("renamed", {"exact": 0.0}, scenario="x")]
    flip = only(await compare_outcomes(store, a, b)).worsened[0]
    assert (flip.sample_a, flip.sample_b) == ("a", "renamed")


async def test_graders_on_one_side_only_are_named_and_not_compared(store: Store) -> None:
    a = [outcome("a", {"exact": 1.0, "judge": 0.5})]
    b = [outcome("a", {"exact": 1.0, "correctness": capitals()})]
    comparison = await compare_outcomes(store, a, b)
    assert only(comparison).name == "exact"
    assert (comparison.graders_only_a, comparison.graders_only_b) == (["judge"], ["correctness"])


async def test_a_grader_that_changed_is_told_in_words(store: Store) -> None:
    scores = {"exact": 1.0, "judge": 1.0, "plain": 1.0}
    reward = Score(value=1.0)
    first = await keep(store, [outcome("a", scores, reward=reward)], "run-a")
    changed = {**FINGERPRINTS, "judge": "another prompt"}
    other = await keep(store, [outcome("a", scores, reward=reward)], "run-b", fingerprints=changed)
    graders = {grader.name: grader for grader in compare(store, first.grading, other.grading).targets[0].graders}
    assert {name: grader.same_fingerprint for name, grader in graders.items()} == {
        "exact": True,
        "judge": False,
        "plain": False,
        "reward": False,
    }
    assert graders["exact"].note is None
    assert (graders["judge"].note or "").startswith("changed between the two gradings")
    assert graders["plain"].note == "it is unknown whether the grader was the same on both sides"


async def test_the_reward_is_compared_as_a_grader_is(store: Store) -> None:
    a = [outcome("a", {}, reward=Score(value=1.0))]
    b = [outcome("a", {}, reward=Score(value=0.25, reason="too slow"))]
    grader = only(await compare_outcomes(store, a, b))
    assert (grader.name, grader.difference, grader.same_fingerprint) == ("reward", -0.75, True)
    assert grader.worsened[0].why == "reward: too slow"


async def test_a_single_target_on_each_side_is_compared_whatever_the_names(store: Store) -> None:
    comparison = await compare_outcomes(store, exact({"a": 1.0}, target="v1"), exact({"a": 1.0}, target="v2"))
    assert [(target.target_a, target.target_b) for target in comparison.targets] == [("v1", "v2")]
    assert (comparison.targets_only_a, comparison.targets_only_b) == ([], [])


async def test_several_targets_are_compared_by_name(store: Store) -> None:
    a = exact({"a": 1.0}, target="v1") + exact({"a": 0.5}, target="v2")
    b = exact({"a": 0.0}, target="v2") + exact({"a": 0.0}, target="v3")
    comparison = await compare_outcomes(store, a, b)
    assert [(target.target_a, target.target_b) for target in comparison.targets] == [("v2", "v2")]
    assert (only(comparison).mean_a, comparison.targets_only_a, comparison.targets_only_b) == (0.5, ["v1"], ["v3"])


@pytest.mark.parametrize(
    ("options", "pair"),
    [
        ({"target_a": "v1", "target_b": "v3"}, ("v1", "v3")),
        ({"target_a": "v2"}, ("v2", "v2")),
        ({"target_b": "v2"}, ("v2", "v2")),
    ],
)
async def test_targets_can_be_named(store: Store, options: dict[str, str], pair: tuple[str, str]) -> None:
    a = exact({"a": 1.0}, target="v1") + exact({"a": 1.0}, target="v2")
    b = exact({"a": 1.0}, target="v2") + exact({"a": 1.0}, target="v3")
    comparison = await compare_outcomes(store, a, b, **options)
    assert [(target.target_a, target.target_b) for target in comparison.targets] == [pair]
    assert (comparison.targets_only_a, comparison.targets_only_b) == ([], []), "the others were not asked for"


async def test_two_targets_of_one_run_are_no_more_the_same_than_those_of_two(store: Store) -> None:
    graded = await keep(store, exact({"a": 1.0}, target="v1") + exact({"a": 0.0}, target="v2"))
    comparison = compare(store, graded.grading, graded.grading, "v1", "v2")
    assert (comparison.same, only(comparison).difference, comparison.targets_only_a, comparison.targets_only_b) == (
        False,
        -1.0,
        [],
        [],
    )
    assert compare(store, graded.grading, graded.grading).same


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target_a": "v9"}, "no target 'v9' in run run-a; known: v1, v2"),
        ({"target_a": "v1"}, "no target 'v1' in run run-b; known: v3, v4"),
        ({}, "have no common target \\(they have v1, v2 and v3, v4\\); name the two targets to compare: --target-a"),
    ],
)
async def test_a_target_that_is_not_there_is_an_error_that_names_those_that_are(
    store: Store, options: dict[str, str], message: str
) -> None:
    a = exact({"a": 1.0}, target="v1") + exact({"a": 1.0}, target="v2")
    b = exact({"a": 1.0}, target="v3") + exact({"a": 1.0}, target="v4")
    with pytest.raises(UsageError, match=message):
        await compare_outcomes(store, a, b, **options)


async def test_a_comparison_is_plain_data(store: Store) -> None:
    comparison = await compare_outcomes(store, exact({"a": 1.0}), exact({"a": 0.0}))
    assert Comparison.model_validate_json(comparison.model_dump_json()) == comparison


async def test_what_to_know_of_the_two_sides_is_said(store: Store) -> None:
    whole = await keep(store, exact({"a": 1.0}), "run-a")
    part = await keep(store, exact({"a": 0.0}), "run-b", partial_of="run-a")
    other = await keep(store, exact({"a": 0.0}), "run-c", suite="billing")
    assert compare(store, whole.grading, whole.grading).notes == []
    comparison = compare(store, part.grading, whole.grading)
    assert comparison.notes == ["run-b is partial: reruns part of run-a"]
    assert "run-b is partial" in markdown_comparison(comparison)
    assert compare(store, whole.grading, other.grading).notes == ["these are runs of two suites, support and billing"]
