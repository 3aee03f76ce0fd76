"""A graded run in the files that letta-evals writes, for programs that read those."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from vivavoce.errors import UsageError
from vivavoce.messages import SystemMessage
from vivavoce.records.run import Outcome
from vivavoce.records.score import Score, failed, skipped
from vivavoce.report.letta_files import Model, sample_result, write_letta_layout
from vivavoce.store.store import Store

from .cases import BROKEN_JUDGE, TIMEOUT, capitals, grade, keep, outcome


async def write(store: Store, outcomes: list[Outcome], folder: Path, name: str = "run-1") -> None:
    graded = await keep(store, outcomes, name)
    write_letta_layout(store, graded.run, graded.grading, folder)


def rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


async def test_per_turn_grades_are_in_the_metadata_and_beside_it(store: Store, tmp_path: Path) -> None:
    await write(store, [outcome("capitals", {"correctness": capitals()})], tmp_path / "out")
    (row,) = rows(tmp_path / "out" / "bot.jsonl")
    turn_grades = row["grades"]["correctness"]
    assert (round(turn_grades["score"], 4), turn_grades["state"], turn_grades["rationale"]) == (
        0.6667,
        "scored",
        "2/3 turns passed",
    )
    assert (turn_grades["metadata"]["turns_passed"], turn_grades["metadata"]["turns_total"]) == (2, 3)
    for turns in (turn_grades["metadata"]["per_turn_grades"], turn_grades["per_turn_grades"]):
        assert [turn["turn"] for turn in turns] == [0, 1, 2]
        assert [turn["score"] for turn in turns] == [1.0, 1.0, 0.0]
        assert [turn["ground_truth"] for turn in turns] == ["Paris", "Berlin", "Rome"]
        assert (turns[2]["submission"], turns[2]["rationale"]) == ("Madrid", "turn 2")
    assert row["submissions"]["correctness"] == "[Turn 0] Paris | [Turn 1] It is Berlin. | [Turn 2] Madrid"


async def test_a_row_holds_the_conversation_turn_by_turn_and_what_it_took(store: Store, tmp_path: Path) -> None:
    first_outcome = outcome(
        texts=["Paris", "Berlin"], grades={"exact": grade(1, submission="Berlin")}, reward=Score(value=0.5)
    )
    await write(store, [first_outcome], tmp_path / "out")
    (row,) = rows(tmp_path / "out" / "bot.jsonl")
    assert (row["sample_id"], row["model_handle"], row["agent_id"]) == ("one", "bot", "session")
    messages = [(message["message_type"], message["content"]) for message in row["trajectory"][1]]
    assert messages == [("user_message", "Hi"), ("assistant_message", "Berlin")]
    assert (row["submissions"], row["reward"]) == ({"exact": "Berlin"}, {"score": 0.5, "metadata": {}})
    assert row["usage"] == {
        "prompt_tokens": 6,
        "completion_tokens": 4,
        "cached_input_tokens": 0,
        "reasoning_tokens": 0,
    }
    assert row["timing"] == {"total": 1.5, "target": 1.5}
    assert "error" not in row


def test_what_stands_before_the_first_user_message_belongs_to_the_first_turn() -> None:
    only_outcome = outcome(texts=["Paris"])
    talk = only_outcome.attempt.trajectory.model_copy(update={"opening": [SystemMessage(content="Be kind.")]})
    opened = only_outcome.model_copy(update={"attempt": only_outcome.attempt.model_copy(update={"trajectory": talk})})
    kinds = [[message["message_type"] for message in turn] for turn in sample_result(opened)["trajectory"]]
    assert kinds == [["system_message", "user_message", "assistant_message"]]


@pytest.mark.parametrize(
    ("failed_outcome", "error"),
    [
        (
            outcome(grades={"exact": failed(TIMEOUT)}, failure=TIMEOUT),
            {"category": "target", "exception_type": "timeout", "message": "no answer within 5 s"},
        ),
        (
            outcome(grades={"exact": 1.0, "judge": failed(BROKEN_JUDGE)}),
            {"category": "grading", "exception_type": "ValueError", "message": "judge: no verdict"},
        ),
        (
            outcome(reward=Score(state="error", reason="no number", failure=BROKEN_JUDGE)),
            {"category": "reward", "exception_type": "ValueError", "message": "no number"},
        ),
        (
            outcome(grades={}, failure=TIMEOUT.model_copy(update={"blame": "suite"})),
            {"category": "unknown", "exception_type": "timeout", "message": "no answer within 5 s"},
        ),
    ],
)
def test_an_error_says_in_which_part_it_happened(failed_outcome: Outcome, error: dict[str, str]) -> None:
    assert sample_result(failed_outcome)["error"] == error


def test_an_error_and_a_skip_are_not_a_score_of_zero() -> None:
    row = sample_result(outcome(grades={"judge": failed(BROKEN_JUDGE), "exact": skipped("no truth")}))
    grades = row["unscored"]
    assert row["grades"] == {}
    assert (grades["judge"]["score"], grades["judge"]["state"]) == (None, "error")
    assert grades["judge"]["metadata"]["error"] == "judge: no verdict"
    assert (grades["exact"]["score"], grades["exact"]["state"]) == (None, "skipped")


async def test_the_suite_is_written_with_each_sample_once(store: Store, tmp_path: Path) -> None:
    outcomes = [outcome(name, target=target) for name in ("a", "b") for target in ("v1", "v2")]
    await write(store, outcomes, tmp_path / "out")
    suite = json.loads((tmp_path / "out" / "suite.json").read_text())
    assert (suite["suite"], suite["config"]["gate"]["metric_key"]) == ("support", "exact")
    assert suite["samples"] == [{"id": "a", "input": "Hi"}, {"id": "b", "input": "Hi"}]
    assert files(tmp_path / "out") == ["suite.json", "summary.json", "v1.jsonl", "v2.jsonl"]


async def test_several_trials_are_files_in_a_folder_of_the_target(store: Store, tmp_path: Path) -> None:
    outcomes = [outcome(name, {"exact": float(trial)}, trial=trial) for trial in (0, 1) for name in ("a", "b")]
    await write(store, outcomes, tmp_path / "out")
    assert files(tmp_path / "out") == [
        "bot/run_1.jsonl",
        "bot/run_2.jsonl",
        "bot/summary.json",
        "suite.json",
        "summary.json",
    ]
    second = rows(tmp_path / "out" / "bot" / "run_2.jsonl")
    assert [(row["sample_id"], row["grades"]["exact"]["score"]) for row in second] == [("a", 1.0), ("b", 1.0)]
    own = json.loads((tmp_path / "out" / "bot" / "summary.json").read_text())
    assert [run["per_metric"]["exact"] for run in own["runs"]] == [0.0, 1.0]
    (top,) = json.loads((tmp_path / "out" / "summary.json").read_text())["models"]
    assert (top["model"], top["n_total"], top["per_metric"], "runs" in top) == ("bot", 4, {"exact": 0.5}, False)


@pytest.mark.parametrize("trials", [1, 2])
async def test_targets_never_share_a_file_nor_leave_the_folder(store: Store, tmp_path: Path, trials: int) -> None:
    targets = ["a/b", "a-b", "../../out", "suite.json", "0~0~"]
    outcomes = [outcome("s", target=target, trial=trial) for target in targets for trial in range(trials)]
    await write(store, outcomes, tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == ["out", "store"]
    handles = [row["model_handle"] for file in (tmp_path / "out").rglob("*.jsonl") for row in rows(file)]
    assert sorted(handles) == sorted(targets * trials)
    assert json.loads((tmp_path / "out" / "suite.json").read_text())["suite"] == "support"


async def test_an_existing_folder_keeps_the_files_of_others_and_gets_ours_anew(store: Store, tmp_path: Path) -> None:
    await write(store, [outcome("old")], tmp_path / "out")
    (tmp_path / "out" / "notes.txt").write_text("mine")
    await write(store, [outcome("new")], tmp_path / "out", "run-2")
    assert [row["sample_id"] for row in rows(tmp_path / "out" / "bot.jsonl")] == ["new"]
    assert (tmp_path / "out" / "notes.txt").read_text() == "mine"


async def test_nothing_is_written_when_something_goes_wrong_on_the_way(store: Store, tmp_path: Path) -> None:
    good = outcome("good")
    bad = good.model_copy(update={"attempt": good.attempt.model_copy(update={"sample": "{broken"})})
    renamed = bad.attempt.model_copy(update={"key": bad.attempt.key._replace(sample_id="bad")})
    with pytest.raises(ValueError, match="Expecting"):
        await write(store, [good, bad.model_copy(update={"attempt": renamed})], tmp_path / "out")
    assert os.listdir(tmp_path) == ["store"]


async def test_a_place_that_cannot_be_written_is_one_line_for_the_user(store: Store, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        await write(store, [outcome()], tmp_path / "file")
    assert sorted(os.listdir(tmp_path)) == ["file", "store"]


def summary(outcomes: Iterable[Outcome], *, with_runs: bool = False) -> dict[str, Any]:
    model = Model("bot", 0)
    for each in outcomes:
        model.add(each)
    return model.summary(with_runs=with_runs)


def test_errors_and_skips_are_counted_and_are_in_no_mean() -> None:
    figures = summary(
        [
            outcome("a", {"exact": 1.0, "judge": 0.5}, reward=Score(value=0.75)),
            outcome("b", {"exact": 0.0, "judge": skipped("no judge")}, reward=Score(value=0.25)),
            outcome("c", {"exact": failed(TIMEOUT)}, failure=TIMEOUT, reward=Score(state="error", failure=TIMEOUT)),
        ]
    )
    assert (figures["model"], figures["n_total"], figures["n_attempted"], figures["reward"]) == ("bot", 3, 2, 0.5)
    assert figures["per_metric"] == {"exact": 0.5, "judge": 0.5}
    assert figures["per_metric_states"] == {"exact": {"scored": 2, "error": 1}, "judge": {"scored": 1, "skipped": 1}}
    assert figures["errors"] == {
        "total_errors": 1,
        "by_category": {"target": 1},
        "by_exception_type": {"timeout": 1},
    }


def test_usage_is_added_up_and_times_are_told_by_mean_and_percentiles() -> None:
    figures = summary([outcome("a", texts=["x", "y"]), outcome("b")])
    assert (figures["usage"]["prompt_tokens"], figures["usage"]["completion_tokens"]) == (9, 6)
    assert "cost" not in figures["usage"]
    assert figures["timing"] == {"mean_total": 1.5, "mean_target": 1.5, "p50_total": 1.5, "p95_total": 1.5}


def test_the_deviations_are_those_of_the_means_of_the_trials() -> None:
    outcomes = [
        outcome(name, {"exact": score}, trial=trial, reward=Score(value=score))
        for trial, scores in enumerate([(0.0, 1.0), (1.0, 1.0)])
        for name, score in zip("ab", scores, strict=True)
    ]
    figures = summary(outcomes, with_runs=True)
    assert figures["reward_std"] == figures["per_metric_std"]["exact"] == pytest.approx(0.5**0.5 / 2)
    assert [(run["run"], run["reward"], run["n_total"]) for run in figures["runs"]] == [(1, 0.5, 2), (2, 1.0, 2)]


def test_one_trial_has_no_deviation_and_no_conversation_no_means() -> None:
    assert "reward_std" not in summary([outcome()])
    empty = summary([])
    assert (empty["n_total"], empty["reward"], empty["timing"]["mean_total"]) == (0, None, 0.0)


def test_a_grader_without_any_score_has_no_mean_in_no_trial() -> None:
    outcomes = [outcome("a", {"exact": 1.0, "judge": skipped("no judge")}, trial=trial) for trial in (0, 1)]
    figures = summary(outcomes, with_runs=True)
    assert figures["per_metric"] == {"exact": 1.0}
    assert figures["per_metric_states"]["judge"] == {"skipped": 2}
    assert [run["per_metric"] for run in figures["runs"]] == [{"exact": 1.0}, {"exact": 1.0}]
    assert figures["per_metric_std"] == {"exact": 0.0}
