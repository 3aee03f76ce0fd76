from __future__ import annotations

from vivavoce.store.access.rates import Rate
from vivavoce.store.store import Store

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
