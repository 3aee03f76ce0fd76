from __future__ import annotations

import time

import pytest
from sqlalchemy import select

from vivavoce.errors import UsageError
from vivavoce.store.access.tokens import Role, made_here
from vivavoce.store.database.schema import tokens
from vivavoce.store.store import Store


def test_whoever_brings_a_token_is_found_by_it(store: Store) -> None:
    ida, secret = store.tokens.create("Ida", "write")
    store.tokens.create("Bo", "read")
    assert store.tokens.holder(secret) == ida
    assert (ida.name, ida.role) == ("Ida", "write")


@pytest.mark.parametrize("wrong", ["", "viva_", "nothing", "\ud800", "\0", "%"])
def test_another_text_finds_nobody(store: Store, wrong: str) -> None:
    _, secret = store.tokens.create("Ida", "admin")
    for guess in (wrong, secret + wrong + "x", secret[:-1]):
        assert store.tokens.holder(guess) is None


def test_the_secret_is_random_and_looks_like_one_of_ours(store: Store) -> None:
    secrets = {store.tokens.create("Ida", "read")[1] for _ in range(20)}
    assert len(secrets) == 20
    assert all(map(made_here, secrets))
    assert not made_here("viva_guess")


def test_only_the_hash_is_kept(store: Store) -> None:
    made, secret = store.tokens.create("Ida", "read")
    with store.database.connected() as connection:
        (row,) = connection.execute(select(tokens)).all()
    assert not [cell for cell in row if isinstance(cell, str) and (secret in cell or secret[5:] in cell)]
    assert secret not in repr(made) + repr(store.tokens.all()) + repr(store.audit.entries())


def test_a_token_that_has_been_revoked_finds_nobody_and_is_still_listed(store: Store) -> None:
    made, secret = store.tokens.create("Ida", "read")
    assert store.tokens.revoke(made.id).revoked_at is not None
    assert store.tokens.holder(secret) is None
    assert [one.id for one in store.tokens.all() if one.revoked_at] == [made.id]
    for name in (made.id, "nobody", "\0"):
        with pytest.raises(UsageError, match=r"already revoked|no token"):
            store.tokens.revoke(name)


def test_a_token_ends_when_its_time_is_over(store: Store) -> None:
    now = time.time()
    _, over = store.tokens.create("Ida", "read", expires_at=now - 1)
    assert (store.tokens.holder(over), store.tokens.any_good()) == (None, False)
    _, good = store.tokens.create("Ida", "read", expires_at=now + 1000)
    assert store.tokens.holder(good) is not None
    assert store.tokens.any_good()


def test_what_is_done_to_tokens_is_noted(store: Store) -> None:
    made, _ = store.tokens.create("Ida", "admin", actor="root")
    store.tokens.revoke(made.id, "root")
    told = [(one.actor, one.action, one.subject) for one in store.audit.entries().entries]
    assert told == [("root", "token.revoke", made.id), ("root", "token.create", made.id)]


@pytest.mark.parametrize("name", ["", " ", "x" * 101, "two\nlines", "\x1b[2J"])
def test_a_name_is_one_line(store: Store, name: str) -> None:
    with pytest.raises(UsageError, match="name of a token is that of its user"):
        store.tokens.create(name, "read")


@pytest.mark.parametrize("role", ["read", "write", "admin"])
def test_the_role_is_kept(store: Store, role: Role) -> None:
    _, secret = store.tokens.create("Ida", role)
    found = store.tokens.holder(secret)
    assert found is not None
    assert found.role == role


def test_a_token_that_cannot_be_read_is_refused_and_hides_no_other(store: Store) -> None:
    odd, odd_secret = store.tokens.create("Ida", "admin", actor="x")
    token, secret = store.tokens.create("Bo", "read", actor="x")
    with store.database.writing() as connection:
        connection.exec_driver_sql(f"UPDATE tokens SET role = 'evil' WHERE id = '{odd.id}'")
    assert store.tokens.holder(odd_secret) is None
    assert store.tokens.holder(secret) == token
    assert [row.id for row in store.tokens.all() if row.revoked_at is None] == [token.id]


def test_a_session_that_cannot_be_read_is_over_and_hinders_no_other(store: Store) -> None:
    with store.database.writing() as connection:
        connection.exec_driver_sql("INSERT INTO server_secrets (name, value) VALUES ('session:x', 'evil')")
    session = store.sessions.begin(b"digest")
    assert store.sessions.token_digest(session) == b"digest"
