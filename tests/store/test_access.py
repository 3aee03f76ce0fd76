from __future__ import annotations

import time

import pytest
from sqlalchemy import select

from vivavoce.errors import UsageError
from vivavoce.store.access import IDLE_SECONDS, MAX_OF_TOKEN, MAX_SECONDS, Rate, Role, Sessions, digest_of, made_here
from vivavoce.store.database.schema import server_secrets, tokens
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
    with pytest.raises(UsageError, match="a token needs its user's name"):
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


TOKEN = digest_of("viva_token")


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sessions(store: Store, clock: Clock) -> Sessions:
    return Sessions(store.database, clock)


def stored(sessions: Sessions) -> list[str]:
    with sessions.database.connected() as connection:
        return [f"{row.name} {row.value}" for row in connection.execute(server_secrets.select())]


def test_a_session_names_its_token_until_it_ends(sessions: Sessions) -> None:
    mine, other = sessions.begin(TOKEN), sessions.begin(digest_of("other"))
    assert (sessions.token_digest(mine), sessions.token_digest(other)) == (TOKEN, digest_of("other"))
    sessions.end(mine)
    assert (sessions.token_digest(mine), sessions.token_digest(other)) == (None, digest_of("other"))
    assert sessions.token_digest("") is sessions.token_digest("x" * 10_000) is None


def test_neither_the_id_nor_the_token_is_stored(sessions: Sessions) -> None:
    session_id = sessions.begin(TOKEN)
    assert len(session_id) == 43
    assert not [row for row in stored(sessions) if session_id in row or "viva_token" in row]


def test_an_idle_session_ends_and_a_used_one_does_not(sessions: Sessions, clock: Clock) -> None:
    used, idle = sessions.begin(TOKEN), sessions.begin(TOKEN)
    for _ in range(3):
        clock.now += IDLE_SECONDS - 1
        assert sessions.token_digest(used) == TOKEN
    assert sessions.token_digest(idle) is None


def test_every_session_ends_at_last(sessions: Sessions, clock: Clock) -> None:
    session_id, end = sessions.begin(TOKEN), clock.now + MAX_SECONDS
    while clock.now < end - IDLE_SECONDS:
        clock.now += IDLE_SECONDS / 2
        assert sessions.token_digest(session_id) == TOKEN
    clock.now = end + 1
    assert sessions.token_digest(session_id) is None


def test_a_clock_that_goes_backward_ends_nothing(sessions: Sessions, clock: Clock) -> None:
    session_id = sessions.begin(TOKEN)
    clock.now -= 10 * MAX_SECONDS
    assert sessions.token_digest(session_id) == TOKEN


def test_sessions_that_ended_are_removed_when_one_begins(sessions: Sessions, clock: Clock) -> None:
    for _ in range(5):
        sessions.begin(TOKEN)
    clock.now += IDLE_SECONDS + 1
    sessions.begin(TOKEN)
    assert len([row for row in stored(sessions) if row.startswith("session:")]) == 1


def test_a_token_has_so_many_sessions_and_the_one_unused_longest_ends(sessions: Sessions, clock: Clock) -> None:
    other = sessions.begin(digest_of("other"))
    begun: list[str] = []
    for _ in range(MAX_OF_TOKEN + 2):
        clock.now += 1
        begun.append(sessions.begin(digest_of("viva_x")))
    open_ones = [one for one in begun if sessions.token_digest(one)]
    assert open_ones == begun[2:]
    assert sessions.token_digest(other) == digest_of("other")


SLOW = Rate(per_second=1e-9, burst=10)


def test_what_all_servers_spend_is_taken_from_one_bucket(store: Store) -> None:
    assert store.rates.spend(SLOW, {"ida": 4}) == {"ida": 6}
    found = store.rates.spend(SLOW, {"ida": 8, "bo": 1})
    assert {client: round(left, 3) for client, left in found.items()} == {"bo": 9, "ida": -2}
    assert store.rates.spend(SLOW, {}) == {}


def test_a_bucket_fills_again_and_is_forgotten(store: Store) -> None:
    store.rates.spend(SLOW, {"ida": 10})
    assert store.rates.spend(Rate(1e9, 10), {"ida": 1}) == {"ida": 9}
    store.rates.forget(1000)
    assert round(store.rates.spend(SLOW, {"ida": 1})["ida"], 3) == 8
    store.rates.forget(-1)
    assert store.rates.spend(SLOW, {"ida": 1}) == {"ida": 9}


def test_all_servers_share_a_secret(store: Store) -> None:
    secret = store.secrets.value("forms")
    with Store.open(store.place.address) as other:
        assert other.secrets.value("forms") == secret
    assert len(secret) == 32
    assert store.secrets.value("other") != secret
