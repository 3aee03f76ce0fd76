"""Sessions of browsers: begun with a token, ended by time, by hand, and found by the hash of a random id."""

from __future__ import annotations

import pytest

from vivavoce.store.access.sessions import IDLE_SECONDS, MAX_OF_TOKEN, MAX_SECONDS, Sessions
from vivavoce.store.access.tokens import digest_of
from vivavoce.store.database.schema import server_secrets
from vivavoce.store.store import Store

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
