from __future__ import annotations

import json

import pytest

from vivavoce.client import Client
from vivavoce.errors import UsageError
from vivavoce.store.store import Store

from ..live import get, send, serving

JSON = {"content-type": "application/json"}


def test_a_run_is_given_a_title_notes_and_tags_and_who_did_is_noted(store: Store) -> None:
    run = store.run("latest")
    headers = {"authorization": f"Bearer {store.tokens.create('ida', 'write', actor='root')[1]}"}
    with serving(store, demanded=True) as url:
        change = {"title": " The new\nprompt ", "notes": "Better.\n<b>Much</b>", "tags": ["prompt", "prompt", "v2"]}
        body = json.dumps(change).encode()
        done = send("PATCH", f"{url}/api/v1/runs/latest", body, {**headers, **JSON})
        assert (done.status, done.json()["title"], done.json()["tags"]) == (200, "The new prompt", ["prompt", "v2"])
        (listed,) = get(f"{url}/api/v1/runs?tag=v2&text=NEW%20prompt", headers).json()["runs"]
        assert (listed["id"], listed["title"], listed["tags"]) == (run.id, "The new prompt", ["prompt", "v2"])
        assert get(f"{url}/api/v1/runs?tag=v", headers).json()["runs"] == []
        removed = send("PATCH", f"{url}/api/v1/runs/latest", b'{"title": "", "tags": []}', {**headers, **JSON})
        assert (removed.json()["title"], removed.json()["notes"]) == (None, "Better.\n<b>Much</b>")
        reader = {"authorization": f"Bearer {store.tokens.create('bo', 'read')[1]}"}
        assert send("PATCH", f"{url}/api/v1/runs/latest", b'{"title": "x"}', {**reader, **JSON}).status == 403
    last, first, *_ = [entry for entry in store.audit.entries().entries if entry.action == "run.remark"]
    assert (first.actor, first.subject) == ("ida", run.id)
    assert first.detail == {"title": "The new prompt", "notes": "Better.\n<b>Much</b>", "tags": ["prompt", "v2"]}
    assert last.detail == {"title": None, "tags": None}


def test_a_run_that_goes_on_keeps_what_is_said_of_it(store: Store) -> None:
    run = store.run("latest")
    with serving(store) as url, Client(url) as client:
        assert client.remark(run.id, title="Mine", tags=["a,b"]).tags == ["a,b"]
        store.update_run(run.model_copy(update={"status": "interrupted"}))
        stored_run = client.run(run.id)
        with pytest.raises(UsageError, match="at most 200"):
            client.remark(run.id, title="x" * 201)
    assert (stored_run.run.title, stored_run.run.tags, stored_run.run.status) == ("Mine", ["a,b"], "interrupted")


@pytest.mark.parametrize("body", ['{"title": 3}', '{"titel": "x"}', '{"tags": "x"}', '{"tags": ["%s"]}' % ("x" * 61)])
def test_what_is_no_remark_is_refused(server: str, store: Store, body: str) -> None:
    assert send("PATCH", f"{server}/api/v1/runs/latest", body.encode(), JSON).status == 422
    assert store.run("latest").title is None
