"""The parts of a job as one run of a store."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from vivavoce.errors import UsageError
from vivavoce.features.parts.job import FILE
from vivavoce.features.parts.merging import merge
from vivavoce.features.parts.part_file import SUFFIX
from vivavoce.features.parts.work import Share, Worker
from vivavoce.files.places import Folder
from vivavoce.run.summary import RunResult
from vivavoce.store.store import Store
from vivavoce.testing import LoopbackServer
from vivavoce.testing.misbehaviour import status

from .cases import begun, worked, write_jsonl


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(str(tmp_path / "out"))


def merged(folder: Folder, store: str = "all.db") -> RunResult:
    with Store.open(store) as opened:
        return merge(folder, opened, lambda done, total: None)


def test_all_parts_make_one_run(folder: Folder, tmp_path: Path) -> None:
    job = begun(folder, [str(write_jsonl(tmp_path / "a.jsonl", range(10)))])
    worked(job, folder, tmp_path / "scratch")
    result = merged(folder)
    assert (result.run.id, result.run.status, result.summary.attempts) == (job.run_id, "finished", 10)
    assert result.summary.grader("refusal").pass_rate == pytest.approx(8 / 10)
    assert [one.attempt.key.sample_id for one in result.outcomes()] == [f"r{at}" for at in range(10)]
    assert result.run.options["planned"] == 10
    again = merged(folder)
    assert (again.summary, again.run.started_at) == (result.summary, result.run.started_at)


def test_without_all_parts_the_run_is_interrupted_and_completed_later(folder: Folder, tmp_path: Path) -> None:
    job = begun(folder, [str(write_jsonl(tmp_path / "a.jsonl", range(10)))])
    done = worked(job, folder, tmp_path / "scratch")
    last = Path(folder.place) / f"{done[-1].name}{SUFFIX}"
    kept = last.read_bytes()
    last.unlink()
    result = merged(folder)
    assert (result.run.status, result.summary.attempts, result.exit_code) == ("interrupted", 8, 3)
    assert result.stopped_by == "1 part left to do"
    last.write_bytes(kept)
    result = merged(folder)
    assert (result.run.status, result.summary.attempts, result.stopped_by) == ("finished", 10, None)


def test_one_id_in_two_parts_is_refused(folder: Folder, tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", [0, 1, 2, 0])
    job = begun(folder, [str(path)], rows=2)
    worked(job, folder, tmp_path / "scratch")
    with pytest.raises(UsageError, match="'r0' is in part-00000-00000 and in part-00000-00001: each row"):
        merged(folder)


def test_parts_that_were_graded_otherwise_are_refused(folder: Folder, tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", range(4))
    job = begun(folder, [str(path)], rows=2)
    worked(job, folder, tmp_path / "scratch")
    other = Folder(str(tmp_path / "other"))
    strict = begun(other, [str(path)], rows=2, metrics="{metric: refusal, threshold: 0.9}")
    worked(strict, other, tmp_path / "scratch")
    folder.write(f"part-00000-00001{SUFFIX}", other.read(f"part-00000-00001{SUFFIX}"))
    with pytest.raises(UsageError, match="part-00000-00001 was graded by different graders"):
        merged(folder)


def test_a_folder_without_parts_is_named(folder: Folder, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no parts of a run"):
        merged(folder)
    begun(folder, [str(write_jsonl(tmp_path / "a.jsonl", range(4)))])
    with pytest.raises(UsageError, match="none of its parts is done"):
        merged(folder)
    assert FILE in folder.names()


def test_conversations_whose_errors_are_gone_replace_those_that_were_merged(folder: Folder, tmp_path: Path) -> None:
    with LoopbackServer(lambda body: status(400, "no")) as server:
        paths = [str(write_jsonl(tmp_path / "a.jsonl", range(6)))]
        job = begun(folder, paths, metrics="safety,refusal", judge=f"{server.base_url}#judge")
        worked(job, folder, tmp_path / "scratch")
        assert merged(folder).summary.grader("safety").errors == 6
        server.answer = lambda body: {"reasoning": "Fine.", "confidence": 1, "violations": []}
        for part in job.parts[1:]:
            Worker(job, folder, tmp_path / "scratch").work_on(replace(part, again=True), Share(1))
    result = merged(folder)
    safety = result.summary.grader("safety")
    assert (safety.scored, safety.errors, result.summary.attempts) == (2, 4, 6)
    assert merged(folder).summary == result.summary
    with Store.open("all.db") as store:
        assert store.counts(job.run_id) == (6, 0)
        assert len(store.replaced(job.run_id)) == 2
