from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from report.trend_cases import PRINTS, SPEC, keep, says
from vivavoce.errors import UsageError
from vivavoce.features.trends.trends import trend
from vivavoce.store.store import Store

LARGE = {**SPEC, "target": {**SPEC["target"], "model_handles": ["large"]}}
OTHER_JUDGE = {**SPEC, "graders": {**SPEC["graders"], "goal": {"kind": "metric", "model": "judge-2"}}}
OTHER_RULES = PRINTS | {"goal": "g2"}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(str(tmp_path / "kept.db")) as opened:
        yield opened


def finding(store: Store, **query: Any) -> str:
    return trend(store, "shop", **query).finding


def test_means_come_with_interval_counts_and_gate_the_oldest_first(store: Store) -> None:
    for number, mean in enumerate((0.8, 0.7)):
        reasons = [{"verdict": "pass" if mean > 0.75 else "fail", "code": "threshold", "graders": {"goal": 1.0}}]
        keep(store, number, says("tone", 1.0), says("goal", mean), reasons=reasons)
    result = trend(store, "shop")
    assert (result.grader, result.target, result.graders, result.targets) == ("goal", None, ["tone", "goal"], ["bot"])
    assert [(point.run, point.mean, point.gate, point.failed) for point in result.points] == [
        ("shop-000", 0.8, 0.75, False),
        ("shop-001", 0.7, 0.75, True),
    ]
    assert result.points[1].low == pytest.approx(0.65)
    assert result.points[1].scored == 10


def test_a_change_of_the_target_is_marked_and_the_line_goes_on(store: Store) -> None:
    for number in range(6):
        keep(store, number, says("goal", 0.9 if number < 3 else 0.7), spec=SPEC if number < 3 else LARGE)
    points = trend(store, "shop").points
    assert [[change.kind for change in point.changes] for point in points] == [[], [], [], ["target"], [], []]
    assert not any(point.breaks for point in points)
    assert points[3].step is not None
    assert points[3].step.sure
    assert finding(store) == "goal fell from 0.90 to 0.70 since run shop-003, when the target changed."


def test_scores_of_other_rules_are_not_joined(store: Store) -> None:
    for number in range(5):
        changed = number >= 2
        keep(
            store,
            number,
            says("goal", 0.9 if not changed else 0.5),
            says("tone", 0.9),
            spec=OTHER_JUDGE if changed else SPEC,
            prints=OTHER_RULES if changed else PRINTS,
        )
    points = trend(store, "shop").points
    assert [point.breaks for point in points] == [False, False, True, False, False]
    assert points[2].step is None
    assert [change.sentence for change in points[2].changes] == ["Metric changed: judge judge-1 → judge-2"]
    assert finding(store) == (
        "goal shows no clear change over 3 runs without a recorded change: 0.50 before, 0.50 now. "
        "Scores before run shop-002 were graded in a different way and are not compared."
    )
    assert not any(point.breaks for point in trend(store, "shop", "tone").points)


def test_a_change_while_a_run_broke_is_not_lost(store: Store) -> None:
    keep(store, 0, says("goal", 0.9))
    keep(store, 1, says("goal", None), prints=OTHER_RULES)
    keep(store, 2, says("goal", 0.8), prints=OTHER_RULES)
    points = trend(store, "shop").points
    assert [(point.mean, point.breaks, len(point.changes)) for point in points] == [
        (0.9, False, 0),
        (None, False, 1),
        (0.8, True, 0),
    ]
    assert points[1].why_unscored == "error, no score"
    assert "1 run of 3 has no score." in finding(store)
    assert "were graded in a different way" in finding(store)


def test_runs_that_do_not_tell_their_rules_are_not_joined(store: Store) -> None:
    for number in range(2):
        keep(store, number, says("goal", 0.5), prints={})
    points = trend(store, "shop").points
    assert ([point.breaks for point in points], [point.changes for point in points]) == ([False, True], [[], []])
    assert "may have been graded in a different way" in finding(store)


