"""How many conversations the file handles of a process allow."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from vivavoce.errors import StoreError
from vivavoce.pacing import limits as pacing
from vivavoce.pacing.limits import affordable, few_handles_note, has_free_handle
from vivavoce.store.store import Store


@pytest.mark.parametrize(("limit", "concurrency"), [(None, 64), (4_096, 64), (64, 20), (32, 4), (24, 1), (3, 1)])
def test_fewer_handles_mean_fewer_conversations(
    monkeypatch: pytest.MonkeyPatch, limit: int | None, concurrency: int
) -> None:
    monkeypatch.setattr(pacing, "handle_limit", lambda: limit)
    assert affordable(64) == concurrency
    assert (few_handles_note(64) is None) == (concurrency == 64)


def test_a_store_that_cannot_be_opened_for_want_of_handles_says_so(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    Store.open(str(path)).close()
    used: list[int] = []
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(limits[0], 200), limits[1]))
    try:
        with Store.open(str(path)) as store:
            store.runs()
            while has_free_handle():
                used.append(os.open(os.devnull, os.O_RDONLY))
            with pytest.raises(StoreError, match=r"too many files are open|cannot be read: Too many open files"):
                Store.open(str(path)).runs()
    finally:
        for handle in used:
            os.close(handle)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
