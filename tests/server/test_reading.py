"""Pages and answers of the API read the store through one connection."""

from __future__ import annotations

import pytest
from sqlalchemy import event

from vivavoce.store.store import Store

from .live import get, serving


@pytest.mark.parametrize(
    "path", ["/", "/runs/latest", "/runs/latest/samples/kind", "/api/v1/runs/latest", "/api/v1/runs/latest/samples"]
)
def test_a_request_that_reads_begins_one_transaction(store: Store, path: str) -> None:
    with serving(store) as url:
        get(url + path)  # the secret, the roles and the like are read once
        begun: list[object] = []
        listen = begun.append
        event.listen(store.database.engine, "begin", listen)
        assert get(url + path).status == 200
        event.remove(store.database.engine, "begin", listen)
    assert len(begun) <= 2  # that of who asks, and the one of all that is read
