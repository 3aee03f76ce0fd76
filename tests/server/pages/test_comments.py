from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from cli.conftest import Viva
from vivavoce.records.run import AttemptKey
from vivavoce.safe_text import safe
from vivavoce.server.users import whoever_sits_here
from vivavoce.store.store import Store

from ..live import Reply, get, send, serving
from .cases import keep, outcome, turn
from .hostile import TEXTS
from .test_hostile import harmless

ME = whoever_sits_here().name
PAGE = "/runs/run-1/samples/one"
KEY = AttemptKey("one", "bot", 0)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store with a run of one conversation of two turns."""
    with Store.open(str(tmp_path / "kept.db")) as store:
        keep(store, [outcome("one", [turn(0, "Hi", "Hello"), turn(1, "Bye", "Bye")])])
        yield store


@pytest.fixture
def url(store: Store) -> Iterator[str]:
    with serving(store) as base:
        yield base


def post(url: str, address: str, **fields: str) -> Reply:
    """Send a form of the page of the conversation."""
    key = re.search(r'name="form_key" value="([0-9a-f]+)"', get(url + PAGE).text)
    assert key is not None
    kind = {"content-type": "application/x-www-form-urlencoded"}
    return send("POST", url + address, urlencode({"form_key": key[1], **fields}).encode(), kind)


def actions(url: str) -> list[str]:
    """Return the addresses of the forms of comments on the page."""
    return [one.replace("&amp;", "&") for one in re.findall(r'action="(/comments[^"]*)"', get(url + PAGE).text)]


def test_a_comment_on_a_turn_stands_beside_it_and_leads_to_turns(url: str, store: Store) -> None:
    (second,) = [action for action in actions(url) if "turn=2" in action]
    answer = post(url, second, text="odd,\r\nsee #t1 and #t9")
    (kept,) = store.comments.of("run-1", KEY)
    assert (kept.author, kept.turn, kept.text) == (ME, 1, "odd,\nsee #t1 and #t9")
    assert (answer.status, answer.headers["location"]) == (303, f"{PAGE}?trial=1&from=2&target=bot#c{kept.id}")
    article = get(url + PAGE).text.partition('id="t2"')[2].partition("</article>")[0]
    assert f'id="c{kept.id}"' in article
    assert 'odd,\nsee <a href="#t1">#t1</a> and #t9</p>' in article


def test_a_comment_on_the_conversation_stands_below_it(url: str, store: Store) -> None:
    (whole,) = [action for action in actions(url) if "turn=" not in action]
    post(url, whole, text="all in all")
    (kept,) = store.comments.of("run-1", KEY)
    assert kept.turn is None
    assert "all in all" in get(url + PAGE).text.partition('id="comments"')[2]
    assert "1 comment" in get(f"{url}/runs/run-1").text
    assert "1 comment" in get(f"{url}/runs/run-1?filter=has:comment").text
    assert "No sample matches" in get(f"{url}/runs/run-1?filter=-has:comment").text


def test_a_comment_is_resolved_reopened_and_removed_on_the_page(url: str, store: Store) -> None:
    kept = store.comments.add("run-1", KEY, 0, "Olu", "why?")
    at = f"/comments/run-1/{kept.id}"
    assert post(url, at, action="resolve").status == 303
    assert f"resolved by {ME}" in get(url + PAGE).text
    assert post(url, at, action="reopen").status == 303
    assert "resolved by" not in get(url + PAGE).text
    assert post(url, at, action="remove").headers["location"].endswith("#t1")
    assert store.comments.of("run-1", KEY) == []
    assert post(url, at, action="remove").status == 404
    assert post(url, at, action="other").status == 422


def test_lists_of_runs_count_comments(url: str, store: Store, viva: Viva) -> None:
    assert "1 comment" not in get(f"{url}/").text
    for number, about in enumerate((None, 1)):
        store.comments.add("run-1", KEY, about, ME, f"look {number}")
    assert "2 comments" in get(f"{url}/").text
    (listed,) = get(f"{url}/api/v1/runs").json()["runs"]
    assert listed["comments"] == 2
    place = store.maintenance.contents().place
    assert "2 comments" in viva("runs", "--store", place).stdout
    assert json.loads(viva("runs", "--json", "--store", place).stdout)["comments"] == 2


@pytest.mark.parametrize("text", ["", "  \r\n ", "x" * 4001])
def test_an_empty_or_endless_comment_is_refused(url: str, store: Store, text: str) -> None:
    answer = post(url, actions(url)[0], text=text)
    assert answer.status == 422
    assert "write a comment of at most 4,000 characters" in answer.text
    assert store.comments.of("run-1", KEY) == []


def test_a_forged_form_adds_nothing(url: str, store: Store) -> None:
    kind = {"content-type": "application/x-www-form-urlencoded"}
    assert send("POST", url + actions(url)[0], b"text=x&form_key=0", kind).status == 403
    assert store.comments.of("run-1", KEY) == []


def test_who_may_only_read_sees_comments_and_no_form(store: Store) -> None:
    store.comments.add("run-1", KEY, 0, "Olu", "why?")
    token = {"authorization": f"Bearer {store.tokens.create('Ida', 'read')[1]}"}
    with serving(store, demanded=True) as url:
        shown = get(url + PAGE, token).text
    assert "why?" in shown
    assert "/comments" not in shown.replace("/static/comments.css", "")


def test_hostile_comments_and_names_stay_text(url: str, store: Store) -> None:
    for text in TEXTS:
        store.comments.add("run-1", KEY, 1, text, f"{text} #t1 {text}")
    page = get(url + PAGE).text
    read = harmless(page)
    for text in TEXTS:
        assert " ".join(safe(text).split()) in read.text
