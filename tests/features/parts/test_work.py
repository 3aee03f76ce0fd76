"""The work on parts: the same conversations and scores as a run in one piece, whatever ends it in between."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vivavoce.errors import UsageError
from vivavoce.features.parts.part_file import read_part
from vivavoce.features.parts.work import Share, Worker, done_parts, worked_before
from vivavoce.files.places import Folder
from vivavoce.pacing.loops import run as run_loop
from vivavoce.run.options import RunOptions
from vivavoce.store.store import Store
from vivavoce.suites.command_line import judging_suite
from vivavoce.suites.experiment import suite_run
from vivavoce.suites.metric_names import read_metrics
from vivavoce.testing import LoopbackServer
from vivavoce.testing.misbehaviour import status

from .cases import begun, worked, write_jsonl, write_parquet

Seen = dict[tuple[str, str], tuple[str, float | None, bool | None]]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(str(tmp_path / "out"))


def polite(body: dict[str, Any]) -> dict[str, Any]:
    del body
    return {"reasoning": "Fine.", "confidence": 1, "violations": []}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    with LoopbackServer(polite) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        yield server


def judge_of(server: LoopbackServer) -> str:
    return f"{server.base_url}#judge"


def scores_in(folder: Folder, names: list[str]) -> Seen:
    found: Seen = {}
    for name in names:
        with read_part(folder, name) as part:
            for key, _, rows in part.scores():
                found |= {(key.sample_id, row.name): (row.state, row.value, row.passed) for row in rows}
    return found


def scores_in_one_piece(path: Path, metrics: str) -> Seen:
    whole = judging_suite(path, read_metrics(metrics))
    with Store.open("whole.db") as store:
        result = run_loop(suite_run(whole, RunOptions(), store=store).execute())
        rows = list(store.scores(result.grading.id))
    return {(row.key.sample_id, row.name): (row.state, row.value, row.passed) for row in rows}


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_parts_have_the_scores_of_a_run_in_one_piece(name: str, folder: Folder, tmp_path: Path) -> None:
    path = (write_jsonl if name == "a.jsonl" else write_parquet)(tmp_path / name, range(10))
    job = begun(folder, [str(path)], metrics="refusal,repetition")
    done = worked(job, folder, tmp_path / "scratch")
    assert [(one.is_done, one.conversations, one.errors) for one in done] == [(True, 4, 0), (True, 4, 0), (True, 2, 0)]
    assert done_parts(job, folder) == {one.name for one in done}
    assert scores_in(folder, [one.name for one in done]) == scores_in_one_piece(path, "refusal,repetition")
    assert [worked_before(folder, one.name) for one in done] == done
    assert not (tmp_path / "scratch").exists()


def test_conversations_have_their_places_in_the_whole_plan(folder: Folder, tmp_path: Path) -> None:
    job = begun(folder, [str(write_jsonl(tmp_path / "a.jsonl", range(6)))])
    worked(job, folder, tmp_path / "scratch")
    places: list[int] = []
    for part in job.parts:
        with read_part(folder, part.name) as found:
            places += [one.attempt.position for one in found.entries() if one.attempt is not None]
    assert places == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_rows_that_are_no_conversations_are_named_and_the_others_judged(
    name: str, folder: Folder, tmp_path: Path
) -> None:
    if name == "a.jsonl":
        path = write_jsonl(
            tmp_path / name, range(5), "{broken", '{"id": "none"}', json.dumps({"id": "r4", "input": "x"})
        )
        wanted = [6, 7, 8]
    else:
        path = write_parquet(tmp_path / name, [0, 1, 2, 3, 4, 4])
        wanted = [6]
    job = begun(folder, [str(path)], rows=100)
    (done,) = worked(job, folder, tmp_path / "scratch")
    assert (done.is_done, done.conversations, done.problems) == (True, 5, len(wanted))
    with read_part(folder, done.name) as part:
        assert [one.row for one in part.about.problems] == wanted
        assert part.about.file == str(path)


def test_problems_outlive_a_process_that_is_killed_after_it_found_them(
    folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = begun(folder, [str(write_jsonl(tmp_path / "a.jsonl", range(3), "{broken"))])
    with monkeypatch.context() as patched:
        patched.setattr("vivavoce.features.parts.work.write_without", _full)
        with pytest.raises(UsageError, match="no space left"):
            worked(job, folder, tmp_path / "scratch")
    (done,) = worked(job, folder, tmp_path / "scratch")
    assert (done.is_done, done.conversations, done.problems) == (True, 3, 1)


def test_a_part_without_any_conversation_is_done(folder: Folder, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": "a"}\n{"id": "b"}\n', "utf-8")
    job = begun(folder, [str(path)])
    (done,) = worked(job, folder, tmp_path / "scratch")
    assert (done.is_done, done.conversations, done.problems) == (True, 0, 2)
    assert scores_in(folder, [done.name]) == {}


def test_a_file_that_is_gone_breaks_its_parts_alone(folder: Folder, tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", range(3))
    job = begun(folder, [str(path)])
    path.unlink()
    (done,) = worked(job, folder, tmp_path / "scratch")
    assert not done.is_done
    assert done.broken is not None
    assert "a.jsonl" in done.broken


def test_a_suite_that_is_wrong_ends_the_work(folder: Folder, tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", range(3))
    job = begun(folder, [str(path)], metrics="coherence", judge="openai:gpt-4.1-mini")
    with pytest.raises(UsageError, match="OPENAI_API_KEY"):
        worked(job, folder, tmp_path / "scratch")


def test_what_a_share_pays_for_is_kept_and_the_rest_is_judged_later(
    folder: Folder, tmp_path: Path, server: LoopbackServer
) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", range(10))
    job = begun(folder, [str(path)], rows=100, metrics="safety", judge=judge_of(server))
    worker, (part,) = Worker(job, folder, tmp_path / "scratch"), job.parts
    first = worker.work_on(part, Share(1, max_calls=4))
    assert (first.is_done, first.calls) == (False, 4)
    assert first.why is not None
    assert "limit of 4 calls" in first.why
    assert done_parts(job, folder) == set()
    second = Worker(job, folder, tmp_path / "scratch").work_on(part, Share(1))
    assert (second.is_done, second.calls, second.conversations) == (True, 6, 10)
    asked = Counter(json.dumps(one.body["messages"]) for one in server.requests)
    assert set(asked.values()) == {1}
    assert len(asked) == 10


def test_a_part_that_was_judged_is_written_without_another_call(
    folder: Folder, tmp_path: Path, server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", range(3))
    job = begun(folder, [str(path)], metrics="safety", judge=judge_of(server))
    with monkeypatch.context() as patched:
        patched.setattr(Folder, "put", _full)
        with pytest.raises(UsageError, match="no space left"):
            worked(job, folder, tmp_path / "scratch")
    assert len(server.requests) == 3
    (done,) = worked(job, folder, tmp_path / "scratch")
    assert (done.is_done, done.conversations, done.calls) == (True, 3, 0)
    assert len(server.requests) == 3


def _full(*_: object) -> None:
    raise UsageError("no space left")


def test_what_had_an_error_is_done_again_and_nothing_else_is_asked(
    folder: Folder, tmp_path: Path, server: LoopbackServer
) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", range(10), "{broken")
    job = begun(folder, [str(path)], rows=8, metrics="safety,refusal", judge=judge_of(server))
    server.answer = lambda body: polite(body) if "Question 3?" not in json.dumps(body) else status(400, "no")
    first = worked(job, folder, tmp_path / "scratch")
    assert [(one.conversations, one.errors, one.problems) for one in first] == [(8, 1, 0), (2, 0, 1)]
    server.answer = polite
    server.requests.clear()
    scratch = tmp_path / "elsewhere"
    again = [Worker(job, folder, scratch).work_on(replace(part, again=True), Share(1)) for part in job.parts]
    assert [(one.conversations, one.errors, one.problems) for one in again] == [(8, 0, 0), (2, 0, 1)]
    assert len(server.requests) == 1
    assert set(scores_in(folder, [one.name for one in again]).values()) >= {("scored", 1.0, True)}
    places: list[int] = []
    for part in job.parts:
        with read_part(folder, part.name) as found:
            places += [one.attempt.position for one in found.entries() if one.attempt is not None]
    assert sorted(places) == list(range(10))
    assert not any(scratch.iterdir())
