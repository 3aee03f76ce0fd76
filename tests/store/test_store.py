from __future__ import annotations

import ast
import inspect
import os
import pydoc
import sqlite3
import tempfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event

from vivavoce.errors import StoreError, UsageError
from vivavoce.plugins import lazy
from vivavoce.records.run import AttemptKey, ErrorRow, Run, ScoreRow
from vivavoce.records.score import failed
from vivavoce.records.trajectory import Trajectory
from vivavoce.store import store as module
from vivavoce.store.browse.browse import Browse
from vivavoce.store.runs import reading
from vivavoce.store.store import Store

from . import cases
from .cases import BROKEN, FINGERPRINTS, GRADING, RUN, outcome, unfortunate


@contextmanager
def ordinary_user() -> Generator[None]:
    """Let go of root's right to write everywhere, where the tests have it."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(before)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        yield Path(folder)
        os.chmod(folder, 0o777)


async def fill(store: Store, count: int) -> None:
    async with store.writer(RUN, GRADING, FINGERPRINTS) as writer:
        for number in range(count):
            await writer.put(outcome(number))


def test_opening_makes_the_folders_and_closing_leaves_one_file(tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path}/a/b/vivavoce.db") as store:
        store.add_run(cases.run())
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["vivavoce.db"]


def test_a_store_that_is_not_there_is_not_made_when_it_should_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no store at .*x\.db: no run has been stored here yet"):
        Store.open(str(tmp_path / "a" / "x.db"), create=False)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="its folder cannot be created"):
        Store.open(str(tmp_path / "file" / "x.db"))


@pytest.mark.parametrize("name", ["", "folder"])
def test_a_path_that_is_no_file_is_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError, match=r"does not name a file|is a folder; a store is a file"):
        Store.open(str(tmp_path / name) if name else "")


def test_a_run_comes_back_as_it_was_added_and_updated(store: Store) -> None:
    assert store.run(RUN) == cases.run()
    ended = cases.run().model_copy(update={"status": "finished", "finished_at": 2000.5, "options": {"k": [None, 1.5]}})
    store.update_run(ended)
    assert store.run(RUN) == ended


def test_a_grading_comes_back_as_it_was_added_and_updated(store: Store) -> None:
    ended = cases.grading().model_copy(update={"verdict": "pass", "finished_at": 3.0, "summary": {"mean": 0.5}})
    store.update_grading(ended)
    assert store.gradings(RUN) == [ended]
    assert store.grading(RUN, GRADING) == ended


def test_the_latest_complete_grading_is_meant_where_none_is_named(store: Store) -> None:
    second = cases.grading("second", created_at=2000)
    store.add_grading(second)
    assert store.grading(RUN).id == "second"
    store.update_grading(cases.grading().model_copy(update={"finished_at": 1500.0}))
    assert store.grading(RUN).id == GRADING
    assert store.grading(RUN, "latest").id == "second"
    store.update_grading(second.model_copy(update={"finished_at": 2500.0}))
    assert store.grading(RUN).id == "second"


def test_what_is_not_there_cannot_be_updated(store: Store) -> None:
    with pytest.raises(StoreError, match="no other in runs"):
        store.update_run(cases.run("other"))


def test_an_id_is_given_once(store: Store) -> None:
    with pytest.raises(StoreError, match=r"UNIQUE constraint failed|duplicate key value"):
        store.add_run(cases.run())


def test_half_a_surrogate_pair_in_the_name_of_a_suite_is_kept_as_it_is_spelled(store: Store) -> None:
    store.add_run(cases.run("odd").model_copy(update={"suite": "exam \ud800"}))
    assert store.run("odd").suite == r"exam \ud800"


def test_a_run_and_its_first_grading_are_kept_together_or_not_at_all(store: Store) -> None:
    with pytest.raises(StoreError):
        store.add_run(cases.run("half"), cases.grading(GRADING, "half"))
    with pytest.raises(UsageError, match="no run 'half'"):
        store.run("half")
    store.add_run(cases.run("whole"), cases.grading("whole.1", "whole"))
    assert [one.id for one in store.gradings("whole")] == ["whole.1"]


def test_the_help_of_a_store_shows_all_that_can_be_done_with_it() -> None:
    shown = pydoc.plain(pydoc.render_doc(Store))
    parts = ("browse", "series", "scenarios", "labels", "tokens", "audit", "maintenance")
    for part in parts:
        assert f"{part}\n" in shown
        assert inspect.getdoc(vars(Store)[part])
        found = vars(Store)[part]
        kind = Browse if part == "browse" else lazy(found.reference)
        methods = inspect.getmembers(kind, inspect.isfunction)
        public = [method for name, method in methods if not name.startswith("_")]
        assert public
        assert all(inspect.getdoc(method) for method in public)
        assert f"`{part}`" in (inspect.getdoc(Store) or "")


def test_no_public_function_takes_a_store() -> None:
    folder = Path(module.__file__).parent
    named = [
        f"{path.relative_to(folder)}: {function.name}"
        for path in folder.rglob("*.py")
        for function in ast.parse(path.read_text()).body
        if isinstance(function, ast.FunctionDef)
        and any(one.annotation is not None and ast.unparse(one.annotation) == "Store" for one in function.args.args)
    ]
    assert named == []


def test_a_grading_needs_its_run(store: Store) -> None:
    with pytest.raises(StoreError, match="its run or its grading is not in the store"):
        store.add_grading(cases.grading("x", run_id="none"))


def test_runs_come_newest_first(store: Store) -> None:
    for number in range(3):
        store.add_run(cases.run(f"r{number}", started_at=5000 + number))
    assert [run.id for run in store.runs(3)] == ["r2", "r1", "r0"]


def test_a_folder_name_that_is_not_unicode_is_escaped(store: Store) -> None:
    store.add_run(Run(id="odd", suite="s", spec={"a": "\ud800"}, base="/caf\udce9", started_at=1))
    assert (store.run("odd").base, store.run("odd").spec) == ("/caf\\udce9", {"a": "\ud800"})


async def test_done_is_what_need_not_be_done_again(store: Store) -> None:
    await fill(store, 3)
    assert store.done(RUN) == {AttemptKey(f"sample-{number}", "bot", 0) for number in range(3)}
    assert store.done("another") == set()


async def test_streams_go_through_every_page_in_the_order_of_the_plan_whatever_was_finished_first(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "PAGE", 3)
    monkeypatch.setattr(reading, "KEY_PAGE", 2)
    async with store.writer(RUN, GRADING, FINGERPRINTS) as writer:
        for number in (4, 0, 6, 2, 1, 5, 3):
            await writer.put(outcome(number, position=number))
    samples = [f"sample-{number}" for number in range(7)]
    assert list(store.outcomes(GRADING)) == [outcome(number, position=number) for number in range(7)]
    assert [attempt.key.sample_id for attempt in store.attempts(RUN)] == samples
    assert [row.key.sample_id for row in store.scores(GRADING)] == [one for one in samples for _ in range(3)]
    assert [key.sample_id for key, *_ in store.turn_scores(GRADING, "exact")] == samples
    assert len(store.done(RUN)) == 7


async def test_what_has_no_place_of_its_own_comes_in_the_order_of_writing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "PAGE", 3)
    await fill(store, 7)
    assert list(store.outcomes(GRADING)) == [outcome(number) for number in range(7)]


async def test_runs_that_write_in_turn_stay_apart(store: Store) -> None:
    store.add_run(cases.run("other"))
    store.add_grading(cases.grading("other.1", run_id="other"))
    async with (
        store.writer(RUN, GRADING, FINGERPRINTS) as writer,
        store.writer("other", "other.1", FINGERPRINTS) as other,
    ):
        for number in range(0, 10, 2):
            await writer.put(outcome(number))
            await writer.drain()
            await other.put(outcome(number + 1))
            await other.drain()
    assert list(store.outcomes(GRADING)) == [outcome(number) for number in range(0, 10, 2)]
    assert list(store.outcomes("other.1")) == [outcome(number) for number in range(1, 10, 2)]


async def test_one_sample_can_be_read_alone(store: Store) -> None:
    await fill(store, 4)
    twin = cases.attempt(2, Trajectory(), target="other bot")
    async with store.writer(RUN, GRADING, {}) as writer:
        await writer.put(outcome(2).model_copy(update={"attempt": twin}))
    assert [attempt.key.target for attempt in store.attempts(RUN, sample_id="sample-2")] == ["bot", "other bot"]
    assert next(store.outcomes(GRADING, sample_id="sample-2")) == outcome(2)
    assert [found.key.target for found in store.attempts(RUN, sample_id="sample-2")] == ["bot", "other bot"]
    assert list(store.outcomes(GRADING, sample_id="\ud800")) == []


async def test_scores_are_those_of_whole_conversations(store: Store) -> None:
    async with store.writer(RUN, GRADING, FINGERPRINTS) as writer:
        await writer.put(outcome(1))
        await writer.put(unfortunate(2))
    one, two = (AttemptKey(f"sample-{number}", "bot", 0) for number in (1, 2))
    assert list(store.scores(GRADING)) == [
        ScoreRow(one, "grade", "exact", "scored", 1.0, True),
        ScoreRow(one, "grade", "judge", "scored", 0.25, False),
        ScoreRow(one, "reward", "reward", "scored", 0.5, False),
        ScoreRow(two, "grade", "exact", "error", None, None),
        ScoreRow(two, "grade", "judge", "skipped", None, None),
        ScoreRow(two, "reward", "reward", "error", None, None),
    ]
    assert list(store.turn_scores(GRADING, "exact")) == [(one, 0, "scored", 1.0)]
    assert list(store.turn_scores(GRADING, "judge")) == []


async def test_an_attempt_with_errors_is_told_once_with_what_broke_first(store: Store) -> None:
    unjudged = outcome(2).model_copy(update={"scores": {"judge": failed(BROKEN), "other": failed(BROKEN)}})
    async with store.writer(RUN, GRADING, FINGERPRINTS) as writer:
        for one in (outcome(1), unjudged, unfortunate(3)):
            await writer.put(one)
    assert list(store.errors(GRADING)) == [
        ErrorRow(AttemptKey("sample-2", "bot", 0), "judge", BROKEN, "no answer within 5 s"),
        ErrorRow(AttemptKey("sample-3", "bot", 0), None, BROKEN, None),
    ]


async def test_no_page_looks_at_more_than_its_own_attempts(file_store: Store, tmp_path: Path) -> None:
    store = file_store
    await fill(store, 1)
    asked: list[tuple[str, Sequence[Any]]] = []

    def listen(_c: object, _cursor: object, statement: str, values: Sequence[Any], *_: object) -> None:
        asked.append((statement, values))

    event.listen(Engine, "before_cursor_execute", listen)
    streams = store.outcomes(GRADING), store.scores(GRADING), store.turn_scores(GRADING, "exact")
    read: list[list[object]] = [list(stream) for stream in (*streams, store.attempts(RUN, sample_id="sample-0"))]
    event.remove(Engine, "before_cursor_execute", listen)
    assert all(read)
    database = sqlite3.connect(tmp_path / "vivavoce.db")
    plans = [
        str(step[3])
        for statement, values in asked
        if statement.startswith("SELECT") and "attempt" in statement
        for step in database.execute(f"EXPLAIN QUERY PLAN {statement}", values)
    ]
    database.close()
    assert not [
        step for step in plans if "SCAN" in step and "VIRTUAL TABLE" not in step
    ]  # that is the numbers asked for
    assert sum("(attempt_id=? AND grading_id=?" in step for step in plans if step.startswith("SEARCH scores")) == 3
    assert sum("(run_id=? AND position>?" in step for step in plans) == 3
    assert sum("(run_id=? AND sample_id=?" in step for step in plans) == 1


def test_a_grading_that_is_not_there_has_no_outcomes_to_read(store: Store) -> None:
    with pytest.raises(UsageError, match="no grading 'x'"):
        store.outcomes("x")


async def test_every_score_carries_the_fingerprint_of_its_grader(file_store: Store, tmp_path: Path) -> None:
    await fill(file_store, 1)
    with sqlite3.connect(tmp_path / "vivavoce.db") as database:
        rows = database.execute("SELECT name, turn, fingerprint FROM scores ORDER BY id").fetchall()
    database.close()
    assert rows == [("exact", None, "f1"), ("exact", 0, "f1"), ("judge", None, "f2"), ("reward", None, None)]


async def test_a_file_that_may_not_be_written_can_be_read_and_says_so(open_folder: Path) -> None:
    path = open_folder / "x.db"
    with cases.begun(path) as store:
        await fill(store, 2)
    path.chmod(0o444)
    with ordinary_user(), Store.open(str(path), create=False) as store:
        assert list(store.outcomes(GRADING)) == [outcome(0), outcome(1)]
        with pytest.raises(StoreError, match=r"x\.db: .*the file or its folder is read-only"):
            store.add_run(cases.run("other"))
        writer = store.writer(RUN, GRADING, {})
        await writer.put(outcome(2))
        with pytest.raises(StoreError, match=r"is read-only \(1 outcome not stored\)"):
            await writer.close()


async def test_a_search_in_a_file_that_may_not_be_written_needs_an_index(open_folder: Path) -> None:
    path = open_folder / "x.db"
    with cases.begun(path) as store:
        await fill(store, 2)
    path.chmod(0o444)
    needs_index = pytest.raises(StoreError, match=r"x\.db: 4 of the texts .* may only read; search once as a user")
    with ordinary_user(), Store.open(str(path), create=False) as store, needs_index:
        store.search("flight")
    path.chmod(0o644)
    with Store.open(str(path)) as store:
        store.index_pending()
    path.chmod(0o444)
    with ordinary_user(), Store.open(str(path), create=False) as store:
        assert len(store.search("flight")) == 2


def test_a_folder_that_may_not_be_written_is_an_error(open_folder: Path) -> None:
    open_folder.chmod(0o555)
    with ordinary_user(), pytest.raises(StoreError, match="its folder is missing or read-only"):
        Store.open(str(open_folder / "new.db"))


@pytest.fixture
def read_only(open_folder: Path) -> Iterator[Path]:
    """A store with a run in a folder with an odd name that may not be written."""
    folder = open_folder / "a b?#%20ü"
    with cases.begun(folder / "x.db"):
        pass
    folder.chmod(0o555)
    yield folder / "x.db"
    folder.chmod(0o777)


@pytest.mark.parametrize("mode", [0o644, 0o444])
def test_a_store_in_a_folder_that_may_not_be_written_can_be_read_and_says_so(read_only: Path, mode: int) -> None:
    read_only.chmod(mode)
    with ordinary_user(), Store.open(str(read_only)) as store:
        assert store.run("latest") == cases.run()
        with pytest.raises(StoreError, match=r"x\.db: .*the file or its folder is read-only"):
            store.add_run(cases.run("other"))
    assert [path.name for path in read_only.parent.iterdir()] == ["x.db"]


def test_a_store_that_another_process_writes_can_be_read_in_a_read_only_folder(open_folder: Path) -> None:
    with cases.begun(open_folder / "x.db") as writing:
        writing.add_run(cases.run("newest", started_at=5000))
        open_folder.chmod(0o555)
        with ordinary_user(), Store.open(str(open_folder / "x.db"), create=False) as store:
            assert store.run("latest").id == "newest"
        open_folder.chmod(0o777)


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize("text", ["remember the milk", "SQLite format 2"])
def test_a_file_that_is_no_store_is_the_users_mistake(tmp_path: Path, text: str, create: bool) -> None:
    (tmp_path / "notes.txt").write_text(text)
    with pytest.raises(UsageError, match=r"notes\.txt is not a store; name another file"):
        Store.open(str(tmp_path / "notes.txt"), create=create)
    assert (tmp_path / "notes.txt").read_text() == text


def test_an_empty_file_may_become_a_store_but_is_none(tmp_path: Path) -> None:
    (tmp_path / "x.db").touch()
    with pytest.raises(UsageError, match="the file is empty"):
        Store.open(str(tmp_path / "x.db"), create=False)
    with Store.open(str(tmp_path / "x.db")) as store:
        assert store.runs() == []


def test_a_store_that_is_damaged_is_an_error_of_the_store(tmp_path: Path) -> None:
    cases.begun(tmp_path / "x.db").close()
    with (tmp_path / "x.db").open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 4000)
    with pytest.raises(StoreError, match=r"x\.db: .*malformed: the file is damaged"):
        Store.open(str(tmp_path / "x.db"), create=False)
