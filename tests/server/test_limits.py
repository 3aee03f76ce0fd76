from __future__ import annotations

import pytest

from vivavoce.server.limits import RateLimiter, asker_at


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_burst_is_allowed_and_then_so_many_a_second(clock: Clock) -> None:
    limiter = RateLimiter(2, 3, clock=clock)
    assert [limiter.take("ida") for _ in range(4)] == [0, 0, 0, 0.5]
    clock.now += 0.5
    assert [limiter.take("ida") for _ in range(2)] == [0, 0.5]
    clock.now += 1000
    assert [limiter.take("ida") for _ in range(4)] == [0, 0, 0, 0.5]


def test_each_asker_has_their_own(clock: Clock) -> None:
    limiter = RateLimiter(1, 1, clock=clock)
    assert (limiter.take("ida"), limiter.take("bo"), limiter.take("ida")) == (0, 0, 1)


def test_asking_how_long_to_wait_takes_nothing(clock: Clock) -> None:
    limiter = RateLimiter(1, 1, clock=clock)
    assert [limiter.wait("ida") for _ in range(3)] == [0, 0, 0]
    assert (limiter.take("ida"), limiter.wait("ida")) == (0, 1)


def test_the_one_who_has_not_asked_for_longest_is_forgotten(clock: Clock) -> None:
    limiter = RateLimiter(1, 1, clock=clock, most=2)
    for who in ("ida", "bo", "eve"):
        limiter.take(who)
    assert [limiter.wait(who) for who in ("bo", "eve", "ida")] == [1, 1, 0]


def test_servers_that_tell_each_other_what_was_taken_limit_together(clock: Clock) -> None:
    left = {"ida": 3.0}

    def spend(taken: dict[str, int]) -> dict[str, float]:
        for who, number in taken.items():
            left[who] -= number
        return {who: left[who] for who in taken}

    one, other = RateLimiter(1, 3, clock=clock), RateLimiter(1, 3, clock=clock)
    assert [one.take("ida") for _ in range(3)] == [0, 0, 0]
    one.exchange(spend)
    assert [other.take("ida") for _ in range(2)] == [0, 0]
    other.exchange(spend)
    assert (left["ida"], other.take("ida")) == (-2, 3)
    clock.now += 3
    assert (other.take("ida"), other.take("ida")) == (0, 1)


def test_what_could_not_be_told_is_told_the_next_time(clock: Clock) -> None:
    limiter = RateLimiter(1, 3, clock=clock)
    limiter.take("ida")

    def broken(taken: dict[str, int]) -> dict[str, float]:
        raise OSError(str(taken))

    with pytest.raises(OSError, match="'ida': 1"):
        limiter.exchange(broken)
    limiter.take("ida")
    told: list[dict[str, int]] = []
    limiter.exchange(lambda taken: told.append(taken) or {"ida": 0.0})
    assert (told, limiter.take("ida")) == ([{"ida": 2}], 1)


@pytest.mark.parametrize(
    ("address", "asker"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::ffff:2", "2001:db8::/64"),
        ("2001:db8:0:1::1", "2001:db8:0:1::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("not an address", "not an address"),
    ],
)
def test_one_machine_is_one_asker(address: str, asker: str) -> None:
    assert asker_at(address) == asker
