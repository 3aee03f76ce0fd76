from __future__ import annotations

from vivavoce.store.store import Store

from ..live import get


def test_the_log_is_read_a_page_at_a_time(server: str, store: Store) -> None:
    made = [store.tokens.create(f"user {number}", "read", actor="root")[0].id for number in range(3)]
    first = get(f"{server}/api/v1/audit?limit=2").json()
    rest = get(f"{server}/api/v1/audit?limit=2&after={first['next']}").json()
    assert [one["subject"] for one in first["entries"] + rest["entries"]] == made[::-1]
    assert rest["next"] is None
    assert get(f"{server}/api/v1/audit?after=nowhere").status == 404
