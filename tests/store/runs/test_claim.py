from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from vivavoce.errors import UsageError
from vivavoce.store.runs.claim import claimed_in_file
from vivavoce.store.store import Store

from .. import cases
from ..cases import RUN

HOLD = """
import sys
from vivavoce.store.store import Store
with Store.open(sys.argv[1]) as store, store.claimed(sys.argv[2]):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_run_is_worked_on_by_one_at_a_time_and_another_run_meanwhile(store: Store) -> None:
    held = pytest.raises(UsageError, match=f"another process is working on run {RUN}")
    with store.claimed(RUN):
        with held, store.claimed(RUN):
            pass
        with store.claimed("another"):
            pass
    with store.claimed(RUN):
        pass


def test_looking_whether_a_run_is_held_takes_it_from_nobody(store: Store) -> None:
    assert not store.held(RUN)
    with store.claimed(RUN):
        assert store.held(RUN)
        assert not store.held("another")
    assert not store.held(RUN)


def test_whoever_waits_for_a_claim_never_holds_a_file_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, first = str(tmp_path / "store.db"), ExitStack()

    def first_ends(_seconds: float) -> None:
        first.close()

    monkeypatch.setattr("time.sleep", first_ends)
    with first:
        first.enter_context(claimed_in_file(place, RUN))
        with (
            claimed_in_file(place, RUN),
            pytest.raises(UsageError, match="another process"),
            claimed_in_file(place, RUN),
        ):
            pass


def test_a_claim_ends_with_its_process_however_that_ends(address: str) -> None:
    cases.begun(address).close()
    command = [sys.executable, "-c", HOLD, address, RUN]
    with Store.open(address) as store:
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "held\n"
            assert store.held(RUN)
            with pytest.raises(UsageError, match="another process"), store.claimed(RUN):
                pass
            child.kill()
        for _ in range(500):  # the server hears of it in its own time
            try:
                with store.claimed(RUN):
                    break
            except UsageError:
                continue
        else:
            pytest.fail("the claim outlived its process")
