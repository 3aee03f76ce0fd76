"""What a PostgreSQL user with few rights can do, and which schema of the database holds the store."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterator

import pytest

from command_line import run_viva
from vivavoce.errors import StoreError, UsageError
from vivavoce.records.run import Run
from vivavoce.store.database.address import Place
from vivavoce.store.maintenance.migration import migration_plan
from vivavoce.store.store import Store

from .. import cases
from ..cases import FINGERPRINTS, GRADING, RUN
from ..postgresql import Server

READ_GRANTS = "GRANT USAGE ON SCHEMA public TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader"
INDEX_GRANTS = (
    "GRANT INSERT, UPDATE, DELETE ON unread, passages TO reader; GRANT USAGE ON SEQUENCE passages_id_seq TO reader"
)
WRITE_GRANTS = (
    "GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO reader; "
    "GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO reader"
)


@pytest.fixture
def team(database: str, postgresql: Server) -> Iterator[str]:
    """The address of a database whose `public` holds a store with a finished run and a user `reader` without rights."""
    name = Place(database).rpartition("/")[2].partition("?")[0]
    postgresql.run("CREATE ROLE reader LOGIN")
    postgresql.run("REVOKE ALL ON SCHEMA public FROM public", name)
    with cases.begun(database) as store:
        _finish(store)
    yield name
    postgresql.run("DROP OWNED BY reader CASCADE", name)
    postgresql.run("DROP ROLE reader")


def _finish(store: Store) -> None:
    async def put() -> None:
        async with store.writer(RUN, GRADING, FINGERPRINTS) as writer:
            for number in range(3):
                await writer.put(cases.outcome(number, number))

    asyncio.run(put())
    store.update_grading(store.grading(RUN).model_copy(update={"finished_at": 2001.0}))
    store.update_run(store.run(RUN).model_copy(update={"status": "finished", "finished_at": 2001.0}))


@pytest.mark.parametrize(
    "command",
    [
        "runs",
        "show",
        "show latest sample-1",
        "export latest --output all.html",
        "export latest --output all.jsonl",
        "export latest --output all.csv",
        f"compare {RUN} latest",
        "clusters",
        "groups",
        "labels export",
        "store info",
        "store audit",
        "store migrate",
        "jobs",
        "batches",
        "cache",
        "token list",
        "search 'Flight 1'",
    ],
)
def test_a_user_that_may_only_read_can_use_each_reading_command(team: str, postgresql: Server, command: str) -> None:
    postgresql.run(READ_GRANTS, team)
    with Store.open(postgresql.address(team)) as store:
        store.index_pending()
    answer = run_viva(*shlex.split(command), VIVAVOCE_STORE=postgresql.address(team, "reader"))
    assert (answer.returncode, "permission denied" in answer.stderr) == (0, False), answer.stderr


def test_a_search_that_needs_an_index_names_the_right_to_write_one(team: str, postgresql: Server) -> None:
    postgresql.run(READ_GRANTS, team)
    with Store.open(postgresql.address(team, "reader")) as store:
        with pytest.raises(StoreError, match=r"6 of the texts .* not indexed yet, and this user may only read.*GRANT"):
            store.search("flight")
        postgresql.run(INDEX_GRANTS, team)
        assert len(store.search("flight")) == 3


def test_a_user_that_is_not_the_owner_indexes_many_texts(
    team: str, postgresql: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vivavoce.store.search.search.BATCH", 2)
    postgresql.run(f"{READ_GRANTS}; {INDEX_GRANTS}", team)
    with Store.open(postgresql.address(team, "reader")) as store:
        assert store.index_pending() == 6


def test_a_change_without_the_right_is_refused_and_made_with_it(team: str, postgresql: Server) -> None:
    postgresql.run(READ_GRANTS, team)
    other = cases.run("other")
    with Store.open(postgresql.address(team, "reader")) as store:
        with pytest.raises(StoreError, match=r"permission denied for table runs: .*'Rights of a user'"):
            store.add_run(other)
        postgresql.run(WRITE_GRANTS, team)
        store.add_run(other)
        assert _ids(store.runs()) == {RUN, "other"}


def test_a_user_without_any_right_is_not_told_that_there_is_no_store(team: str, postgresql: Server) -> None:
    for command in ("runs", "store info", "store migrate"):
        answer = run_viva(*command.split(), VIVAVOCE_STORE=postgresql.address(team, "reader"))
        assert answer.returncode == 3
        assert "no schema that exists and that this user may use" in answer.stderr
        assert "GRANT USAGE ON SCHEMA" in answer.stderr


def test_an_empty_schema_of_the_user_does_not_shadow_the_store(team: str, postgresql: Server) -> None:
    postgresql.run(f"{READ_GRANTS}; {WRITE_GRANTS}; CREATE SCHEMA reader AUTHORIZATION reader", team)
    with Store.open(postgresql.address(team, "reader"), create=False) as store:
        store.add_run(cases.run("other"))
    with Store.open(postgresql.address(team)) as store:
        assert _ids(store.runs()) == {RUN, "other"}
    assert migration_plan(postgresql.address(team, "reader")).steps == ()


def test_a_table_of_another_program_in_the_schema_of_the_user_does_not_shadow_ours(
    team: str, postgresql: Server
) -> None:
    postgresql.run(f"{READ_GRANTS}; {WRITE_GRANTS}; CREATE SCHEMA reader AUTHORIZATION reader", team)
    postgresql.run("CREATE TABLE reader.runs (id text); GRANT ALL ON reader.runs TO reader", team)
    with Store.open(postgresql.address(team, "reader"), create=False) as store:
        assert _ids(store.runs()) == {RUN}
        store.add_run(cases.run("other"))
        assert _ids(store.runs()) == {RUN, "other"}


def test_two_stores_of_one_search_path_are_refused_until_one_is_named(team: str, postgresql: Server) -> None:
    postgresql.run(f"{READ_GRANTS}; CREATE SCHEMA reader AUTHORIZATION reader", team)
    address = postgresql.address(team, "reader")
    own = f"{address}&options=-csearch_path%3Dreader"
    with Store.open(own) as store:
        store.add_run(cases.run("mine"))
    with pytest.raises(UsageError, match=r"schemas reader and public .*options=-csearch_path%3Dreader"):
        Store.open(address)
    with Store.open(own) as store, Store.open(f"{address}&options=-csearch_path%3Dpublic") as other:
        assert (_ids(store.runs()), _ids(other.runs())) == ({"mine"}, {RUN})


def _ids(runs: list[Run]) -> set[str]:
    return {run.id for run in runs}
