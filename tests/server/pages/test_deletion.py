from __future__ import annotations

from vivavoce.store.store import Store

from ..live import get
from .test_sign_in import fields, submit


def test_one_more_question_is_asked_before_a_run_is_deleted(server: str, store: Store) -> None:
    run = store.run("latest").id
    page = get(f"{server}/runs/{run}/delete")
    assert "has 3 conversations" in page.text
    assert len(store.runs()) == 1
    reply = submit(f"{server}/runs/{run}/delete", fields(page))
    assert (reply.status, reply.headers["location"], store.runs()) == (303, "/", [])
    assert [entry.action for entry in store.audit.entries().entries] == ["run.delete"]


def test_a_run_that_is_being_worked_on_is_kept(server: str, store: Store) -> None:
    run = store.run("latest").id
    key = fields(get(f"{server}/runs/{run}/delete"))
    with store.claimed(run):
        assert '<button class="btn">Delete it' not in get(f"{server}/runs/{run}/delete").text
        reply = submit(f"{server}/runs/{run}/delete", key)
    assert (reply.status, "another process is working" in reply.text) == (409, True)
    assert len(store.runs()) == 1


def test_another_run_is_never_deleted_in_its_place(server: str, store: Store) -> None:
    key = fields(get(f"{server}/runs/latest/delete"))
    assert submit(f"{server}/runs/latest/delete", key).status == 404
    assert len(store.runs()) == 1
