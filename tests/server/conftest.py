"""A store with a run in it, and a server around it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from vivavoce.run.opening import run_suite
from vivavoce.store.store import Store

from .live import serving

SUITE = """\
name: refunds
dataset:
  rows:
    - {id: kind, input: ["Refund, please", "Thanks"], ground_truth: [refund, welcome], tags: [short]}
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


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A folder with a suite and its bot."""
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "refunds.yaml").write_text(SUITE)
    (tmp_path / "suites" / "bot.py").write_text(BOT)
    return tmp_path


@pytest.fixture
def store(workspace: Path) -> Iterator[Store]:
    """A store with one run of the suite."""
    path = workspace / ".vivavoce" / "vivavoce.db"
    run_suite(workspace / "suites" / "refunds.yaml", store=str(path))
    with Store.open(str(path)) as store:
        yield store


@pytest.fixture
def server(store: Store) -> Iterator[str]:
    """The address of a server around the store."""
    with serving(store) as url:
        yield url
