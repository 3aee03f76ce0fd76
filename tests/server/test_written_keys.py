"""Keys of the environment, in everything that people write over the API: none is stored."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from sqlalchemy import select

from vivavoce.records.redaction import MARK
from vivavoce.store.database.schema import metadata
from vivavoce.store.store import Store

from .live import get, send

KEY = 'ak-7Hq93"kfjJ/DKdk3kd'
RUN = "/api/v1/runs/latest"
WRITES: list[tuple[str, str, dict[str, object]]] = [
    ("PATCH", RUN, {"title": f"with {KEY}", "notes": f"with {KEY}", "tags": [f"tag-{KEY}"]}),
    ("POST", f"{RUN}/samples/kind/0/comments", {"text": f"with {KEY}"}),
    ("PUT", f"{RUN}/samples/kind/0/labels?grader=said", {"verdict": "pass", "note": f"with {KEY}"}),
    ("POST", "/api/v1/views", {"name": f"view {KEY}", "path": f"/?q={quote(KEY)}"}),
    ("POST", "/api/v1/views", {"name": f"view {KEY}", "path": "/"}),
    ("POST", "/api/v1/label-queues", {"run": "latest", "people": [f"person {KEY}"], "overlap": 1}),
]


def test_keys_are_cut_out_of_what_people_write(server: str, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", KEY)
    run = store.run("latest").id
    store.webhooks.add("https://example.org/hook", ["comment.added"], actor="anna")
    for method, path, body in WRITES:
        answer = send(method, server + path.replace("latest", run), body)
        assert answer.status in (200, 201), answer.text
        assert KEY not in json.dumps(answer.json()).replace('\\"', '"')
    rows = "\n".join(stored_texts(store))
    assert rows.count(MARK) >= 10
    for spelling in (KEY, json.dumps(KEY)[1:-1], KEY[:9]):
        assert spelling not in rows
    views = get(f"{server}/api/v1/views").json()
    assert [(view["name"], view["path"]) for view in views] == [(f"view {MARK}", "/")]
    (queue,) = get(f"{server}/api/v1/label-queues?person=person%20{MARK}").json()
    assert [person["person"] for person in queue["people"]] == [f"person {MARK}"]


def stored_texts(store: Store) -> list[str]:
    """Return every text of every table."""
    with store.database.connected() as connection:
        return [
            value
            for table in metadata.sorted_tables
            for row in connection.execute(select(table))
            for value in row
            if isinstance(value, str)
        ]
