"""The schema of a database: made in a new one, checked when one is opened and while it is open, upgraded when asked."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect, select, text

from forked import program
from kept import kept_test, kept_turn
from vivavoce.errors import StoreError, UsageError
from vivavoce.records.run import Outcome
from vivavoce.records.score import Score, Usage, failed, skipped
from vivavoce.records.trajectory import Trajectory
from vivavoce.store.database import schema, upgrade
from vivavoce.store.database.address import Place
from vivavoce.store.database.database import for_writing, on_postgresql, reach
from vivavoce.store.database.migrations import Step, released_steps, run_steps, steps_after, steps_before_release
from vivavoce.store.database.schema import HEAD
from vivavoce.store.database.sqlite import use_wal
from vivavoce.store.database.upgrade import OlderSchema
from vivavoce.store.maintenance.maintenance import restore_store
from vivavoce.store.maintenance.migration import StoreInUse, migrate_store, migration_plan
from vivavoce.store.store import Store

from .. import cases

EVERY_VERSION = [step.version for step in steps_before_release()]
"""The schemas of stores from before the first release."""

VERSIONS = [version for version in EVERY_VERSION if version < "0007"]
"""Those whose scores do not say yet whether they pass."""

DEFINITIONS = """
SELECT c.table_name || '.' || c.column_name || ' ' || c.data_type || ' ' || c.is_nullable || ' '
    || coalesce(c.column_default, '') || ' ' || coalesce(c.collation_name, '') || ' ' || c.ordinal_position
FROM information_schema.columns c WHERE c.table_schema = 'public'
UNION SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
UNION SELECT conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint
WHERE connamespace = 'public'::regnamespace
"""
IN_FILE = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"

OPEN = """
import sys
from vivavoce.store.store import Store
Store.open(sys.argv[1]).close()
print('alembic' in sys.modules)
"""


STOP = """
import os, sys
import alembic.op
from vivavoce.store.maintenance.migration import migrate_store
setattr(alembic.op, sys.argv[2], lambda *_, **__: os._exit(9))
migrate_store(sys.argv[1])
"""
"""A process that ends where a migration does a certain thing, as by `kill -9`."""


HOLD = """
import sys
from vivavoce.store.database.address import Place
from vivavoce.store.database.database import reach
engine = reach(Place(sys.argv[1]), create=False)
with engine.connect() as connection:
    connection.exec_driver_sql("SELECT version_num FROM alembic_version").fetchall()
