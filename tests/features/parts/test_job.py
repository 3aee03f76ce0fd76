"""A job in a folder: begun once, and gone on with by the same command."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from vivavoce.errors import UsageError
from vivavoce.features.parts.job import FILE, job_of, kept_job, read_job
from vivavoce.files.places import Folder
from vivavoce.run.options import RunOptions
from vivavoce.suites.load import described_suite

from .cases import begun, suite, write_jsonl, write_parquet


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(str(tmp_path / "out"))


def test_the_same_command_goes_on_with_the_same_run(folder: Folder) -> None:
    write_jsonl(Path("a.jsonl"), range(5))
    first, second = begun(folder, ["a.jsonl"]), begun(folder, ["a.jsonl"])
    assert first == second == read_job(folder)


def test_new_files_are_added_at_the_end(folder: Folder) -> None:
    write_jsonl(Path("b.jsonl"), range(5))
    first = begun(folder, ["*.jsonl"])
    write_jsonl(Path("a.jsonl"), range(5, 8))
    second = begun(folder, ["*.jsonl"])
    assert [Path(one.place).name for one in second.files] == ["b.jsonl", "a.jsonl"]
    assert [part.name for part in second.parts][: len(first.parts)] == [part.name for part in first.parts]
    assert second.run_id == first.run_id


def test_a_file_that_changed_is_refused(folder: Folder) -> None:
    write_jsonl(Path("a.jsonl"), range(5))
    begun(folder, ["a.jsonl"])
    write_jsonl(Path("a.jsonl"), range(6))
    with pytest.raises(UsageError, match=r"a\.jsonl has changed since .*out was started"):
        begun(folder, ["a.jsonl"])


def test_a_broken_file_may_be_replaced(folder: Folder) -> None:
    Path("a.parquet").write_text("broken", "utf-8")
    assert begun(folder, ["a.parquet"]).parts == []
    write_parquet(Path("a.parquet"), range(3))
    assert begun(folder, ["a.parquet"]).rows == 3


def test_other_graders_are_refused(folder: Folder) -> None:
    write_jsonl(Path("a.jsonl"), range(5))
    begun(folder, ["a.jsonl"])
    with pytest.raises(UsageError, match="was started by a command that differs in its graders"):
        begun(folder, ["a.jsonl"], metrics="repetition")


def test_a_folder_with_other_files_is_refused(folder: Folder) -> None:
    write_jsonl(Path("a.jsonl"), range(5))
    folder.write("notes.txt", b"mine")
    with pytest.raises(UsageError, match=rf"is not empty and has no {FILE}"):
        begun(folder, ["a.jsonl"])


def test_a_newer_job_is_refused(folder: Folder) -> None:
    write_jsonl(Path("a.jsonl"), range(5))
    job = begun(folder, ["a.jsonl"])
    folder.write(FILE, job.model_copy(update={"vivavoce_job": 99}).model_dump_json().encode())
    with pytest.raises(UsageError, match="by a newer vivavoce"):
        read_job(folder)
    folder.write(FILE, b"{}")
    with pytest.raises(UsageError, match=rf"{FILE}: .*run_id"):
        read_job(folder)


def test_positions_leave_room_for_every_target_and_trial(folder: Folder) -> None:
    write_jsonl(Path("a.jsonl"), range(5))
    data: dict[str, Any] = {
        "name": "two",
        "dataset": "a.jsonl",
        "targets": [{"kind": "function", "function": f"bot.py:{name}"} for name in ("one", "two")],
        "graders": {"said": {"kind": "function", "function": "contains"}},
    }
    made = job_of(described_suite(data, Path.cwd(), "test"), ["a.jsonl"], RunOptions(trials=3), rows=2)
    assert [part.position for part in made.parts] == [0, 12, 24]


@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        ("setup_script", "bot.py:begin", "setup_script"),
        ("max_samples", 3, "max_samples and sample_tags"),
        ("sample_tags", ["x"], "max_samples and sample_tags"),
    ],
)
def test_what_concerns_the_whole_dataset_is_refused(key: str, value: object, rule: str) -> None:
    write_jsonl(Path("a.jsonl"), range(5))
    graders = {"refusal": {"kind": "metric", "metric": "refusal"}}
    data: dict[str, Any] = {"name": "x", "dataset": "a.jsonl", "driver": "replay", "graders": graders, key: value}
    with pytest.raises(UsageError, match=rule):
        job_of(described_suite(data, Path.cwd(), "test"), ["a.jsonl"], RunOptions())


def test_workers_share_the_conversations_that_a_target_takes(folder: Folder) -> None:
    write_jsonl(Path("a.jsonl"), range(5))
    target = {"kind": "function", "function": "bot.py:one", "max_concurrent": 6}
    graders = {"said": {"kind": "function", "function": "contains"}}
    data: dict[str, Any] = {"name": "x", "dataset": "a.jsonl", "target": target, "graders": graders}
    described = described_suite(data, Path.cwd(), "test")
    made = kept_job(folder, job_of(described, ["a.jsonl"], RunOptions(max_concurrent=20)))
    on = made.suite_on(Path("rows.jsonl"), 4)
    assert on.spec.target is not None
    assert (on.spec.max_concurrent, on.spec.target.max_concurrent, made.most_workers) == (5, 1, 6)
    again = kept_job(folder, job_of(described, ["a.jsonl"], RunOptions(max_concurrent=3)))
    assert (again.run_id, again.max_concurrent, again.most_workers) == (made.run_id, 3, 3)


def test_workers_share_rates_and_concurrency(folder: Folder) -> None:
    write_jsonl(Path("a.jsonl"), range(5))
    made = suite("{metric: coherence, requests_per_minute: 120}", "openai:gpt-4.1-mini")
    on = job_of(made, ["a.jsonl"], RunOptions()).suite_on(Path("rows.jsonl"), 4)
    (grader,) = on.spec.graders.values()
    assert getattr(grader, "requests_per_minute", None) == 30
    assert on.spec.max_concurrent == 16
    assert on.spec.dataset.path == os.fspath("rows.jsonl")
