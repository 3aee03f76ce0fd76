"""Rows of datasets through the API, the client and the page, and where a server may write them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fastapi import Request, Response

from vivavoce import Client, UsageError
from vivavoce.server.policy import ServerPolicy
from vivavoce.server.process_route import RequestProcesses
from vivavoce.store.store import Store

from .live import get, send, serving
from .pages.cases import keep, outcome, turn
from .pages.test_sign_in import fields, submit

ROW = "/api/v1/runs/latest/samples/kind/0/row"


def post(url: str, **body: str) -> tuple[int, dict[str, object]]:
    headers = {"content-type": "application/json"}
    reply = send("POST", url, json.dumps(body).encode(), headers)
    return reply.status, reply.json()


def test_a_row_is_returned_and_nothing_is_written(server: str, workspace: Path) -> None:
    before = sorted(workspace.rglob("*"))
    status, found = post(server + ROW)
    assert status == 200
    row = found["row"]
    assert isinstance(row, dict)
    assert (row["id"], row["input"], row["ground_truth"]) == (
        "kind",
        ["Refund, please", "Thanks"],
        ["refund", "welcome"],
    )
    assert (found["cut"], found["file"], found["added"]) == ({}, None, False)
    assert sorted(workspace.rglob("*")) == before


def test_a_server_writes_only_where_it_was_started_to(server: str, workspace: Path) -> None:
    status, found = post(server + ROW, to="captured.jsonl")
    assert (status, "this server does not write datasets" in str(found["detail"])) == (422, True)
    assert not (workspace / "captured.jsonl").exists()


def test_a_row_is_added_to_a_file_of_the_folder_once(store: Store, workspace: Path) -> None:
    with serving(store, ServerPolicy(workspace, writes_datasets=True)) as url:
        status, found = post(url + ROW, to="suites/rows.jsonl")
        assert (status, found["id"], found["added"]) == (200, "kind", True)
        assert post(url + ROW, to="suites/rows.jsonl")[1]["added"] is False
        with Client(url) as client:
            known = client.capture("latest", "a/b", to="suites/rows.jsonl")
            assert (known.id, known.added, known.row["input"]) == ("a/b", True, "Where is it?")
            with pytest.raises(UsageError, match=r"rows\.txt|ends with \.jsonl"):
                client.capture("latest", "kind", to="rows.txt")
    lines = (workspace / "suites" / "rows.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["kind", "a/b"]


@pytest.mark.parametrize(
    "name", ["../out.jsonl", "/tmp/out.jsonl", ".vivavoce/jobs/x.jsonl", "rows.csv", "none/rows.jsonl", "a\0.jsonl", ""]
)
def test_other_places_are_refused(store: Store, workspace: Path, name: str) -> None:
    (workspace / "served").mkdir()
    with serving(store, ServerPolicy(workspace / "served", writes_datasets=True)) as url:
        status, found = post(url + ROW, to=name)
    assert (status, "name a file in the served folder" in str(found["detail"])) == (422, True)
    assert not list(workspace.rglob("*.jsonl"))


def test_a_link_does_not_lead_out_of_the_folder(store: Store, workspace: Path) -> None:
    (workspace / "served").mkdir()
    (workspace / "served" / "rows.jsonl").symlink_to(workspace / "secret.jsonl")
    with serving(store, ServerPolicy(workspace / "served", writes_datasets=True)) as url:
        assert post(url + ROW, to="rows.jsonl")[0] == 422
    assert not (workspace / "secret.jsonl").exists()


def test_a_broken_file_stays_and_its_path_is_that_in_the_folder(store: Store, workspace: Path) -> None:
    (workspace / "rows.jsonl").write_text('{"id": ')
    with serving(store, ServerPolicy(workspace, writes_datasets=True)) as url:
        status, found = post(url + ROW, to="rows.jsonl")
    assert status == 422
    assert str(found["detail"]).startswith("rows.jsonl:1")
    assert (workspace / "rows.jsonl").read_text() == '{"id": '


@pytest.mark.parametrize(
    ("place", "body", "status"),
    [
        ("/api/v1/runs/none/samples/kind/0/row", {}, 404),
        ("/api/v1/runs/latest/samples/none/0/row", {}, 404),
        ("/api/v1/runs/latest/samples/kind/7/row", {}, 404),
        (ROW, {"target": "other"}, 404),
        (ROW, {"region": "Xx"}, 422),
        (ROW, {"file": "x"}, 422),
    ],
)
def test_what_cannot_be_captured_says_why(server: str, place: str, body: dict[str, str], status: int) -> None:
    assert post(server + place, **body)[0] == status


def test_a_reader_may_not(store: Store) -> None:
    with serving(store, demanded=True) as url:
        headers = {
            "authorization": f"Bearer {store.tokens.create('bo', 'read')[1]}",
            "content-type": "application/json",
        }
        assert send("POST", url + ROW, b"{}", headers).status == 403
        page = get(f"{url}/runs/latest/samples/kind", headers)
        assert (page.status, "Create a dataset row" in page.text) == (200, False)


def test_the_button_of_the_page_shows_the_row_to_copy(server: str, workspace: Path) -> None:
    page = get(f"{server}/runs/latest/samples/kind")
    assert "Create a dataset row" in page.text
    form = {**fields(page), "run": "latest", "sample": "kind", "trial": "1"}
    reply = submit(f"{server}/capture", form)
    assert reply.status == 200
    assert "Refund, please" in reply.text
    assert "This server does not write datasets; copy the row." in reply.text
    assert not list(workspace.rglob("*.jsonl"))
    assert submit(f"{server}/capture", {**form, "form_key": "x"}).status == 403
    assert submit(f"{server}/capture", {**form, "trial": "0"}).status == 422


def test_the_page_adds_the_row_where_the_server_may_write(store: Store, workspace: Path) -> None:
    with serving(store, ServerPolicy(workspace, writes_datasets=True)) as url:
        form = {**fields(get(f"{url}/runs/latest/samples/kind")), "run": "latest", "sample": "kind", "trial": "1"}
        shown = submit(f"{url}/capture", form)
        assert 'value="captured.jsonl"' in shown.text
        assert "Add it" in shown.text
        done = submit(f"{url}/capture", {**form, "to": "captured.jsonl"})
        assert (done.status, "Added to captured.jsonl, as &#39;kind&#39;." in done.text) == (200, True)
        again = submit(f"{url}/capture", {**form, "to": "captured.jsonl"})
        assert "It already exists" in again.text
        wrong = submit(f"{url}/capture", {**form, "to": "../x.jsonl"})
        assert (wrong.status, "name a file in the served folder" in wrong.text) == (422, True)
    assert len((workspace / "captured.jsonl").read_text().splitlines()) == 1


def test_what_a_row_holds_is_text_on_the_page(tmp_path: Path) -> None:
    with Store.open(tmp_path / "kept.db") as empty:
        name = "<script>xss()</script>"
        keep(empty, [outcome(name, [turn(0, name, name)])])
        with serving(empty) as url:
            form = {**fields(get(f"{url}/label")), "run": "run-1", "sample": name, "trial": "1"}
            form["form_key"] = fields(get(f"{url}/runs/run-1/samples/%3Cscript%3Exss()%3C%2Fscript%3E"))["form_key"]
            reply = submit(f"{url}/capture", form)
    assert reply.status == 200
    assert "<script>xss" not in reply.text
    assert "&lt;script&gt;xss()" in reply.text


@pytest.mark.parametrize("path", [ROW, "/capture"])
def test_personal_data_is_searched_for_in_a_process(server: str, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    async def answer(processes: RequestProcesses, request: Request) -> Response:
        del processes
        return Response(json.dumps({"in a process": request.url.path}))

    monkeypatch.setattr(RequestProcesses, "answer", answer)
    assert post(server + path) == (200, {"in a process": path})