print("open", flush=True)
sys.stdin.read()
"""
"""A process that has a store open, and is not in the middle of anything."""


def definitions(address: str) -> set[str]:
    """Return what defines each table, column, index and constraint, one space between any two words."""
    engine = reach(Place(address), create=True)
    with engine.connect() as connection:
        made = connection.execute(text(DEFINITIONS if on_postgresql(connection) else IN_FILE)).scalars().all()
    engine.dispose()
    return {" ".join(one.split()) for one in made if "alembic_version" not in one}


def as_made_before(address: str, version: str) -> None:
    """Make a store as an older version made it."""
    make_by(address, [step for step in steps_before_release() if step.version <= version])


def make_by(address: str, steps: Sequence[Step]) -> None:
    """Make a store by some steps, from nothing."""
    engine = reach(Place(address), create=True)
    if not on_postgresql(engine):
        with engine.connect() as connection:
            use_wal(connection, address)
    with engine.connect() as connection, for_writing(connection).begin():
        connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"))
        connection.execute(text("INSERT INTO alembic_version VALUES ('0000')"))
        run_steps(connection, steps)
    engine.dispose()


Row = dict[str, Any]


def fill(address: str, rows: dict[str, list[Row]]) -> None:
    """Write rows into an older store, in the form that they had then."""
    scores = [before_one_score(row) for row in rows["scores"]]
    standings = [standing_before(row, scores) for row in rows["standings"]]
    insert(address, {**rows, "scores": scores, "standings": standings})


def insert(address: str, rows: dict[str, list[Row]]) -> None:
    """Write rows: of the tables and columns, those that the store knows."""
    engine = reach(Place(address), create=True)
    with engine.connect() as connection, for_writing(connection).begin():
        there = inspect(connection).get_table_names()
        for name, held in rows.items():
            if name not in there or not held:
                continue
            known = {column["name"] for column in inspect(connection).get_columns(name)}
            given = [key for key in held[0] if key in known and (name, key) != ("scores", "id")]
            marks = ", ".join(f":{key}" for key in given)
            connection.execute(text(f"INSERT INTO {name} ({', '.join(given)}) VALUES ({marks})"), held)
    engine.dispose()


def before_one_score(row: Row) -> Row:
    """Return a score as schemas before 0007 hold it: what its metric said stands in its metadata."""
    metadata = json.loads(row["extra"] or "{}")
    if row["raw"] is not None:
        metadata |= {"score": json.loads(row["raw"]), "passed": bool(row["passed"])}
        metadata |= {} if row["confidence"] is None else {"confidence": row["confidence"]}
        criteria = [_criterion(one) for one in _listed(row["findings"])]
        metadata |= {"criteria": criteria} if criteria else {}
        evidence = [*(piece for one in criteria for piece in one["evidence"]), *_listed(row["other_evidence"])]
        metadata |= {"evidence": evidence} if evidence else {}
    if row["turns"]:
        metadata |= {"turns_passed": 1, "turns_total": row["turns"], "per_turn_grades": "vivavoce:rows"}
    passed = metadata.get("passed")
    return {
        **row,
        "rationale": row["reason"],
        "metadata": json.dumps(metadata) if metadata else None,
        "passed": int(passed) if isinstance(passed, bool) else None,
    }


def standing_before(row: Row, scores: Sequence[Row]) -> Row:
    """Return a standing as schema 0006 holds it: what failed in part only has a word of its own."""
    of = [one for one in scores if one["attempt_id"] == row["attempt_id"] and one["turn"] is None]
    whole = any(one["passed"] == 0 or one["value"] == 0 for one in of)
    return {**row, "state": "part"} if row["state"] == "fail" and not whole else row


def _criterion(one: Row) -> Row:
    return {"outcome": one["what"], "met": one["state"] == "pass", "kind": "action", "evidence": one["evidence"]}


def _listed(text: str | None) -> list[Row]:
    return json.loads(text or "[]")


def rows_of(address: str) -> dict[str, list[Row]]:
    """Return every row of a run, and what search has still to read."""
    engine = reach(Place(address), create=False)
    with engine.connect() as connection:
        found = {
            name: [dict(row) for row in connection.execute(select(schema.metadata.tables[name])).mappings()]
            for name in ("runs", "gradings", "attempts", "turns", "scores", "unread", "standings")
        }
    engine.dispose()
    return found


def test_released_steps_from_nothing_give_the_tables_of_a_new_store(address: str, other_address: str) -> None:
    make_by(other_address, released_steps())
    Store.open(address).close()
    assert definitions(other_address) == definitions(address)


HOSTILE = {
    "trigger": ["CREATE TRIGGER extra AFTER INSERT ON scores BEGIN UPDATE scores SET value = 1.0; END"],
    "view": ["ALTER TABLE gradings RENAME TO moved", "CREATE VIEW gradings AS SELECT * FROM moved"],
    "other view": ["CREATE VIEW extra AS SELECT * FROM runs"],
    "generated column": ["ALTER TABLE runs ADD COLUMN extra GENERATED ALWAYS AS (1)"],
    "index": ["CREATE INDEX extra ON runs (length(printf('%.*c', 9, 'x')))"],
    "virtual table": ["CREATE VIRTUAL TABLE extra USING fts5(x)"],
    "words": ["DROP TABLE passage_words", "CREATE VIRTUAL TABLE passage_words USING fts5(words, run)"],
    "other case": ["DROP TABLE tokens", "CREATE TABLE TOKENS (id, role AS ('admin'))"],
}
"""Definitions that run, or change what is read and written, wherever their store is opened."""


@pytest.mark.parametrize("statements", HOSTILE.values(), ids=HOSTILE)
def test_a_file_with_definitions_of_another_program_is_refused(tmp_path: Path, statements: list[str]) -> None:
    path = tmp_path / "vivavoce.db"
    Store.open(path).close()
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    with pytest.raises(StoreError, match="is not as vivavoce creates it"):
        Store.open(path)
    with pytest.raises(StoreError, match="is not as vivavoce creates it"):
        restore_store(path, str(tmp_path / "new.db"))
    assert not (tmp_path / "new.db").exists()


def test_an_older_file_with_a_trigger_is_not_upgraded(tmp_path: Path) -> None:
    path = tmp_path / "vivavoce.db"
    as_made_before(str(path), EVERY_VERSION[-1])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TRIGGER extra AFTER UPDATE ON runs BEGIN DELETE FROM runs; END")
    with pytest.raises(StoreError, match="trigger 'extra' is not as vivavoce creates it"):
        migrate_store(str(path))


def test_a_file_may_have_tables_of_other_names_and_lack_an_index(tmp_path: Path) -> None:
    path = tmp_path / "vivavoce.db"
    Store.open(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE extra (x)")
        connection.execute("DROP INDEX runs_by_time")
        connection.execute("ANALYZE")
    with Store.open(path) as store:
        assert store.runs() == []


def test_the_definitions_of_a_new_file_need_no_second_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "vivavoce.db"
    Store.open(path).close()
    monkeypatch.setattr(upgrade, "_known_definitions", lambda: pytest.fail("the digest is not that of a new file"))
    Store.open(path).close()


@pytest.mark.parametrize("version", EVERY_VERSION)
def test_a_store_of_any_version_before_the_release_gets_the_tables_of_a_new_store(
    address: str, other_address: str, version: str
) -> None:
    as_made_before(address, version)
    migrate_store(address)
    Store.open(address, create=False).close()
    Store.open(other_address).close()
    assert definitions(address) == definitions(other_address)
    assert migration_plan(address).version == schema.HEAD


def test_a_version_before_the_release_takes_a_released_store_for_a_newer_one() -> None:
    released = [step.version for step in released_steps()]
    assert all(re.fullmatch(r"\d{4}", version) for version in (*EVERY_VERSION, *released))
    assert sorted(EVERY_VERSION) == EVERY_VERSION
    assert max(EVERY_VERSION) < released[0] == "1001"
    assert [step.version for step in steps_after("0015")] == ["0016", "0017", *released]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_store_of_an_older_schema_is_brought_up_to_date_and_keeps_its_rows(
    address: str, other_address: str, version: str
) -> None:
    with cases.begun(other_address) as store:
        asyncio.run(_written(store))
        before = list(store.outcomes(cases.GRADING))
    as_made_before(address, version)
    fill(address, rows_of(other_address))
    migrate_store(address)
    with Store.open(address) as store:
        found = list(store.outcomes(cases.GRADING))
        assert store.run(cases.RUN) == cases.run()
        assert store.grading(cases.RUN) == cases.grading().model_copy(update={"passed_added": True})
        assert store.replies().add([]) == 0
        assert [hit.key.sample_id for hit in store.search("Flight")] == ["sample-2", "sample-1"]
        assert len(store.search("too short")) == 2
        asyncio.run(_written(store, 3))
    assert found == before
    assert [one.attempt.trajectory.test for one in found] == [None, None]
    assert definitions(address) == definitions(other_address)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_older_store_lists_its_samples_as_if_it_had_always_been_new(
    address: str, other_address: str, version: str
) -> None:
    async def write(store: Store) -> None:
        async with store.writer(cases.RUN, cases.GRADING, cases.FINGERPRINTS) as writer:
            await writer.put(cases.outcome(1, 1))
            await writer.put(cases.unfortunate(2))
            known: dict[int, Row] = {
                3: {"raw": 7.0, "passed": True},
                4: {"raw": 7.0, "passed": False},
                5: {"extra": {"passed": 7}},
            }
            for number, said in known.items():
                grade = Score.model_validate({"value": 0.75, "extra": {"odd": float("nan")}, **said})
                held = cases.outcome(number, number).attempt.model_copy(update={"sample": '{"tags": ["slow"]}'})
                await writer.put(Outcome(attempt=held, scores={"exact": grade, "judge": skipped("no judge")}))

    with cases.begun(other_address) as store:
        asyncio.run(write(store))
        before = store.browse.samples(cases.GRADING, sort="worst").samples
    as_made_before(address, version)
    fill(address, rows_of(other_address))
    migrate_store(address)
    with Store.open(address) as store:
        assert store.browse.samples(cases.GRADING, sort="worst").samples == before
        assert store.browse.count_samples(cases.GRADING, "tag:slow state:skipped worst<1") == 3
    assert [one.status for one in before] == ["error", "fail", "pass", "fail", "fail"]


def upgraded(address: str, other_address: str, *grades: Row) -> Outcome:
    """Return one conversation with its scores, which were written into a store of schema 0006 as these rows."""
    with cases.begun(other_address) as store:
        asyncio.run(_put(store, Outcome(attempt=cases.attempt(1, Trajectory()), scores={})))
    as_made_before(address, "0006")
    rows = rows_of(other_address)
    of = {"attempt_id": rows["attempts"][0]["id"], "grading_id": cases.GRADING}
    columns: Row = dict.fromkeys(("turn", "turns", "value", "passed", "metadata"))
    known: Row = {**columns, "kind": "grade", "state": "scored", "rationale": "so it was"}
    held = [{**known, **of, **grade, "metadata": json.dumps(grade.get("metadata"))} for grade in grades]
    insert(address, {**rows, "scores": held})
    migrate_store(address)
    with Store.open(address) as store:
        assert store.grading(cases.RUN).passed_added
        (found,) = store.outcomes(cases.GRADING)
    return found


def test_scores_made_before_pass_from_1_on_unless_their_metric_said_otherwise(address: str, other_address: str) -> None:
    passed = {"0.75": {"passed": True}, "1": {"passed": False}}
    found = upgraded(
        address,
        other_address,
        *({"name": f"by value {value}", "value": value} for value in (0.0, 0.99, 1.0)),
        *(
            {"name": f"said {value}", "value": float(value), "passed": int(said["passed"]), "metadata": said}
            for value, said in passed.items()
        ),
        {"name": "broken", "state": "error", "passed": 1, "metadata": {"passed": True, "score": 3}},
        {"name": "apart", "value": 0.5, "turns": 2},
        *({"name": "apart", "value": value, "turn": turn} for turn, value in enumerate((0.0, 1.0))),
        {"kind": "reward", "name": "reward", "value": 0.5},
    )
    assert {name: one.passed for name, one in found.scores.items()} == {
        "by value 0.0": False,
        "by value 0.99": False,
        "by value 1.0": True,
        "said 0.75": True,
        "said 1": False,
        "broken": None,
        "apart": False,
    }
    assert [turn.passed for turn in found.scores["apart"].turns or ()] == [False, True]
    assert found.reward is not None
    assert (found.reward.passed, found.reward.reason) == (False, "so it was")
    assert found.scores["broken"].extra == {"score": 3}


QUOTE = {"text": "no refund", "kind": "quote", "turn": 2, "verified": True}
NONE: list[Row] = []
LOST = {"text": "never said", "kind": "quote", "turn": None, "verified": False}


def test_what_a_metric_left_in_its_metadata_is_typed(address: str, other_address: str) -> None:
    goal = {
        "score": "partial",
        "passed": False,
        "confidence": 0.75,
        "judge_level": "complete",
        "criteria": [
            {"outcome": "a refund", "met": True, "kind": "action", "evidence": [LOST, QUOTE]},
            {"outcome": "no insult", "met": False, "kind": "never", "evidence": NONE},
            {"text": "be brief", "must": False, "met": True, "evidence": NONE},
        ],
        "violations": [{"what": "gave in", "evidence": [QUOTE]}],
        "evidence": [LOST, QUOTE, {**QUOTE, "text": "besides"}],
    }
    checks: list[Row] = [
        {"item": name, "answer": name, "evidence": NONE} for name in ("yes", "partly", "no", "not_applicable")
    ]
    harm: list[Row] = [{"what": "an insult", "severity": "major", "evidence": NONE}]
    found = upgraded(
        address,
        other_address,
        {"name": "goal", "value": 0.5, "passed": 0, "metadata": goal},
        {"name": "list", "value": 0.5, "metadata": {"score": 0.5, "checks": checks}},
        {"name": "harm", "value": 1.0, "passed": 1, "metadata": {"score": True, "passed": True, "violations": harm}},
        {"name": "count", "value": 1.0, "passed": 1, "metadata": {"score": 12, "passed": True, "tools": {"a": 12}}},
    ).scores
    seen = {name: [(one.kind, one.what, one.verdict, one.state) for one in found[name].findings] for name in found}
    assert seen == {
        "goal": [
            ("criterion", "a refund", "met", "pass"),
            ("prohibition", "no insult", "not met", "fail"),
            ("prohibition", "be brief", "met", "pass"),
            ("violation", "gave in", "violated", "fail"),
        ],
        "list": [
            ("check", name, name, state)
            for name, state in (("yes", "pass"), ("partly", "partial"), ("no", "fail"), ("not_applicable", "skip"))
        ],
        "harm": [("violation", "an insult", "major", "fail")],
        "count": [],
    }
    whole = found["goal"]
    assert (whole.raw, whole.confidence, whole.extra) == ("partial", 0.75, {"judge_level": "complete"})
    assert [one.turn for one in whole.findings] == [2, None, None, 2]
    assert [one.text for one in whole.findings[0].evidence] == ["never said", "no refund"]
    assert [one.text for one in whole.other_evidence] == ["besides"]
    assert (found["harm"].raw, found["count"].raw, found["count"].extra) == (True, 12.0, {"tools": {"a": 12}})


SOMEBODY_ELSES: list[Row] = [
    {"score": [1, 2], "confidence": "high", "evidence": ["a quote"]},
    {"score": float("nan"), "criteria": [{"name": "brief"}]},
    {"checks": [{"item": "a", "answer": "yes"}], "violations": "none", "criteria": []},
    {"checks": [{"item": "a", "answer": 3, "evidence": []}, {"item": "b", "answer": "yes", "evidence": []}]},
    {"evidence": [{**QUOTE, "turn": "2"}], "violations": [None]},
    {"per_turn_grades": [{"turn": 0}], "turns_total": 1},
]


@pytest.mark.parametrize("metadata", SOMEBODY_ELSES)
def test_what_somebody_elses_grader_left_there_stays(address: str, other_address: str, metadata: Row) -> None:
    found = upgraded(address, other_address, {"name": "own", "value": 0.5, "turns": 0, "metadata": metadata})
    own = found.scores["own"]
    assert json.dumps(own.extra) == json.dumps(metadata)
    assert (own.raw, own.confidence, own.findings, own.other_evidence) == (None, None, (), ())


def test_the_grades_of_turns_are_no_more_repeated(address: str, other_address: str) -> None:
    repeated = {"turns_passed": 1, "turns_total": 1, "per_turn_grades": "vivavoce:rows"}
    found = upgraded(
        address,
        other_address,
        {"name": "apart", "value": 1.0, "turns": 1, "metadata": {**repeated, "own": 1}},
        {"name": "apart", "value": 1.0, "turn": 0},
        {"name": "none", "state": "skipped", "turns": 0, "metadata": {**repeated, "per_turn_grades": []}},
    )
    assert [one.extra for one in found.scores.values()] == [{"own": 1}, {}]
    assert [turn.value for turn in found.scores["apart"].turns or ()] == [1.0]


def scores_of(address: str) -> list[tuple[Any, ...]]:
    """Return the scores of a store as they stand in it, whatever its schema."""
    engine = reach(Place(address), create=False)
    with engine.connect() as connection:
        found = [tuple(row) for row in connection.execute(text("SELECT * FROM scores ORDER BY id"))]
    engine.dispose()
    return found


async def _written(store: Store, *numbers: int) -> None:
    await _put(store, *(cases.outcome(number, number) for number in numbers or (1, 2)))


async def _put(store: Store, *outcomes: Outcome) -> None:
    async with store.writer(cases.RUN, cases.GRADING, cases.FINGERPRINTS) as writer:
        for one in outcomes:
            await writer.put(one)


@pytest.mark.parametrize(
    ("version", "at"),
    [
        *(("0001", "add_column"), ("0002", "add_column")),
        *(("0003", "create_index"), ("0003", "execute"), ("0004", "create_index")),
        *(("0006", "add_column"), ("0006", "drop_index"), ("0006", "create_index")),
    ],
)
def test_a_migration_that_is_killed_half_way_leaves_the_older_schema(
    address: str, other_address: str, version: str, at: str
) -> None:
    with cases.begun(other_address) as store:
        asyncio.run(_written(store))
    as_made_before(address, version)
    fill(address, rows_of(other_address))
    before, held = definitions(address), scores_of(address)
    done = subprocess.run([program("python"), "-c", STOP, address, at], check=False)
    assert done.returncode == 9
    assert (definitions(address), scores_of(address)) == (before, held)
    migrate_store(address)
    with Store.open(address) as store:
        assert store.run("latest") == cases.run()
        assert len(list(store.outcomes(cases.GRADING))) == 2
    assert definitions(address) == definitions(other_address)


async def test_what_a_tester_leaves_is_kept(address: str) -> None:
    older = {"score": "met", "reasoning": "Grüße", "details": {"is_successful": True, "evidence": ["Hi"]}}
    told = kept_test(history=[kept_turn(reasoning="Grüße 🎓 \x00")], evaluation={"goal": older})
    assert (told.evaluation["goal"].raw, told.evaluation["goal"].passed) == ("met", True)
    held = cases.outcome(1)
    talk = held.attempt.trajectory.model_copy(update={"test": told})
    held = held.model_copy(update={"attempt": held.attempt.model_copy(update={"trajectory": talk})})
    with cases.begun(address) as store:
        async with store.writer(cases.RUN, cases.GRADING, cases.FINGERPRINTS) as writer:
            await writer.put(held)
        (found,) = store.outcomes(cases.GRADING)
    assert found.attempt.trajectory.test == told


def test_an_older_store_in_a_read_only_folder_is_to_be_copied_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def may_not(*_: object, **__: object) -> bool:
        return False

    as_made_before(str(tmp_path / "old.db"), "0001")
    monkeypatch.setattr("os.access", may_not)  # root may write everywhere
    with pytest.raises(StoreError, match=r"old\.db: written by an older vivavoce.* read-only.*copy it elsewhere"):
        migrate_store(str(tmp_path / "old.db"))


def test_the_newest_step_leads_to_the_schema_we_know() -> None:
    assert released_steps()[-1].version == schema.HEAD


def test_alembic_is_not_imported_for_a_new_store(tmp_path: Path) -> None:
    opening = [sys.executable, "-c", OPEN, tmp_path / "x.db"]
    outputs = [subprocess.run(opening, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert outputs == ["False\n", "False\n"]


def test_processes_that_make_one_store_at_once_all_succeed(address: str) -> None:
    children = [subprocess.Popen([program("python"), "-c", OPEN, address]) for _ in range(4)]
    assert [child.wait() for child in children] == [0, 0, 0, 0]
    with Store.open(address, create=False) as store:
        store.add_run(cases.run())


def test_a_store_of_an_older_schema_is_refused_and_left_alone(address: str) -> None:
    as_made_before(address, "0013")
    before = definitions(address)
    for create in (False, True):
        with pytest.raises(OlderSchema, match=r"older vivavoce \(schema 0013.* viva store migrate --store "):
            Store.open(address, create=create)
    assert definitions(address) == before


def test_a_store_that_another_process_has_open_is_not_migrated(address: str) -> None:
    as_made_before(address, "0013")
    before = definitions(address)
    other = subprocess.Popen([sys.executable, "-c", HOLD, address], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdout is not None
    assert other.stdout.readline() == b"open\n"
    with pytest.raises(StoreInUse, match="stop all servers and runs first"):
        migrate_store(address)
    assert definitions(address) == before
    other.communicate()
    migrate_store(address)
    plan = migration_plan(address)
    assert (plan.version, plan.steps) == (schema.HEAD, ())
    Store.open(address, create=False).close()


@pytest.mark.parametrize("option", ["application_name=mine", f"application_name={'x' * 70}"])
def test_a_connection_of_another_name_is_seen_before_a_migration(database: str, option: str) -> None:
    as_made_before(database, "0013")
    named = f"{database}{'&' if '?' in database else '?'}{option}"
    other = subprocess.Popen([sys.executable, "-c", HOLD, named], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdout is not None
    assert other.stdout.readline() == b"open\n"
    with pytest.raises(StoreInUse):
        migrate_store(database)
    other.communicate()
    migrate_store(named)


def execute(address: str, statement: str) -> None:
    """Run a statement."""
    engine = reach(Place(address), create=True)
    with engine.connect() as connection, for_writing(connection).begin():
        connection.exec_driver_sql(statement)
    engine.dispose()


def test_a_newer_schema_asks_for_a_newer_vivavoce(address: str) -> None:
    cases.begun(address).close()
    before = definitions(address)
    execute(address, "UPDATE alembic_version SET version_num = '1999'")
    with pytest.raises(StoreError, match=r"newer vivavoce \(schema 1999, .* pip install --upgrade vivavoce"):
        Store.open(address)
    assert definitions(address) == before


@pytest.mark.parametrize("versioned", [False, True])
def test_the_database_of_another_program_is_left_alone(address: str, versioned: bool) -> None:
    execute(address, "CREATE TABLE notes (text VARCHAR)")
    if versioned:
        execute(address, "CREATE TABLE alembic_version (version_num VARCHAR)")
        execute(address, "INSERT INTO alembic_version VALUES ('f3a9c0d1e2b4')")
    before = definitions(address)
    with pytest.raises(UsageError, match="is a database of another program"):
        Store.open(address)
    assert definitions(address) == before


def test_an_upgrade_that_breaks_off_leaves_nothing_half_done(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    limited = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)); " + OPEN
    done = subprocess.run([sys.executable, "-B", "-c", limited, path], capture_output=True, text=True, check=False)
    assert "StoreError" in done.stderr
    assert definitions(str(path)) == set()
    cases.begun(path).close()


@pytest.mark.parametrize("version", [version for version in EVERY_VERSION if version >= "0007"])
def test_a_store_from_before_the_release_keeps_its_runs_and_scores(
    address: str, other_address: str, version: str
) -> None:
    with cases.begun(other_address) as store:
        asyncio.run(_written(store))
        before = list(store.outcomes(cases.GRADING))
    as_made_before(address, version)
    insert(address, rows_of(other_address))
    migrate_store(address)
    with Store.open(address) as store:
        assert store.run("latest", whole=True) == cases.run()
        assert list(store.outcomes(cases.GRADING)) == before
    assert definitions(address) == definitions(other_address)


def test_lists_of_an_older_store_know_usage_targets_and_errors(address: str, other_address: str) -> None:
    async def write(store: Store) -> None:
        judged = Score(value=0.5, usage=Usage(input_tokens=7, calls=1, cost=0.5))
        async with store.writer(cases.RUN, cases.GRADING, cases.FINGERPRINTS) as writer:
            await writer.put(cases.outcome(1, 1))
            await writer.put(cases.unfortunate(2))
            test = kept_test(usage={"tester": Usage(input_tokens=3, calls=1, cost=0.25), "target": Usage(calls=2)})
            talk = cases.outcome(3).attempt.trajectory.model_copy(update={"test": test})
            await writer.put(Outcome(attempt=cases.attempt(3, talk, "b2", 3), scores={"judge": judged}))
            broken = failed(cases.BROKEN.model_copy(update={"message": "ü\n"}))
            await writer.put(Outcome(attempt=cases.attempt(4, Trajectory(), "bot", 4), scores={"exact": broken}))
            nothing = Score(state="error", reason="no idea")
            await writer.put(Outcome(attempt=cases.attempt(5, Trajectory(), "bot", 5), scores={"exact": nothing}))

    with cases.begun(other_address) as store:
        asyncio.run(write(store))
    rows = rows_of(other_address)
    as_made_before(address, "0008")
    insert(address, rows)
    migrate_store(address)
    made, upgraded_to = (
        sorted(found["standings"], key=lambda row: row["position"]) for found in (rows, rows_of(address))
    )
    assert upgraded_to == made
    assert [row["tokens"] for row in made] == [None, 1, 10, None, None]
    assert len({row["cause"] for row in made}) == 4
    assert definitions(address) == definitions(other_address)


async def _write(store: Store) -> None:
    async with store.writer(cases.RUN, cases.GRADING, cases.FINGERPRINTS) as writer:
        await writer.put(cases.outcome(1))


@pytest.mark.parametrize(
    ("version", "said"), [("9999", "written by a newer vivavoce"), ("0001", "its schema changed to 0001")]
)
def test_a_schema_that_another_process_changes_is_noticed_by_who_reads_and_writes(
    address: str, version: str, said: str
) -> None:
    with cases.begun(address) as store:
        assert store.run("latest") == cases.run()
        execute(address, f"UPDATE alembic_version SET version_num = '{version}'")
        with pytest.raises(StoreError, match=said):
            store.run("latest")
        with pytest.raises(StoreError, match=said):
            store.update_run(cases.run())
        with pytest.raises(StoreError, match=said):
            asyncio.run(_write(store))
        execute(address, f"UPDATE alembic_version SET version_num = '{HEAD}'")
        assert store.run("latest") == cases.run()
        assert store.counts(cases.RUN) == (0, 0)


def test_tables_that_are_gone_are_said_to_be(address: str) -> None:
    with cases.begun(address) as store:
        execute(address, "DROP TABLE alembic_version")
        with pytest.raises(StoreError, match="its tables are gone"):
            store.run("latest")


def test_a_file_that_is_deleted_is_not_written_to_and_no_other_is_made(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with cases.begun(path) as store:
        path.rename(tmp_path / "kept.db")
        with pytest.raises(StoreError, match=r"x\.db: the file has been deleted or moved"):
            asyncio.run(_write(store))
        with (
            pytest.raises(StoreError, match="deleted or moved"),
            store.database.connected(),
            store.database.connected() as other,
        ):
            other.begin()
        assert not path.exists()
        (tmp_path / "kept.db").rename(path)
        asyncio.run(_write(store))
        assert store.counts(cases.RUN) == (1, 0)


def test_another_file_in_its_place_is_not_taken_for_it(tmp_path: Path) -> None:
    with cases.begun(tmp_path / "x.db") as store:
        cases.begun(tmp_path / "other.db").close()
        os.replace(tmp_path / "other.db", tmp_path / "x.db")
        with pytest.raises(StoreError, match="another file has been put in its place"):
            store.runs()
