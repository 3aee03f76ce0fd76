from __future__ import annotations

import pytest

from vivavoce.errors import NotFound, UsageError
from vivavoce.store.access import NotYours
from vivavoce.store.store import Store


def test_one_sees_ones_own_views_and_those_that_others_share(store: Store) -> None:
    mine = store.views.save("Ida", " failing ", "/runs/r?filter=state:fail")
    theirs = store.views.save("Olu", "all", "/?q=x", shared=True)
    store.views.save("Olu", "private", "/compare?a=x&b=y")
    assert (mine.name, mine.shared) == ("failing", False)
    assert store.views.all("Ida") == [theirs, mine]


def test_a_view_of_the_same_name_is_replaced(store: Store) -> None:
    first = store.views.save("Ida", "a", "/")
    again = store.views.save("Ida", "a", "/?q=y", shared=True)
    assert (again.id, again.path, again.shared) == (first.id, "/?q=y", True)
    assert store.views.all("Ida") == [again]


@pytest.mark.parametrize(
    "path",
    [
        *(
            "",
            "runs/x",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example/",
            "javascript:x",
            "/\t/evil.example",
        ),
        *("/sign-in", "/static/vv.css", "/api/v1/runs", "/runs/../sign-in", "/ünï", "/?q=" + "x" * 4000, "/runs\n"),
    ],
)
def test_only_addresses_of_our_pages_are_kept(store: Store, path: str) -> None:
    with pytest.raises(UsageError, match="a view is the address of"):
        store.views.save("Ida", "a", path)
    assert store.views.all("Ida") == []


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x" * 101])
def test_a_name_is_one_line(store: Store, name: str) -> None:
    with pytest.raises(UsageError, match="one line of at most 100"):
        store.views.save("Ida", name, "/")


def test_only_its_author_or_an_admin_removes_a_view(store: Store) -> None:
    shared = store.views.save("Ida", "a", "/", shared=True)
    hidden = store.views.save("Ida", "b", "/")
    with pytest.raises(NotYours, match="is by Ida"):
        store.views.remove(shared.id, "Olu")
    with pytest.raises(NotFound):
        store.views.remove(hidden.id, "Olu", anyones=True)
    assert store.views.remove(shared.id, "Olu", anyones=True) == shared
    assert store.views.remove(hidden.id, "Ida") == hidden
    assert [one.action for one in store.audit.entries().entries][:2] == ["view.remove", "view.remove"]
