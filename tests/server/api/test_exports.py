from __future__ import annotations

import csv
import io
import json
import os
import xml.etree.ElementTree as ET
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection, HTTPResponse, IncompleteRead
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from vivavoce.client import Client
from vivavoce.errors import Fault, UsageError
from vivavoce.records.run import Outcome
from vivavoce.report.export import export
from vivavoce.server import connection
from vivavoce.server.api.exports import KINDS
from vivavoce.server.app import EXPORTS
from vivavoce.store.store import Store

from ..live import get, serving
from ..pages.cases import keep, outcome, turn
from ..pages.hostile import TEXTS


@pytest.mark.parametrize("to", KINDS)
def test_a_run_is_exported_as_the_command_does(server: str, store: Store, tmp_path: Path, to: str) -> None:
    run = store.run("latest")
    export(store, run, store.grading(run.id), to, tmp_path / "made")
    reply = get(f"{server}/api/v1/runs/latest/export?format={to}")
    kind, ending = KINDS[to]
    assert (reply.status, reply.headers["content-type"]) == (200, kind)
    assert reply.headers["content-disposition"] == f'attachment; filename="{run.id}{ending}"'
    assert reply.body == (tmp_path / "made").read_bytes()


def test_an_export_is_what_its_type_says(server: str) -> None:
    url = f"{server}/api/v1/runs/latest/export?format="
    assert len(json.loads(get(f"{url}json").body)["samples"]) == 3
    lines = get(f"{url}jsonl").text.splitlines()
    assert [Outcome.model_validate_json(line).attempt.key.sample_id for line in lines] == ["kind", "a/b", "broken"]
    assert len(list(csv.DictReader(io.StringIO(get(f"{url}csv").text)))) == 5
    assert ET.fromstring(get(f"{url}junit").body).tag == "testsuites"


@pytest.mark.parametrize("name", [*TEXTS, 'x"\r\nset-cookie: a=b', "Größe", "/etc/passwd", "a" * 500])
def test_no_name_of_a_run_breaks_out_of_the_name_of_the_file(store: Store, name: str) -> None:
    keep(store, [outcome()], name, at=9e9)
    with serving(store) as url:
        headers = get(f"{url}/api/v1/runs/latest/export?format=csv").headers
    kept = headers["content-disposition"].removeprefix('attachment; filename="').removesuffix('"')
    assert kept.isascii()
    assert kept.endswith(".csv")
    assert not set(kept) & set('/\\"\r\n;:<>')
    assert not kept.startswith(".")
    assert "set-cookie" not in headers


def test_what_cannot_be_exported_is_told(server: str) -> None:
    for path, status in (
        ("runs/latest/export?format=letta", 422),
        ("runs/latest/export?format=", 422),
        ("runs/nothing/export", 404),
        ("runs/latest/export?grading=nothing", 404),
    ):
        reply = get(f"{server}/api/v1/{path}")
        assert (reply.status, list(reply.json())[:2]) == (status, ["detail", "code"])


def test_a_disk_without_room_for_the_file_is_told(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    reply = get(f"{server}/api/v1/runs/latest/export?format=parquet")
    assert (reply.status, list(reply.json())[:2]) == (503, ["detail", "code"])


CHARS = 200_000
CONVERSATIONS = 150


@pytest.fixture
def large(store: Store) -> Iterator[str]:
    """The address of the export of a run that is larger than what lies between a server and a client that waits."""
    texts = [os.urandom(CHARS // 2).hex() for _ in range(CONVERSATIONS)]  # compressed, they are large too
    keep(store, [outcome(f"s{n}", [turn(0, "Hi", text)], position=n) for n, text in enumerate(texts)], "large", at=9e9)
    with serving(store) as url:
        yield url


@contextmanager
def opened(url: str) -> Generator[HTTPResponse]:
    with closing(HTTPConnection(urlsplit(url).netloc, timeout=60)) as connection:
        connection.request("GET", "/api/v1/runs/large/export?format=jsonl")
        with connection.getresponse() as answer:
            yield answer


def test_an_export_is_sent_while_it_is_written_and_cut_off_if_its_run_is_deleted(large: str, store: Store) -> None:
    with opened(large) as answer:
        assert (answer.status, answer.getheader("content-length")) == (200, None)
        assert len(answer.read(100)) == 100
        store.maintenance.delete_run("large", "test")
        with pytest.raises(IncompleteRead):
            answer.read()


def test_the_client_reads_an_export_as_a_stream(large: str, store: Store, tmp_path: Path) -> None:
    run = store.run("large")
    export(store, run, store.grading(run.id), "jsonl", tmp_path / "made")
    with Client(large) as client:
        client.export_to(tmp_path / "streamed", "large", "jsonl")
        assert (tmp_path / "streamed").read_bytes() == (tmp_path / "made").read_bytes()
    with Client(large) as client:  # a new connection: the kernel may hold a whole export for one that has read much
        chunks = client.export_chunks("large", "jsonl")
        assert next(chunks)
        store.maintenance.delete_run("large", "test")
        with pytest.raises(Fault, match="connection broke"):
            list(chunks)
        with pytest.raises(UsageError, match="large"):
            client.export_to(tmp_path / "none", "large")
    assert not (tmp_path / "none").exists()


def test_who_leaves_an_export_gives_up_its_place(large: str) -> None:
    for _ in range(2 * EXPORTS):
        with opened(large) as answer:
            assert answer.read(1)
    with Client(large) as client:
        assert client.export("large", "jsonl").count(b"\n") == CONVERSATIONS


def test_a_user_who_does_not_read_exports_leaves_places_to_others(
    large: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = {
        name: {"authorization": f"Bearer {store.tokens.create(name, 'read')[1]}"} for name in ("greedy", "modest")
    }
    monkeypatch.setattr(connection, "STALL_SECONDS", 2.0)
    monkeypatch.setattr(connection, "CHECK_SECONDS", 0.1)
    path = "/api/v1/runs/large/export?format=jsonl"
    with ExitStack() as stack:
        for _ in range(2 * EXPORTS):
            client = stack.enter_context(closing(HTTPConnection(urlsplit(large).netloc, timeout=60)))
            client.request("GET", path, headers=tokens["greedy"])
        export = get(large + path, tokens["modest"])
        assert (export.status, export.body.count(b"\n")) == (200, CONVERSATIONS)
        export = get(large + path, tokens["greedy"])  # those who do not read are disconnected, one after another
        assert (export.status, export.body.count(b"\n")) == (200, CONVERSATIONS)
