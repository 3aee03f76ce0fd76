"""`viva store token`: who is let in, and by whom that was decided."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from vivavoce.store.store import Store

from .conftest import Viva


def test_a_token_is_printed_once_and_opens_the_store(viva: Viva, tmp_path: Path) -> None:
    done = viva("token", "create", "ida", "--role", "write", "--store", "x.db")
    assert done.returncode == 0, done.stderr
    assert "it is not shown again" in done.stderr
    secret = done.stdout.strip()
    with Store.open(str(tmp_path / "x.db")) as store:
        found = store.tokens.holder(secret)
    assert found is not None
    assert (found.name, found.role, found.expires_at) == ("ida", "write", None)
    shown = viva("token", "--store", "x.db").stdout
    assert (found.id in shown, secret in shown, secret[5:] in shown) == (True, False, False)
    assert secret.encode() not in b"".join(path.read_bytes() for path in tmp_path.glob("x.db*"))


def test_a_token_ends_after_its_time(viva: Viva) -> None:
    viva("token", "create", "ida", "--role", "read", "--expires", "90d")
    (told,) = json.loads(viva("token", "list", "--json").stdout)
    assert told["expires_at"] == pytest.approx(time.time() + 90 * 86400, abs=600)


def test_a_token_is_revoked_by_its_id_and_all_of_it_is_in_the_log(viva: Viva) -> None:
    assert "no store" in viva("token", "list").stderr
    viva("token", "create", "ida", "--role", "read")
    (told,) = json.loads(viva("token", "list", "--json").stdout)
    assert viva("token", "revoke", told["id"]).returncode == 0
    assert json.loads(viva("token", "list", "--json").stdout)[0]["revoked_at"] is not None
    log = [json.loads(line) for line in viva("store", "audit", "--json").stdout.splitlines()]
    assert [(one["action"], one["subject"]) for one in log] == [
        ("token.revoke", told["id"]),
        ("token.create", told["id"]),
    ]
    assert "token.revoke" in viva("store", "audit").stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("create",), "takes a name"),
        (("create", "ida"), "--role read"),
        (("create", "ida", "--role", "king"), "king"),
        (("create", "ida", "--role", "read", "--expires", "soon"), "--expires takes an age"),
        (("create", "", "--role", "read"), "a token needs its user's name"),
        (("revoke",), "takes an id"),
        (("revoke", "nobody"), "no store at"),
        (("list", "ida"), "takes no name"),
        (("revoke", "x", "--role", "read"), "for viva store token create"),
    ],
)
def test_a_mistake_is_said(viva: Viva, arguments: tuple[str, ...], said: str) -> None:
    done = viva("token", *arguments)
    assert (done.returncode, done.stdout, said in done.stderr) == (2, "", True), done.stderr
