from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from vivavoce.errors import StoreError
from vivavoce.store.database import server_connection
from vivavoce.store.database.server_connection import ServerConnection
from vivavoce.store.store import Store

from ..postgresql import Server, server


@pytest.fixture(scope="module")
def own_server() -> Iterator[Server]:
    """A server that may be frozen: nobody else uses it."""
    with server() as running:
        yield running


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_connection, "QUIET_SECONDS", 0.3)
    monkeypatch.setattr(server_connection, "PROBE_SECONDS", 2)


def test_a_store_whose_server_is_frozen_is_an_error_and_is_read_when_it_goes_on(own_server: Server) -> None:
    with own_server.database() as address, Store.open(address) as store:
        assert store.runs() == []
        with own_server.frozen(), pytest.raises(StoreError, match="the server does not answer"):
            store.runs()
        assert store.runs() == []


def test_a_statement_may_take_long(own_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    probes: list[str] = []
    latest = psycopg.connect

    def connect(address: str, **options: Any) -> psycopg.Connection:
        probes.append(address)
        return latest(address, **options)

    monkeypatch.setattr(psycopg, "connect", connect)
    with ServerConnection.connect(own_server.address(user="guarded"), password="geheim") as connection:
        assert connection.execute("SELECT 'done' FROM pg_sleep(1.2)").fetchone() == ("done",)
    assert len(probes) >= 2
    assert all("geheim" in address for address in probes)


def test_a_server_that_refuses_a_second_connection_answers(own_server: Server) -> None:
    own_server.run("ALTER ROLE guarded CONNECTION LIMIT 1")
    own_server.run("ALTER ROLE guarded NOSUPERUSER")
    with ServerConnection.connect(own_server.address(user="guarded"), password="geheim") as connection:
        with pytest.raises(psycopg.OperationalError, match="too many connections"):
            psycopg.connect(own_server.address(user="guarded"), password="geheim")
        assert connection.execute("SELECT 'done' FROM pg_sleep(0.8)").fetchone() == ("done",)
