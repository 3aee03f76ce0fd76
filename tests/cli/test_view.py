from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from forked import program
from vivavoce.records.run import Grading, Run
from vivavoce.store.store import Store

from .conftest import Viva

RUN = "support-abcdef"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """The file of a store with a run in it."""
    path = tmp_path / "kept.db"
    with Store.open(str(path)) as store:
        store.add_run(Run(id=RUN, suite="support", spec={}, base="/suites", started_at=1000.0))
        store.add_grading(Grading(id="g1", run_id=RUN, spec={}, created_at=1000.0))
    return path


@contextmanager
def viewing(*arguments: str, **environment: str) -> Generator[tuple[subprocess.Popen[str], str]]:
    """Run `viva view`, and give its process and the address that it prints."""
    process = subprocess.Popen(
        [program("viva"), "view", *arguments], stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}
    )
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


def test_the_pages_are_at_the_address_that_is_printed_until_it_is_interrupted(store: Path) -> None:
    with viewing("--no-browser", "--store", str(store)) as (process, address):
        assert address.startswith("http://127.0.0.1:")
        with urlopen(address) as answer:
            assert RUN in answer.read().decode()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0


def test_a_browser_is_opened_at_the_run_that_is_named(store: Path, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {seen}.part && mv {seen}.part {seen}\n')
    browser.chmod(0o755)
    with viewing("latest", "--store", str(store), BROWSER=f"{browser} %s") as (process, address):
        with urlopen(address) as answer:  # answered when the browser was told, for that is done first
            assert answer.status == 200
        assert process.poll() is None
    assert seen.read_text() == address
    assert address.endswith(f"/runs/{RUN}")


def test_a_store_that_is_not_there_is_created_and_explains_itself(tmp_path: Path) -> None:
    new = tmp_path / "new" / "kept.db"
    with viewing("--no-browser", "--store", str(new)) as (_, address), urlopen(address) as answer:
        assert "Start the demo" in answer.read().decode()
    assert new.exists()


def test_a_store_or_a_run_that_is_not_there_is_said_in_one_line(viva: Viva, store: Path) -> None:
    for arguments in (("latest", "--store", "nowhere.db"), ("nobody", "--store", str(store))):
        done = viva("view", "--no-browser", *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert len(done.stderr.splitlines()) == 1
