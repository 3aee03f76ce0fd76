from __future__ import annotations

import pytest

from vivavoce.errors import UsageError
from vivavoce.store.store import Store

from .. import cases

IDS = ["20261119-abcd", "20261120-abcd", "20261120-abxy", "x", "x-ray"]


@pytest.fixture
def runs(store: Store) -> Store:
    """A store with these runs, the last one the newest."""
    for position, name in enumerate(IDS):
        store.add_run(cases.run(name, started_at=2000 + position))
    return store


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("20261119", "20261119-abcd"),
        ("20261120-abc", "20261120-abcd"),
        ("x", "x"),
        ("x-", "x-ray"),
        ("latest", "x-ray"),
        ("latest~0", "x-ray"),
        ("latest~2", "20261120-abxy"),
        ("abxy", "20261120-abxy"),
        ("ray", "x-ray"),
    ],
)
def test_a_run_is_found_by(runs: Store, name: str, found: str) -> None:
    assert runs.run(name).id == found


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("20261120-ab", "'20261120-ab' matches several runs: 20261120-abxy, 20261120-abcd"),
        ("abcd", "'abcd' matches several runs: 20261120-abcd, 20261119-abcd"),
        ("latst", "no run 'latst'; did you mean 'latest'"),
        ("bxy", "no run 'bxy'"),
        ("ABXY", "no run 'ABXY'"),
        ("20261120-abxz", "no run '20261120-abxz'; did you mean '20261120-abxy'"),
        ("X-", "no run 'X-'"),
        ("%", "no run '%'; known:"),
        ("latest~9", "no run 'latest~9': there are 6 runs"),
        ("\udce9", "no run"),
        ("\0", "no run"),
    ],
)
def test_a_name_that_means_no_run_is_answered_with_help(runs: Store, name: str, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        runs.run(name)
    assert said in str(raised.value)


@pytest.mark.parametrize(("name", "said"), [("x", "there are no runs yet"), ("latest", "there are no runs yet")])
def test_in_an_empty_store_there_is_no_run(address: str, name: str, said: str) -> None:
    with Store.open(address) as store, pytest.raises(UsageError, match=said):
        store.run(name)


def test_one_run_is_not_counted_as_several(store: Store) -> None:
    with pytest.raises(UsageError, match=r"no run 'latest~1': there is only one run$"):
        store.run("latest~1")


def test_gradings_are_looked_for_in_their_run_only(store: Store) -> None:
    store.add_run(cases.run("other"))
    with pytest.raises(UsageError, match="there are no gradings yet"):
        store.grading("other")
    with pytest.raises(UsageError, match="there are no gradings yet"):
        store.grading("other", cases.GRADING)
