from __future__ import annotations

from pathlib import Path

import pytest

from vivavoce.errors import UsageError
from vivavoce.store.database import connect_to, path_of


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


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("postgresql://me@host/db", r"needs the extra \[postgres\], which is not available yet"),
        ("postgresql+psycopg://host/db", r"needs the extra \[postgres\]"),
        ("mysql://host/db", "is no store; give a file path"),
        ("sqlite://x.db", "is no store; give a file path"),
        ("sqlite:///", "names no file"),
        (":memory:", "names no file"),
        ("", "names no file"),
    ],
)
def test_another_address_is_refused(address: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        path_of(address)


def test_a_connection_syncs_each_commit_and_checks_references(tmp_path: Path) -> None:
    engine = connect_to(tmp_path / "x.db")
    with engine.connect() as connection:
        values = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("synchronous", "foreign_keys")]
    engine.dispose()
    assert values == [2, 1]
