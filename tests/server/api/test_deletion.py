from __future__ import annotations

import pytest

from vivavoce.store.store import Store

from ..live import get, send, serving


def test_a_run_is_deleted_with_all_that_belongs_to_it_and_who_did_is_noted(store: Store) -> None:
    run = store.run("latest")
    headers = {"authorization": f"Bearer {store.tokens.create('ida', 'admin', actor='root')[1]}"}
    with serving(store, demanded=True) as url:
        assert send("DELETE", f"{url}/api/v1/runs/{run.id}", headers=headers).status == 204
        assert get(f"{url}/api/v1/runs/{run.id}", headers).status == 404
        assert send("DELETE", f"{url}/api/v1/runs/{run.id}", headers=headers).status == 404
        newest, *_ = get(f"{url}/api/v1/audit", headers).json()["entries"]
    assert (newest["actor"], newest["action"], newest["subject"]) == ("ida", "run.delete", run.id)
    assert newest["detail"] == {"suite": "refunds", "conversations": 3}
    rows = store.maintenance.contents().rows
    assert not any(rows[table] for table in ("runs", "gradings", "attempts", "turns", "scores", "labels"))


def test_it_takes_the_role_admin(store: Store) -> None:
    with serving(store, demanded=True) as url:
        headers = {"authorization": f"Bearer {store.tokens.create('bo', 'write')[1]}"}
        reply = send("DELETE", f"{url}/api/v1/runs/{store.run('latest').id}", headers=headers)
    assert (reply.status, list(reply.json())[:2]) == (403, ["detail", "code"])
    assert len(store.runs()) == 1


@pytest.mark.parametrize("name", ["latest", "refunds", "nothing", "%00", "..", "%ed%a0%80"])
def test_what_is_to_be_deleted_is_named_in_full(server: str, store: Store, name: str) -> None:
    assert send("DELETE", f"{server}/api/v1/runs/{name}").status == 404
    assert len(store.runs()) == 1


def test_a_run_that_is_being_worked_on_is_not_deleted(server: str, store: Store) -> None:
    run = store.run("latest").id
    with store.claimed(run):
        reply = send("DELETE", f"{server}/api/v1/runs/{run}")
        assert (reply.status, "another process is working" in reply.json()["detail"]) == (409, True)
    assert send("DELETE", f"{server}/api/v1/runs/{run}").status == 204
