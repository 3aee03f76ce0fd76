from __future__ import annotations

from vivavoce.store.store import Store

from .live import get, send


def test_the_api_is_described_by_what_the_library_reads(server: str) -> None:
    described = get(f"{server}/openapi.json").json()
    for path in ("/api/v1/runs", "/api/v1/evaluations", "/api/v1/jobs/{job}/events", "/api/v1/comparisons"):
        assert path in described["paths"]
    for operations in described["paths"].values():
        for operation in operations.values():
            assert operation["responses"].keys() & {"200", "202", "201", "204"}


def test_every_error_has_one_form(server: str) -> None:
    for method, path, status in (
        ("GET", "/api/v1/nothing", 404),
        ("PUT", "/api/v1/runs", 405),
        ("POST", "/api/v1/jobs", 422),
    ):
        reply = send(method, server + path)
        assert (reply.status, list(reply.json())[:2]) == (status, ["detail", "code"])


def test_reading_changes_nothing_in_the_store(server: str, store: Store) -> None:
    before = store.run("latest")
    for path in ("runs", "runs/latest", "runs/latest/samples?filter=said%3C1", "runs/latest/errors", "jobs", "health"):
        assert get(f"{server}/api/v1/{path}").status == 200
    assert store.run("latest") == before
