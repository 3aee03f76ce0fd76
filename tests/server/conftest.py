"""A store with a run in it, and a server around it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from vivavoce.store.store import Store
from vivavoce.suites.experiment import run_suite

from .live import serving

SUITE = """\
name: refunds
dataset:
  rows:
    - {id: kind, input: ["Refund, please", "Thanks"], ground_truth: [refund, welcome], tags: [short, refunds]}
    - {id: a/b, input: "Where is it?", ground_truth: here}
    - {id: broken, input: "crash", ground_truth: x}
target: {kind: function, function: "bot.py:reply"}
graders:
  said: {kind: tool, function: contains, extractor: last_assistant}
gate: {kind: simple, metric_key: said, op: gte, value: 0.5}
"""
BOT = """\
def reply(messages):
    said = messages[-1]["content"]
    if said == "crash":
        raise RuntimeError("the bot broke")
    return "A refund is coming, welcome" if "e" in said else "You are welcome"
"""


@pytest.fixture(scope="session")
def examined(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a suite, its bot, and a store with one run of it, which tests copy."""
    folder = tmp_path_factory.mktemp("examined")
    (folder / "suites").mkdir()
    (folder / "suites" / "refunds.yaml").write_text(SUITE)
    (folder / "suites" / "bot.py").write_text(BOT)
    run_suite(folder / "suites" / "refunds.yaml", store=str(folder / ".vivavoce" / "vivavoce.db"))
    return folder


@pytest.fixture
def workspace(examined: Path, tmp_path: Path) -> Path:
    """A folder with a suite and its bot."""
    shutil.copytree(examined, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.fixture
def store(workspace: Path) -> Iterator[Store]:
    """A store with one run of the suite."""
    with Store.open(str(workspace / ".vivavoce" / "vivavoce.db")) as store:
        yield store


@pytest.fixture
def server(store: Store) -> Iterator[str]:
    """The address of a server around the store."""
    with serving(store) as url:
        yield url