@pytest.mark.parametrize(
    ("means", "sentence"),
    [
        ([0.8], "goal is 0.80 (0.75 to 0.85) in run shop-000. One run is too few for a trend."),
        (
            [0.9, 0.7],
            "goal fell from 0.90 to 0.70 over 2 runs without a recorded change. Two runs are too few for a trend.",
        ),
        (
            [0.6, 0.61, 0.9],
            "goal rose from 0.60 to 0.90 over 3 runs without a recorded change, mostly in run shop-002.",
        ),
        ([0.8, 0.82, 0.81], "goal shows no clear change over 3 runs without a recorded change: 0.80 before, 0.81 now."),
        ([None], "No run here has a score of goal."),
        ([None, None], "None of these 2 runs has a score of goal."),
    ],
)
def test_the_finding_says_what_is_known_and_what_is_not(store: Store, means: list[float | None], sentence: str) -> None:
    for number, mean in enumerate(means):
        keep(store, number, says("goal", mean))
    assert finding(store) == sentence


def test_a_mean_without_an_interval_decides_nothing(store: Store) -> None:
    for number in range(3):
        keep(store, number, says("goal", number / 2, half=None))
    assert finding(store).endswith("without intervals it is unknown how certain that is.")


def test_one_run_since_a_change_is_called_too_few(store: Store) -> None:
    for number in range(4):
        keep(store, number, says("goal", 0.9), version="1" if number < 3 else "2")
    assert finding(store).endswith(
        "when vivavoce changed: 0.90 before, 0.90 now. One run since then is too few for a trend."
    )


def test_of_several_targets_one_is_followed(store: Store) -> None:
    keep(store, 0, says("goal", 0.4, target="old"))
    for number in (1, 2):
        keep(store, number, says("goal", 0.8, target="a"), says("goal", 0.6, target="b"))
    result = trend(store, "shop")
    assert (result.target, [point.mean for point in result.points], result.left_out) == ("a", [0.8, 0.8], 1)
    assert [point.mean for point in trend(store, "shop", target="b").points] == [0.6, 0.6]
    assert result.targets == ["a", "b", "old"]


def test_a_suite_with_one_target_at_a_time_is_followed_through_all_of_them(store: Store) -> None:
    for number, name in enumerate(("v1", "v1", "v2")):
        keep(store, number, says("goal", 0.8, target=name))
    result = trend(store, "shop")
    assert ([point.target for point in result.points], result.target) == (["v1", "v1", "v2"], None)
    assert [change.sentence for change in result.points[2].changes] == ["Target changed: v1 → v2"]


def test_runs_from_before_a_grader_was_added_are_left_out(store: Store) -> None:
    keep(store, 0, says("goal", 0.8), prints={"goal": "g1"})
    keep(store, 1, says("goal", 0.8), says("tone", 0.5))
    result = trend(store, "shop", "tone")
    assert ([point.run for point in result.points], result.left_out) == (["shop-001"], 1)


def test_runs_without_a_summary_are_gaps(store: Store) -> None:
    keep(store, 0, says("goal", 0.8))
    keep(store, 1, status="interrupted")
    keep(store, 2, status="running")
    with store.claimed("shop-002"):
        points = trend(store, "shop").points
    assert [(point.mean, point.why_unscored, point.stopped) for point in points[1:]] == [
        (None, "not graded", "interrupted"),
        (None, "still running", None),
    ]


def test_runs_of_which_none_was_graded_have_a_trend_too(store: Store) -> None:
    keep(store, 0, prints={}, status="interrupted")
    result = trend(store, "shop")
    assert (result.grader, result.finding) == (None, "No run here has a score of any grader.")


def test_the_run_before_the_window_tells_what_changed_at_its_first(store: Store) -> None:
    keep(store, 0, says("goal", 0.8))
    keep(store, 1, says("goal", 0.7), spec=LARGE)
    result = trend(store, "shop", limit=1)
    assert ([point.run for point in result.points], result.earlier, result.left_out) == (["shop-001"], "shop-000", 0)
    assert [change.kind for change in result.points[0].changes] == ["target"]


@pytest.mark.parametrize(
    ("query", "complaint"), [({"grader": "gaol"}, "did you mean 'goal'"), ({"target": "x"}, "no target 'x'")]
)
def test_what_no_run_has_is_said(store: Store, query: dict[str, Any], complaint: str) -> None:
    keep(store, 0, says("goal", 0.8))
    with pytest.raises(UsageError, match=complaint):
        trend(store, "shop", **query)


def test_a_part_in_which_no_run_has_the_grader_is_empty(store: Store) -> None:
    keep(store, 0, says("goal", 0.8), says("tone", 0.8))
    keep(store, 1, says("goal", 0.8), prints={"goal": "g1"})
    result = trend(store, "shop", "tone", limit=1)
    assert (result.points, result.left_out, result.finding) == ([], 1, "No run here has a score of tone.")
