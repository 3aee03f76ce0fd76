"""The page of a calibration, and the same through the API and the client."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest

from server.live import Reply, get, send, serving
from server.pages.cases import keep, outcome, turn
from vivavoce.client import Client
from vivavoce.errors import NotFound, UsageError
from vivavoce.records.label import LabelledVerdict
from vivavoce.records.score import Score
from vivavoce.server.users import whoever_sits_here
from vivavoce.store.calibrations import new_calibration
from vivavoce.store.labels import Truth
from vivavoce.store.store import Store

ME = whoever_sits_here().name
PAGE = "/runs/run-1/calibration?grader=goal"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store with a run of twelve conversations; the judge passes eight of them."""
    with Store.open(str(tmp_path / "kept.db")) as store:
        outcomes = [
            outcome(f"s{n}", [turn(0, "Hi", "Hello")], {"goal": Score(value=float(n < 8))}, position=n)
            for n in range(12)
        ]
        keep(store, outcomes, fingerprints={"goal": "f1"})
        yield store


@pytest.fixture
def url(store: Store) -> Iterator[str]:
    with serving(store) as base:
        yield base


def post(url: str, address: str, at: str | None = None, **fields: str) -> Reply:
    key = re.search(r'name="form_key" value="([0-9a-f]+)"', get(url + address).text)
    assert key is not None
    kind = {"content-type": "application/x-www-form-urlencoded"}
    return send("POST", url + (at or address), urlencode({"form_key": key[1], **fields}).encode(), kind)


def label(url: str, number: int) -> None:
    """Label conversations in the blind queue that anybody begins for themselves."""
    here = get(f"{url}/label?run=run-1&grader=goal&blind=1&seed=1").headers["location"]
    for n in range(number):
        here = post(url, here, verdict="fail" if n % 4 == 0 else "pass").headers["location"]


def test_labels_of_the_blind_queue_are_of_drawn_conversations(url: str, store: Store) -> None:
    label(url, 8)
    assert [each.drawn for each in store.labels.all("run-1")] == [1.0] * 8
    page = get(url + PAGE).text
    assert "goal of run run-1: 8 labels, all drawn at random" in page
    assert "corrected [" in page
    assert "8 labels show only large differences" in page


def test_labels_on_the_page_of_a_conversation_are_not(url: str, store: Store) -> None:
    form = {"run": "run-1", "sample": "s1", "target": "bot", "trial": "1", "grader": "goal", "verdict": "pass"}
    post(url, "/runs/run-1/samples/s1", "/label", **form)
    assert [each.drawn for each in store.labels.all("run-1")] == [None]
    page = get(url + PAGE).text
    assert "1 label of conversations that were not randomly sampled" in page
    assert "Save these labels" not in page


def test_they_are_kept_with_a_button_and_correct_the_run(url: str, store: Store) -> None:
    label(url, 8)
    assert "corrected [" not in get(f"{url}/runs/run-1").text
    assert "/runs/run-1/calibration?grader=goal" in get(f"{url}/runs/run-1").text
    assert post(url, PAGE, action="keep").headers["location"] == PAGE
    (stored,) = store.calibrations.of_run("run-1")
    assert (stored.author, len(stored.drawn_labels)) == (ME, 8)
    assert "this one" in get(url + PAGE).text
    assert "corrected [" in get(f"{url}/runs/run-1").text
    assert post(url, PAGE, action="drop").status == 422


def test_a_grader_that_is_not_there_is_named(url: str) -> None:
    assert get(f"{url}/runs/run-1/calibration?grader=gaol").status == 404


def test_the_client_labels_in_a_queue_and_calibrates(url: str, store: Store) -> None:
    with Client(url) as client:
        queue = client.assign("run-1", [ME], grader="goal", size=10, selection="weighted")
        for place, key in enumerate(client.queue_items(queue.id, ME)):
            verdict = "fail" if place % 3 == 0 else "pass"
            stored_label = client.label("run-1", key.sample_id, verdict, grader="goal", queue=queue.id)
            assert stored_label.drawn is not None
        stored_calibration = client.calibration("run-1", "goal", width=0.5)
        assert (stored_calibration.drawn, stored_calibration.kept, stored_calibration.needed.width) == (10, False, 0.5)
        assert client.calibrations("run-1") == []
        stored = client.calibrate("run-1", "goal")
        assert (stored.kept, stored.figures) == (True, stored_calibration.figures)
        assert [calibration.id for calibration in client.calibrations("run-1", grader="goal")] == [stored.id]
        assert client.run("run-1").summary.grader("goal").corrected == stored.rates[0].rate
        with pytest.raises(NotFound):
            client.calibration("run-1", "gaol")


def test_without_a_drawn_label_there_is_nothing_to_keep(url: str) -> None:
    with Client(url) as client:
        client.label("run-1", "s1", "pass", grader="goal")
        with pytest.raises(UsageError, match="nothing to save"):
            client.calibrate("run-1", "goal")
        with pytest.raises(NotFound):
            client.label("run-1", "s1", "pass", grader="goal", queue="q-nobody")


def test_without_a_label_of_people_the_kept_calibration_is_shown(url: str, store: Store) -> None:
    assert "has no label that can be compared" in get(url + PAGE).text
    grading = store.grading("run-1")
    truth = Truth(
        labels=[
            LabelledVerdict(
                sample_id=f"s{n}", target="bot", trial=0, good=n < 6, passed=n < 8, score=float(n < 8), drawn=1.0
            )
            for n in range(12)
        ]
    )
    stored_calibration = new_calibration(grading, "goal", truth, "file", ME)
    store.calibrations.add(stored_calibration)
    page = get(url + PAGE).text
    assert "12 labels, all drawn at random" in page
    assert "Save these labels" not in page
    label(url, 4)
    assert "4 labels, all drawn at random" in get(url + PAGE).text
    (link,) = re.findall(r'href="([^"]*kept=[^"]*)"', get(url + PAGE).text)
    assert "12 labels, all drawn at random" in get(url + unescape(link)).text
    with Client(url) as client:
        assert (client.calibration("run-1", "goal").drawn, client.calibration("run-1", "goal").kept) == (4, False)
        response = client.calibration("run-1", "goal", kept=stored_calibration.id)
        assert (response.drawn, response.kept, response.id) == (12, True, stored_calibration.id)
        with pytest.raises(NotFound):
            client.calibration("run-1", "goal", kept="cal-none")
