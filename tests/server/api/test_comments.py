from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from vivavoce.client import Client
from vivavoce.errors import NotFound, UsageError
from vivavoce.store.store import Store

from ..live import get, send, serving
from ..pages.cases import keep, outcome, turn


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store with a run of one conversation of two turns."""
    with Store.open(str(tmp_path / "kept.db")) as store:
        keep(store, [outcome("one", [turn(0, "Hi", "Hello"), turn(1, "Bye", "Bye")])])
        yield store


@pytest.fixture
def url(store: Store) -> Iterator[str]:
    """The address of a server that requires a token."""
    with serving(store, demanded=True) as base:
        yield base


def test_comments_are_added_listed_resolved_and_removed(url: str, store: Store) -> None:
    with (
        Client(url, store.tokens.create("Ida", "write")[1]) as ida,
        Client(url, store.tokens.create("Olu", "write")[1]) as olu,
        Client(url, store.tokens.create("Ada", "admin")[1]) as admin,
    ):
        whole = ida.comment("latest", "one", " what a start\n")
        there = olu.comment("latest", "one", "see #t1", turn=1)
        assert (whole.author, whole.text, whole.turn) == ("Ida", "what a start", None)
        assert list(ida.comments()) == [whole, there] == ida.comments_of("latest", "one")
        assert ida.resolve_comment("latest", there.id).resolved_by == "Ida"
        assert ida.resolve_comment("latest", there.id, resolved=False).resolved_by is None
        with pytest.raises(UsageError, match="is by Ida; only its author or an admin"):
            olu.remove_comment("latest", whole.id)
        assert admin.remove_comment("latest", whole.id) == whole
        assert olu.remove_comment("latest", there.id).id == there.id
        with pytest.raises(NotFound, match="no comment"):
            olu.remove_comment("latest", there.id)
        with pytest.raises(UsageError, match="no turn '3'"):
            olu.comment("latest", "one", "x", turn=2)


def test_the_samples_and_the_export_have_them(url: str, store: Store) -> None:
    token = {"authorization": f"Bearer {store.tokens.create('Ida', 'write')[1]}"}
    at = f"{url}/api/v1/runs/latest"
    assert send("POST", f"{at}/samples/one/0/comments", {"text": "hm"}, token).status == 201
    assert get(f"{at}/samples", token).json()["samples"][0]["comments"] == 1
    assert [one["text"] for one in get(f"{at}/export?format=json", token).json()["comments"]] == ["hm"]


@pytest.mark.parametrize("body", [{"text": " "}, {"text": "x" * 4001}, {}, {"text": "x", "author": "me"}])
def test_what_is_no_comment_is_refused(url: str, store: Store, body: dict[str, str]) -> None:
    token = {"authorization": f"Bearer {store.tokens.create('Ida', 'write')[1]}"}
    assert send("POST", f"{url}/api/v1/runs/latest/samples/one/0/comments", body, token).status == 422


def test_who_may_only_read_cannot_comment(url: str, store: Store) -> None:
    token = {"authorization": f"Bearer {store.tokens.create('Ida', 'read')[1]}"}
    assert send("POST", f"{url}/api/v1/runs/latest/samples/one/0/comments", {"text": "x"}, token).status == 403
