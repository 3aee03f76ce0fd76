from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest

from server.live import Reply, get, send, serving
from server.pages.cases import keep, outcome, per_turn, turn
from server.pages.hostile import TEXTS
from server.pages.test_hostile import harmless
from vivavoce.client import Client
from vivavoce.errors import UsageError
from vivavoce.records.label import HumanVerdict
from vivavoce.records.run import AttemptKey
from vivavoce.safe_text import safe
from vivavoce.server.users import whoever_sits_here
from vivavoce.store.labels import LabelPlace, now_label
from vivavoce.store.store import Store

ME = whoever_sits_here().name


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store with two conversations on which Ida and Olu differ, and one whose turn 2 is disputed."""
    with Store.open(str(tmp_path / "kept.db")) as store:
        turns = [turn(0, "Hi", "Hello"), turn(1, "Bye", "Bye")]
        keep(store, [outcome(name, turns, {"goal": per_turn(1.0, 0.0)}) for name in ("one", "two", "three")])
        for name, at in (("one", None), ("two", 1)):
            say(store, name, "Ida", "pass", at)
            say(store, name, "Olu", "fail", at, "not kind")
        yield store


@pytest.fixture
def url(store: Store) -> Iterator[str]:
    with serving(store) as base:
        yield base


def say(
    store: Store, name: str, author: str, verdict: HumanVerdict, at: int | None = None, why: str | None = None
) -> None:
    place = LabelPlace("run-1", AttemptKey(name, "bot", 0), at, "goal", author)
    store.labels.set("run-1", now_label(place, verdict, why))


def places(url: str) -> list[str]:
    """Return the addresses of the list."""
    text = get(f"{url}/label/differing?run=run-1").text
    return [unescape(address) for address in re.findall(r'class="row" href="([^"]+)"', text)]


def decide(url: str, address: str, **fields: str) -> Reply:
    key = re.search(r'name="form_key" value="([0-9a-f]+)"', get(url + address).text)
    assert key is not None
    kind = {"content-type": "application/x-www-form-urlencoded"}
    return send("POST", url + address, urlencode({"form_key": key[1], **fields}).encode(), kind)


def test_the_list_leads_to_each_place_and_the_choice_of_runs_to_the_list(url: str) -> None:
    assert 'href="/label/differing?run=run-1"' in get(f"{url}/label").text
    list_page = get(f"{url}/label/differing?run=run-1").text
    assert "2 of 2 to decide" in list_page
    assert list_page.count("1 pass, 1 fail") == 2
    assert len(places(url)) == 2


def test_names_are_hidden_until_it_is_decided(url: str, store: Store) -> None:
    first, second = places(url)
    decision_page = get(url + first).text
    assert "not kind" in decision_page
    assert not any(name in decision_page for name in ("Ida", "Olu", "run-1</", "0.50"))
    answer = decide(url, first, verdict="fail", note="the policy says so")
    assert (answer.status, answer.headers["location"]) == (303, second)
    (stored,) = store.decisions.all("run-1")
    assert (stored.verdict, stored.author, stored.note, stored.blind) == ("fail", ME, "the policy says so", True)
    after = get(url + first).text
    assert "Ida" in after
    assert "Olu" in after
    assert decide(url, second, verdict="pass").headers["location"] == "/label/differing?run=run-1"
    assert "0 of 2 to decide" in get(f"{url}/label/differing?run=run-1").text
    assert len(list(store.labels.all("run-1"))) == 4


def test_a_decision_is_taken_back_on_its_page(url: str, store: Store) -> None:
    first = places(url)[0]
    decide(url, first, verdict="fail")
    assert decide(url, first, action="undo").headers["location"] == first
    assert store.decisions.all("run-1") == []


@pytest.mark.parametrize("verdict", ["", "unsure", "good"])
def test_only_pass_or_fail_decides(url: str, store: Store, verdict: str) -> None:
    answer = decide(url, places(url)[0], verdict=verdict)
    assert (answer.status, "choose pass or fail" in answer.text) == (422, True)
    assert store.decisions.all("run-1") == []


def test_where_nobody_differs_there_is_nothing_to_decide(url: str) -> None:
    answer = get(f"{url}/label/decide?run=run-1&sample=three&target=bot&trial=1&grader=goal")
    assert (answer.status, "nothing to decide" in answer.text) == (404, True)


def test_the_api_and_the_client_decide(url: str, store: Store) -> None:
    with Client(url) as client:
        assert [label.sample_id for label in client.differing_labels()] == ["one", "two"]
        decision = client.decide("latest", "one", "pass", "as agreed", grader="goal")
        assert store.decisions.all("run-1") == [decision]
        agreement = client.agreement("latest", "goal")
        assert (agreement.n, agreement.decided, agreement.people is not None) == (1, 1, True)
        assert client.agreement("latest", "goal", author="Ida").decided == 0
        assert client.undecide("latest", "one", grader="goal") == decision
        with pytest.raises(UsageError, match="nothing to decide"):
            client.decide("latest", "three", "pass", grader="goal")


def test_hostile_notes_and_names_stay_text(url: str, store: Store) -> None:
    for number, text in enumerate(TEXTS):
        say(store, "three", text, "pass" if number % 2 else "fail", None, text)
    address = next(place for place in places(url) if "three" in place)
    read = harmless(get(url + address).text)
    assert all(" ".join(safe(text).split()) in read.text for text in TEXTS)
    decide(url, address, verdict="pass", note="</textarea><script>xss()</script>")
    harmless(get(url + address).text)
    harmless(get(f"{url}/label/differing?run=run-1").text)
