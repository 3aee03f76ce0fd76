from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from server.live import get, send, serving
from server.pages.cases import keep, outcome, per_turn, turn
from vivavoce.records.label import Label, LabelAgreement
from vivavoce.server.users import whoever_sits_here
from vivavoce.store.browse.listing import LabelPage
from vivavoce.store.store import Store

ME = whoever_sits_here().name
ODD = "a/b ?#é"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store with a run of three conversations."""
    with Store.open(str(tmp_path / "kept.db")) as store:
        graded = {"goal": per_turn(1.0, 0.0)}
        talks = [outcome(name, [turn(0, "Hi", "Hello"), turn(1, "Bye", "Bye")], graded) for name in ("one", ODD)]
        keep(store, [*talks, outcome("twice", target="bot"), outcome("twice", target="bat", position=1)])
        yield store


@pytest.fixture
def url(store: Store) -> Iterator[str]:
    with serving(store) as base:
        yield f"{base}/api/v1/runs/latest"


def labels_at(url: str, sample: str = "one", **query: object) -> str:
    query_text = "&".join(f"{name}={value}" for name, value in query.items())
    return f"{url}/samples/{quote(sample, safe='')}/0/labels?{query_text}"


@pytest.mark.parametrize("sample", ["one", ODD])
def test_a_label_is_set_read_and_taken_back(url: str, sample: str) -> None:
    there = labels_at(url, sample, grader="goal", turn=1)
    put = send("PUT", there, {"verdict": "fail", "note": " not polite "})
    assert put.status == 200
    label = Label.model_validate_json(put.body)
    assert (label.sample_id, label.turn, label.author, label.note, label.blind) == (sample, 1, ME, "not polite", False)
    assert [Label.model_validate(entry) for entry in get(labels_at(url, sample)).json()] == [label]
    assert Label.model_validate_json(send("DELETE", there).body) == label
    assert get(labels_at(url, sample)).json() == []
    assert send("DELETE", there).status == 404


def test_labels_of_a_run_come_a_page_at_a_time(url: str) -> None:
    for verdict, where in (("pass", labels_at(url, grader="goal")), ("fail", labels_at(url, turn=0))):
        send("PUT", where, {"verdict": verdict})
    first = LabelPage.model_validate_json(get(f"{url}/labels?limit=1").body)
    rest = LabelPage.model_validate_json(get(f"{url}/labels?limit=1&after={first.next}").body)
    assert [label.verdict for label in first.labels + rest.labels] == ["pass", "fail"]
    assert rest.next is None
    assert len(get(f"{url}/labels?grader=goal").json()["labels"]) == 1
    assert get(f"{url}/labels?author=nobody").json()["labels"] == []


def test_the_agreement_of_a_grader_is_told(url: str) -> None:
    send("PUT", labels_at(url, grader="goal"), {"verdict": "pass"})
    send("PUT", labels_at(url, ODD, grader="goal"), {"verdict": "fail"})
    agreement = LabelAgreement.model_validate_json(get(f"{url}/labels/agreement?grader=goal").body)
    assert (agreement.n, agreement.both_fail, agreement.too_strict, agreement.agreement) == (2, 1, 1, 0.5)
    assert [(disagreement.label.sample_id, disagreement.lenient) for disagreement in agreement.disagreements] == [
        ("one", False)
    ]
    turns = get(f"{url}/labels/agreement?grader=goal&turns=true").json()
    assert (turns["n"], turns["kappa"]) == (0, None)


@pytest.mark.parametrize(
    ("where", "body", "status"),
    [
        ({"sample": "one"}, {"verdict": "good"}, 422),
        ({"sample": "one"}, {"verdict": "pass", "note": "x" * 4001}, 422),
        ({"sample": "one"}, {"verdict": "pass", "author": "Ida"}, 422),
        ({"sample": "one", "turn": 7}, {"verdict": "pass"}, 404),
        ({"sample": "one", "turn": -1}, {"verdict": "pass"}, 422),
        ({"sample": "one", "grader": "gaol"}, {"verdict": "pass"}, 404),
        ({"sample": "none"}, {"verdict": "pass"}, 404),
        ({"sample": "twice"}, {"verdict": "pass"}, 422),
        ({"sample": "twice", "target": "bat"}, {"verdict": "pass"}, 200),
    ],
)
def test_what_cannot_be_labelled_is_refused(
    url: str, where: dict[str, str | int], body: dict[str, str], status: int
) -> None:
    sample = str(where.pop("sample"))
    assert send("PUT", labels_at(url, sample, **where), body).status == status


def test_a_page_elsewhere_labels_nothing(url: str) -> None:
    sent = send("PUT", labels_at(url), {"verdict": "pass"}, {"origin": "http://elsewhere.example"})
    assert sent.status == 403
    assert get(labels_at(url)).json() == []
