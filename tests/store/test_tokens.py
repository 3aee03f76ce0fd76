from __future__ import annotations

import time

import pytest
from sqlalchemy import select

from vivavoce.errors import UsageError
from vivavoce.store.access.audit import entries
from vivavoce.store.access.tokens import Role, any_good, create, holder, listed, made_here, revoke
from vivavoce.store.database.schema import tokens
from vivavoce.store.store import Store


def test_whoever_brings_a_token_is_found_by_it(store: Store) -> None:
    ida, secret = create(store, "Ida", "write")
    create(store, "Bo", "read")
    assert holder(store, secret) == ida
    assert (ida.name, ida.role) == ("Ida", "write")


@pytest.mark.parametrize("wrong", ["", "viva_", "nothing", "\ud800", "\0", "%"])
def test_another_text_finds_nobody(store: Store, wrong: str) -> None:
    _, secret = create(store, "Ida", "admin")
    for guess in (wrong, secret + wrong + "x", secret[:-1]):
        assert holder(store, guess) is None


def test_the_secret_is_random_and_looks_like_one_of_ours(store: Store) -> None:
    secrets = {create(store, "Ida", "read")[1] for _ in range(20)}
    assert len(secrets) == 20
    assert all(map(made_here, secrets))
    assert not made_here("viva_guess")


def test_only_the_hash_is_kept(store: Store) -> None:
    made, secret = create(store, "Ida", "read")
    with store.connected() as connection:
        (row,) = connection.execute(select(tokens)).all()
    assert not [cell for cell in row if isinstance(cell, str) and (secret in cell or secret[5:] in cell)]
    assert secret not in repr(made) + repr(listed(store)) + repr(entries(store))


def test_a_token_that_has_been_revoked_finds_nobody_and_is_still_listed(store: Store) -> None:
    made, secret = create(store, "Ida", "read")
    assert revoke(store, made.id).revoked_at is not None
    assert holder(store, secret) is None
    assert [one.id for one in listed(store) if one.revoked_at] == [made.id]
    for name in (made.id, "nobody", "\0"):
        with pytest.raises(UsageError, match=r"revoked before|no token"):
            revoke(store, name)


def test_a_token_ends_when_its_time_is_over(store: Store) -> None:
    now = time.time()
    _, over = create(store, "Ida", "read", expires_at=now - 1)
    assert (holder(store, over), any_good(store)) == (None, False)
    _, good = create(store, "Ida", "read", expires_at=now + 1000)
    assert holder(store, good) is not None
    assert any_good(store)


def test_what_is_done_to_tokens_is_noted(store: Store) -> None:
    made, _ = create(store, "Ida", "admin", actor="root")
    revoke(store, made.id, "root")
    told = [(one.actor, one.action, one.subject) for one in entries(store).entries]
    assert told == [("root", "token.revoke", made.id), ("root", "token.create", made.id)]


@pytest.mark.parametrize("name", ["", " ", "x" * 101, "two\nlines", "\x1b[2J"])
def test_a_name_is_one_line(store: Store, name: str) -> None:
    with pytest.raises(UsageError, match="named after who uses it"):
        create(store, name, "read")


@pytest.mark.parametrize("role", ["read", "write", "admin"])
def test_the_role_is_kept(store: Store, role: Role) -> None:
    _, secret = create(store, "Ida", role)
    found = holder(store, secret)
    assert found is not None
    assert found.role == role
