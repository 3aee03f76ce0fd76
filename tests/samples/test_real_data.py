"""Every real dataset beside the project is read, and nothing in it is lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from recordings import CONVERSATIONS, RECORDINGS, needs_recordings
from vivavoce.errors import UsageError
from vivavoce.files.rows import read_rows
from vivavoce.messages import dump_messages, load_messages
from vivavoce.samples.rows import check_samples, read_samples

SUITES = RECORDINGS / "letta_evals_suites"
AIRLINE = RECORDINGS / "tau_bench_airline" / "sierra__gpt-4o__airline.jsonl"
DATASETS = sorted(p for p in SUITES.glob("*/*/dataset.*"))

pytestmark = needs_recordings


def test_the_data_is_all_there() -> None:
    assert [path for path in CONVERSATIONS if not path.exists()] == []
    assert len(DATASETS) == 10


@pytest.mark.parametrize("path", CONVERSATIONS, ids=lambda path: path.stem)
def test_recorded_conversations_are_read_without_loss(path: Path) -> None:
    samples = read_samples(path)
    for _, row in read_rows(path):
        sample = next(samples)
        assert sample.messages is not None
        assert [flat(message.to_dict()) for message in sample.messages] == row["messages"]
        assert load_messages(dump_messages(sample.messages)) == sample.messages
        assert (sample.id, sample.goal, sample.labels) == (row["id"], row.get("goal"), row["labels"])
        assert sample.metadata == {**row["metadata"], "source": row["source"]}
    assert list(samples) == []


def flat(message: dict[str, Any]) -> dict[str, Any]:
    calls = message.get("tool_calls")
    if calls is None:
        return message
    calls_written = [(call["id"], call["function"]) for call in calls]
    return {
        **message,
        "tool_calls": [
            {"id": id_, "name": function["name"], "arguments": json.loads(function["arguments"])}
            for id_, function in calls_written
        ],
    }


@pytest.mark.parametrize("path", DATASETS, ids=lambda path: "-".join(path.parts[-3:]))
def test_datasets_of_letta_evals_are_read(path: Path) -> None:
    count = check_samples(path)
    assert count.samples > 0
    assert count.recorded == 0
    rows = [row for _, row in read_rows(path)]
    for sample, row in zip(read_samples(path), rows, strict=True):
        assert sample.input == row["input"]
        assert sample.ground_truth == row.get("ground_truth")
        assert sample.metadata == {}


def test_real_turns_are_graded_one_by_one() -> None:
    count = check_samples(SUITES / "era_d" / "multiturn-per-turn-grading" / "dataset.jsonl")
    assert (count.samples, count.per_turn) == (3, 3)


def test_a_real_rubric_is_read_from_its_file() -> None:
    folder = SUITES / "era_d" / "per-sample-rubric"
    rubrics = [sample.rubric for sample in read_samples(folder / "dataset.jsonl")]
    assert (folder / "rubrics" / "dog.txt").read_text(encoding="utf-8") in rubrics
    assert rubrics.count(None) == 1


def test_the_trials_of_the_airline_tasks_are_found_by_their_fields() -> None:
    fields = {"id": "metadata.task_id", "trial": "metadata.trial", "reference_tool_calls": "labels.expected_actions"}
    assert check_samples(AIRLINE, fields=fields).samples == 200
    keys = {(sample.id, sample.trial) for sample in read_samples(AIRLINE, fields=fields)}
    assert keys == {(str(task), trial) for task in range(50) for trial in range(4)}


def test_tasks_are_asked_where_fields_say_what_to_ask() -> None:
    path = RECORDINGS / "tau_bench_airline" / "tasks.jsonl"
    fields = {"input": "instruction", "reference_tool_calls": "expected_actions"}
    assert check_samples(path, fields=fields).samples == 165
    with pytest.raises(UsageError, match=r"tasks\.jsonl:1 expected_actions: unknown key"):
        check_samples(path)
