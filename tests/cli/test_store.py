"""`viva store`: what is there, what may go, and what is carried elsewhere."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from store.database.test_upgrade import as_made_before, execute
from vivavoce.errors import StoreError
from vivavoce.messages import HumanMessage
from vivavoce.records.label import Label
from vivavoce.records.run import Attempt, AttemptKey, Grading, Outcome, Run
from vivavoce.records.score import Score
from vivavoce.records.trajectory import Trajectory, Turn
from vivavoce.store.jobs import JobRow
from vivavoce.store.store import Store

from .conftest import Viva


async def hold(place: Path, run_id: str, started_at: float) -> None:
    """Keep a finished run with two conversations."""
    talk = Trajectory(turns=[Turn(index=0, messages=[HumanMessage(content="Hello")])])
    with Store.open(str(place)) as store:
        store.add_run(
            Run(
                id=run_id,
                suite="s",
                spec={},
                base="/",
                status="finished",
                started_at=started_at,
                finished_at=started_at + 1,
            )
        )
        store.add_grading(Grading(id=f"{run_id}.g1", run_id=run_id, spec={}, created_at=started_at))
        async with store.writer(run_id, f"{run_id}.g1", {}) as writer:
            for number in range(2):
                key = AttemptKey(str(number), "bot", 0)
                attempt = Attempt(key=key, scenario="x", sample="{}", trajectory=talk, started_at=started_at)
                await writer.put(Outcome(attempt=attempt, scores={"g": Score(value=1)}))


@pytest.fixture
def exam(tmp_path: Path) -> Path:
    """A store with a run of last year, one of last week, and one of today."""
    place = tmp_path / "exam.db"
    for run_id, days in (("year", 365), ("week", 7), ("today", 0)):
        asyncio.run(hold(place, run_id, time.time() - days * 86400 - 10))
    return place


def runs(place: Path) -> list[str]:
    with Store.open(str(place), create=False) as store:
        return [run.id for run in store.runs()]


def test_info_says_what_is_there(exam: Path, viva: Viva) -> None:
    done = viva("store", "info", "--store", str(exam))
    assert done.returncode == 0, done.stderr
    told = {line.split()[0]: line.split()[1] for line in done.stdout.splitlines()}
    assert (told["place"], told["runs"], told["attempts"], told["turns"]) == (str(exam), "3", "6", "6")
    found = json.loads(viva("store", "--json", "--store", str(exam)).stdout)
    rows = {"runs": 3, "gradings": 3, "attempts": 6, "turns": 6, "scores": 6, "labels": 0, "comments": 0, "replies": 0}
    assert found["rows"] == rows
    assert "up to date" in viva("store", "migrate", "--store", str(exam)).stderr


def test_gc_deletes_what_is_old_after_saying_so(exam: Path, viva: Viva) -> None:
    dry = viva("store", "gc", "--older-than", "30d", "--dry-run", "--store", str(exam))
    assert (dry.stdout, dry.stderr) == ("year\n", "would delete 1 run and 0 of the cached replies\n")
    assert runs(exam) == ["today", "week", "year"]
    done = viva("store", "gc", "--older-than", "30d", "--store", str(exam))
    assert (done.stdout, done.stderr) == ("year\n", "deleted 1 run and 0 of the cached replies\n")
    assert runs(exam) == ["today", "week"]
    viva("store", "gc", "--keep-last", "1", "--store", str(exam))
    assert runs(exam) == ["today"]


def test_copy_carries_everything_to_another_store_and_the_second_time_nothing(exam: Path, viva: Viva) -> None:
    with Store.open(str(exam)) as store:
        key = min(store.done("week"))
        said = {"author": "Ida", "verdict": "pass", "created_at": 1.0}
        store.labels.set("week", Label.model_validate({**key._asdict(), **said}))
        store.comments.add("week", key, None, "Ida", "Look")
    done = viva("store", "copy", "exam.db", "other.db")
    assert done.returncode == 0, done.stderr
    assert done.stderr == (
        "copied 3 new runs, 6 conversations, 1 label, 1 comment to other.db\n"
        "left out: 2 audit records; viva store backup keeps everything\n"
    )
    assert runs(exam.with_name("other.db")) == runs(exam)
    again = viva("store", "copy", "exam.db", "other.db")
    assert again.stderr.splitlines()[0] == "copied 0 new runs, 0 conversations to other.db"


def test_an_older_store_is_refused_until_it_is_migrated(tmp_path: Path, viva: Viva) -> None:
    as_made_before(str(tmp_path / "old.db"), "0013")
    for command in (("runs",), ("show",), ("store", "info"), ("store", "gc", "--keep-last", "1"), ("serve",)):
        done = viva(*command, "--store", "old.db")
        assert (done.returncode, done.stdout) == (3, ""), done.stderr
        assert "run: viva store migrate --store old.db" in done.stderr
    asked = viva("store", "migrate", "--store", "old.db")
    assert (asked.returncode, "add --yes" in asked.stderr) == (2, True)
    assert asked.stdout.splitlines()[0] == "old.db: schema 0013 to 1001"
    assert [line.split()[0] for line in asked.stdout.splitlines()[1:5]] == ["0015", "0016", "0017", "1001"]
    assert sorted(path.name for path in tmp_path.glob("old.db*")) == ["old.db"]
    done = viva("store", "migrate", "--yes", "--store", "old.db")
    assert (done.returncode, "upgraded old.db to schema 1001" in done.stderr) == (0, True), done.stderr
    (backup,) = tmp_path.glob("old.db.schema-0013-*")
    assert "older vivavoce (schema 0013" in viva("runs", "--store", str(backup)).stderr
    assert viva("runs", "--store", "old.db").returncode == 0


def test_a_store_is_not_migrated_while_it_is_open(tmp_path: Path, exam: Path, viva: Viva) -> None:
    with Store.open(str(exam)) as store:
        execute(str(exam), "UPDATE alembic_version SET version_num = '0015'")
        done = viva("store", "migrate", "--yes", "--store", str(exam))
        assert (done.returncode, "stop all servers and runs first" in done.stderr) == (3, True)
        with pytest.raises(StoreError, match="its schema changed to 0015"):
            store.runs()
    assert list(tmp_path.glob("exam.db.schema*")) == []


def test_a_backup_has_what_is_committed_also_while_somebody_writes(tmp_path: Path, exam: Path, viva: Viva) -> None:
    with Store.open(str(exam)) as store:
        store.tokens.create("ida", "admin", actor="test")
        with store.database.writing() as connection:
            connection.exec_driver_sql("DELETE FROM scores")
            done = viva("store", "backup", "kept/backup.db", "--store", str(exam))
            assert done.returncode == 0, done.stderr
    backup = tmp_path / "kept" / "backup.db"
    assert backup.stat().st_mode & 0o077 == 0
    assert viva("store", "backup", "kept/backup.db", "--store", str(exam)).returncode == 2
    viva("store", "gc", "--keep-last", "0", "--store", str(exam))
    assert runs(exam) == []
    assert viva("store", "restore", "kept/backup.db", "--store", str(exam)).returncode == 2
    with Store.open(str(exam)):
        refused = viva("store", "restore", "kept/backup.db", "--yes", "--store", str(exam))
        assert (refused.returncode, "stop all servers" in refused.stderr) == (3, True)
    done = viva("store", "restore", "kept/backup.db", "--yes", "--store", str(exam))
    assert done.returncode == 0, done.stderr
    assert runs(exam) == ["today", "week", "year"]
    with Store.open(str(exam)) as store:
        assert [token.name for token in store.tokens.all()] == ["ida"]
        assert store.maintenance.contents().rows["scores"] == 6
    (before,) = tmp_path.glob("exam.db.before-restore-*")
    assert runs(before) == []
    assert viva("store", "restore", "kept/backup.db", "--store", "new.db").returncode == 0
    assert runs(tmp_path / "new.db") == ["today", "week", "year"]


def test_a_restore_interrupts_the_open_jobs_of_the_backup(tmp_path: Path, exam: Path, viva: Viva) -> None:
    with Store.open(str(exam)) as store:
        for number, status in enumerate(("waiting", "running", "Running", "finished")):
            job = JobRow(id=f"job-{number}", folder="/x", kind="suite", created_at=1.0, request="{}", owner="gone")
            store.jobs.add(replace(job, status=status))
    assert viva("store", "backup", "kept.db", "--store", str(exam)).returncode == 0
    for target in (str(exam), "new.db"):
        done = viva("store", "restore", "kept.db", "--yes", "--store", target)
        assert (done.returncode, "3 open jobs were interrupted" in done.stderr) == (0, True), done.stderr
        with Store.open(tmp_path / target) as store:
            rows = [store.jobs.get(f"job-{number}") for number in range(4)]
        assert [row and row.status for row in rows] == ["interrupted", "interrupted", "interrupted", "finished"]
        assert [row and (row.request, row.owner) for row in rows[:3]] == [(None, None)] * 3
    assert list(tmp_path.glob("*.new*")) == []


ODD_VALUES = [
    "started_at = 1e308",
    "started_at = 9e999",
    "started_at = 'x'",
    "status = 'evil'",
    "options = '[]'",
    "spec = x'ff00'",
]


@pytest.mark.parametrize("odd", ODD_VALUES)
def test_a_run_that_cannot_be_read_is_listed_as_such(exam: Path, viva: Viva, odd: str) -> None:
    execute(str(exam), f"UPDATE runs SET {odd} WHERE id = 'week'")
    done = viva("runs", "--store", str(exam))
    assert (done.returncode, done.stdout.count("unreadable")) == (0, 1 if "spec" not in odd else 0), done.stderr
    assert {"today", "week", "year"} <= set(done.stdout.split())
    done = viva("runs", "--json", "--store", str(exam))
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 3), done.stderr
    done = viva("show", "week", "--store", str(exam))
    assert (done.returncode, "run week cannot be read" in done.stderr) == (3, True), done.stderr


@pytest.mark.parametrize("what", ["backup", "restore"])
def test_a_database_is_left_to_its_own_programs(what: str, viva: Viva) -> None:
    done = viva("store", what, "x.db", "--store", "postgresql://me:s3cret@host/db")
    assert (done.returncode, "s3cret" in done.stderr) == (2, False)
    assert {"backup": "pg_dump", "restore": "pg_restore"}[what] in done.stderr


def test_a_damaged_store_is_reported_and_leaves_nothing_behind(tmp_path: Path, exam: Path, viva: Viva) -> None:
    place = ("--store", str(exam))
    assert viva("store", "backup", "good.db", *place).returncode == 0
    with closing(sqlite3.connect(exam)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA writable_schema=ON")
        name = "CAST(x'FFFE' || name AS TEXT)"
        connection.execute(f"UPDATE sqlite_master SET name = {name}, sql = 'damaged' WHERE name = 'runs'")
        connection.commit()
    for command in (("runs", "list"), ("store", "backup", "new/folder/b.db"), ("store", "migrate")):
        done = viva(*command, *place)
        assert (done.returncode, "the file is damaged" in done.stderr) == (3, True), done.stderr
    assert not (tmp_path / "new").exists()
    refused = viva("store", "restore", "good.db", "--yes", *place)
    assert (refused.returncode, f"move {exam} away first" in refused.stderr) == (3, True), refused.stderr
    exam.unlink()
    assert viva("store", "restore", "good.db", "--yes", *place).returncode == 0


_LIMITED = (
    "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))\n"
    "from vivavoce.cli.main import main\nmain(sys.argv[1:])"
)
"""Runs the command line where a file cannot be larger than 200,000 bytes."""


def test_a_restore_that_does_not_fit_on_the_disk_leaves_no_file(tmp_path: Path, exam: Path, viva: Viva) -> None:
    assert viva("store", "backup", "good.db", "--store", str(exam)).returncode == 0
    command = [sys.executable, "-B", "-c", _LIMITED, "store", "restore", "good.db", "--store", "new.db"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.startswith("new.db: disk")) == (3, True), done.stderr
    assert list(tmp_path.glob("new.db*")) == []


def test_a_backup_that_does_not_fit_on_the_disk_names_its_file_and_leaves_none(tmp_path: Path, exam: Path) -> None:
    command = [sys.executable, "-B", "-c", _LIMITED, "store", "backup", "new.db", "--store", str(exam)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (3, "new.db: disk I/O error: the disk refused to write or read\n")
    assert list(tmp_path.glob("new.db*")) == []


@pytest.mark.parametrize("page_size", [512, 1024, 65536])
def test_a_backup_with_another_page_size_replaces_a_store(
    tmp_path: Path, exam: Path, viva: Viva, page_size: int
) -> None:
    assert viva("store", "backup", "good.db", "--store", str(exam)).returncode == 0
    with closing(sqlite3.connect(tmp_path / "good.db")) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
        connection.execute(f"PRAGMA page_size={page_size}")
        connection.execute("VACUUM")
        assert connection.execute("PRAGMA page_size").fetchone() == (page_size,)
    viva("store", "gc", "--keep-last", "0", "--store", str(exam))
    done = viva("store", "restore", "good.db", "--yes", "--store", str(exam))
    assert done.returncode == 0, done.stderr
    assert runs(exam) == ["today", "week", "year"]
    with closing(sqlite3.connect(exam)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_what_is_not_a_store_is_not_restored(tmp_path: Path, exam: Path, viva: Viva) -> None:
    (tmp_path / "x.db").write_text("not a store")
    for name in ("x.db", "none.db"):
        assert viva("store", "restore", name, "--yes", "--store", str(exam)).returncode == 2
    damaged = bytearray(exam.read_bytes())
    damaged[4096 * 2 : 4096 * 40] = b"x" * (4096 * 38)
    (tmp_path / "damaged.db").write_bytes(damaged)
    assert viva("store", "restore", "damaged.db", "--yes", "--store", str(exam)).returncode == 3
    assert runs(exam) == ["today", "week", "year"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("gc",), "say which runs to delete: --keep-last 20, --older-than 30d, or both"),
        (("gc", "--older-than", "soon"), "--older-than takes an age such as 12h, 30d or 8w, got 'soon'"),
        (("info", "--dry-run"), "are for viva store gc, not for info"),
        (("info", "x.db"), "does not take the store as an argument; use --store x.db"),
        (("info", "postgresql://me:s3cret@host/db"), "use --store postgresql://me@host/db"),
        (("copy", "exam.db"), "name both stores"),
        (("copy", "exam.db", "sqlite:///exam.db"), "both are the same store"),
        (("copy", "none.db", "other.db"), "no store at none.db"),
        (("info", "--store", "mysql://me:s3cret@host/db"), "is not a store; give a file path"),
        (("info", "--store", "postgresql://me:s3cret@host"), "does not name a database"),
    ],
)
def test_a_mistake_is_one_line_without_a_password(
    exam: Path, viva: Viva, arguments: tuple[str, ...], said: str
) -> None:
    done = viva("store", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "s3cret" not in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert runs(exam) == ["today", "week", "year"]


def test_a_server_that_is_not_there_is_one_line_without_the_password(viva: Viva) -> None:
    done = viva("store", VIVAVOCE_STORE="postgresql://me:s3cret@127.0.0.1:1/db")
    assert (done.returncode, done.stdout) == (3, "")
    assert "postgresql://me@127.0.0.1:1/db: " in done.stderr
    assert "s3cret" not in done.stderr
    assert len(done.stderr.splitlines()) == 1
