from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from vivavoce.client import Client
from vivavoce.errors import UsageError
from vivavoce.server.users import whoever_sits_here
from vivavoce.store.store import Store

from ..live import Reply, get, send, serving
from .cases import keep, outcome
from .hostile import TEXTS
from .test_hostile import harmless

ME = whoever_sits_here().name


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store with three runs of one conversation."""
    with Store.open(str(tmp_path / "kept.db")) as store:
        for name in ("run-1", "run 2", "run-3"):
            keep(store, [outcome("one")], name)
        yield store


@pytest.fixture
def url(store: Store) -> Iterator[str]:
    with serving(store) as base:
        yield base


def post(url: str, **fields: str) -> Reply:
    key = re.search(r'name="form_key" value="([0-9a-f]+)"', get(f"{url}/").text)
    assert key is not None
    kind = {"content-type": "application/x-www-form-urlencoded"}
    return send("POST", f"{url}/views", urlencode({"form_key": key[1], **fields}).encode(), kind)


@pytest.mark.parametrize(
    "path", ["/?q=run", "/runs/run%202?filter=state%3Apass&sort=turns", "/compare?a=run-1&b=run-3"]
)
def test_the_page_that_one_looks_at_is_kept_and_found_again(url: str, store: Store, path: str) -> None:
    form = get(url + path).text.partition('class="views"')[2]
    here = re.search(r'name="path" value="([^"]+)"', form)
    assert here is not None
    assert here[1].replace("&amp;", "&") == path
    answer = post(url, action="save", name="my view", path=path, shared="1")
    assert (answer.status, answer.headers["location"]) == (303, path)
    (kept,) = store.views.all(ME)
    assert (kept.path, kept.shared, kept.author) == (path, True, ME)
    assert 'aria-current="page" dir="auto">my view</a>' in get(url + path).text
    assert post(url, action="remove", view=str(kept.id), path=path).headers["location"] == path
    assert store.views.all(ME) == []


def test_no_other_host_is_kept_or_gone_to(url: str, store: Store) -> None:
    assert post(url, action="save", name="x", path="//evil.example").status == 422
    kept = store.views.save(ME, "a", "/")
    assert post(url, action="remove", view=str(kept.id), path="//evil.example").headers["location"] == "/"
    assert post(url, action="other").status == 422


def test_who_may_only_read_sees_shared_views_and_no_form(store: Store) -> None:
    store.views.save("Olu", "theirs", "/?q=x", shared=True)
    token = {"authorization": f"Bearer {store.tokens.create('Ida', 'read')[1]}"}
    with serving(store, demanded=True) as url:
        shown = get(f"{url}/", token).text
    assert "theirs" in shown
    assert 'action="/views"' not in shown


def test_the_client_keeps_views(url: str) -> None:
    with Client(url) as client:
        made = client.save_view("failing", "/runs/run-1?filter=state:fail")
        assert client.views() == [made]
        assert client.remove_view(made.id) == made
        with pytest.raises(UsageError, match="a view is the address"):
            client.save_view("bad", "https://evil.example")


def test_hostile_names_stay_text(url: str, store: Store) -> None:
    for text in TEXTS:
        if text.isprintable() and 0 < len(text) <= 100:
            store.views.save(ME, text, "/?q=x")
    read = harmless(get(f"{url}/").text)
    assert TEXTS[0] in read.text
