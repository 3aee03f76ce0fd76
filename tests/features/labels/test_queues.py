from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlencode

import pytest

from server.live import Reply, get, send, serving
from server.pages.cases import keep, outcome, turn
from server.pages.hostile import TEXTS
from server.pages.test_hostile import harmless
from vivavoce.client import Client
from vivavoce.errors import NotFound, UsageError
from vivavoce.records.score import Score
from vivavoce.server.users import whoever_sits_here
from vivavoce.store.store import Store

ME = whoever_sits_here().name


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store with a run of four conversations."""
    with Store.open(str(tmp_path / "kept.db")) as store:
        grades = {"goal": Score(value=1.0)}
        keep(store, [outcome(f"s{n}", [turn(0, "Hi", "Hello")], grades, position=n) for n in range(4)])
        yield store


@pytest.fixture
def url(store: Store) -> Iterator[str]:
    with serving(store) as base:
        yield base


def post(url: str, address: str, **fields: str) -> Reply:
    """Send the form on a page."""
    key = re.search(r'name="form_key" value="([0-9a-f]+)"', get(url + address).text)
    assert key is not None
    kind = {"content-type": "application/x-www-form-urlencoded"}
    return send("POST", url + address.partition("?")[0], urlencode({"form_key": key[1], **fields}).encode(), kind)


def assign(url: str, **fields: str) -> Reply:
    form = {"run": "run-1", "grader": "goal", "people": f"{ME}\nOlu\n", "overlap": "1", "size": "4", "blind": "1"}
    return post(url, "/label/assign?run=run-1", **{**form, **fields})


def test_a_queue_is_assigned_labelled_and_seen_by_all(url: str, store: Store) -> None:
    assert "/label/assign?run=run-1" in get(f"{url}/label").text
    there = assign(url).headers["location"]
    (queue,) = store.queues.all()
    assert there == f"/label-queues/{queue.id}"
    assert "0 of 4 labels done: 4 conversations, each labelled by 1 person, blind." in get(url + there).text
    assert "0 of 2 labelled" in get(f"{url}/label").text
    first = get(f"{url}/label/{queue.id}").headers["location"]
    assert first == f"/label/{queue.id}/1"
    item_page = get(url + first).text
    assert "run-1" not in item_page
    assert post(url, first, verdict="pass").headers["location"] == f"/label/{queue.id}/2"
    assert "1 of 2 labelled" in get(f"{url}/label").text
    with serving(store) as other:
        assert get(f"{other}/label/{queue.id}").headers["location"] == f"/label/{queue.id}/2"
        assert "1 of 4 labels done" in get(other + there).text


def test_what_is_wrong_in_the_form_is_said(url: str, store: Store) -> None:
    for fields, complaint in (
        ({"people": " \n"}, "name 1 to 50 people"),
        ({"overlap": "3"}, "1 to 2 here"),
        ({"size": "x"}, "whole numbers"),
        ({"grader": "gaol"}, "did you mean"),
    ):
        answer = assign(url, **fields)
        assert answer.status in (404, 422)
        assert complaint in answer.text
    assert store.queues.all() == []


def test_what_was_assigned_to_others_is_not_mine(url: str, store: Store) -> None:
    assign(url, people="Olu")
    (queue,) = store.queues.all()
    assert "Assigned to you" not in get(f"{url}/label").text
    assert get(f"{url}/label/{queue.id}").status == 404
    assert "Continue mine" not in get(f"{url}/label-queues/{queue.id}").text


def test_a_queue_is_deleted_on_its_page(url: str, store: Store) -> None:
    there = assign(url).headers["location"]
    assert post(url, there, action="delete").headers["location"] == "/label"
    assert store.queues.all() == []


def test_the_client_assigns_and_follows(url: str, store: Store) -> None:
    with ExitStack() as stack:
        client = stack.enter_context(Client(url))
        queue = client.assign("latest", ["Ida", "Olu"], grader="goal", overlap=2, size=3)
        assert client.queue(queue.id) == queue == client.queues(run="latest")[0]
        assert client.queues(person="Eve") == []
        assert len(client.queue_items(queue.id, "Ida")) == 3
        with pytest.raises(UsageError, match="overlap"):
            client.assign("latest", ["Ida"], overlap=2)
        assert client.delete_queue(queue.id) == queue
        with pytest.raises(NotFound):
            client.queue(queue.id)


def test_hostile_names_stay_text(url: str, store: Store) -> None:
    people = sorted({text for text in TEXTS if text.isprintable() and len(text) <= 100})[:49]
    assert assign(url, people="\n".join([ME, *people])).status == 303
    (queue,) = store.queues.all()
    read = harmless(get(f"{url}/label-queues/{queue.id}").text)
    assert people[0] in read.text
    harmless(get(f"{url}/label").text)
    harmless(get(f"{url}/label/assign?run=run-1").text)
