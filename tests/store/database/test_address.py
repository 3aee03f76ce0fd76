from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from vivavoce.errors import UsageError
from vivavoce.store.database.address import Place, path_of


@pytest.mark.parametrize(
    ("address", "path"),
    [
        ("x.db", "x.db"),
        ("a b/ü?.db", "a b/ü?.db"),
        ("/abs/x.db", "/abs/x.db"),
        ("sqlite:///x.db", "x.db"),
        ("sqlite:////abs/x.db", "/abs/x.db"),
        ("~/x.db", str(Path.home() / "x.db")),
    ],
)
def test_an_address_means_a_file(address: str, path: str) -> None:
    assert path_of(address) == Path(path)
    assert Place(address) == path


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("postgresql+asyncpg://me:s3cret@host/db", r"'postgresql\+asyncpg://…' is not a store"),
        ("postgresql://me:s3cret@host", "'postgresql://me@host' does not name a database"),
        ("postgresql://me:s3@cret@host:port/db", "cannot be read; .* %40 for an @"),
        ("mysql://me:s3cret@host/db", "'mysql://…@host/db' is not a store; give a file path"),
        ("sqlite://x.db", "is not a store; give a file path"),
        ("sqlite:///", "does not name a file"),
        (":memory:", "does not name a file"),
        ("", "does not name a file"),
    ],
)
def test_another_address_is_refused_without_the_password(address: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as raised:
        Place(address)
    assert "s3" not in str(raised.value)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://me:s3cret@host:5433/db?sslmode=require", "postgresql://me@host:5433/db?sslmode=require"),
        ("postgres://me@host/db?password=s3cret", "postgresql://me@host/db"),
        ("postgresql+psycopg:///db?host=/run/pg&sslpassword=s3cret", "postgresql:///db?host=%2Frun%2Fpg"),
    ],
)
def test_a_place_shows_no_password_and_is_opened_with_it(address: str, shown: str) -> None:
    place = Place(address)
    assert place == shown
    assert (place.address, Place(place).address) == (address, address)
    assert "s3cret" not in f"{place} {place!r} {[place]}"
    assert b"s3cret" not in pickle.dumps(place)
    assert pickle.loads(pickle.dumps(place)) == shown
