"""Errors of a run: how many it may have, and trying again what ended with one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vivavoce.errors import UsageError
from vivavoce.records.run import AttemptKey
from vivavoce.run.options import RunOptions
from vivavoce.settings import settings
from vivavoce.store.store import Store
from vivavoce.suites.experiment import open_run, reopen_run, run_suite

BOT = """\
from pathlib import Path

BROKEN, ASKED = Path(__file__).with_name("broken"), Path(__file__).with_name("asked")

def broken(what):
    return BROKEN.exists() and what in BROKEN.read_text().split()

def answer(message):
    with ASKED.open("a") as asked:
        asked.write(message + "\\n")
    if broken(message):
        raise ValueError(f"{message} is down")
    return message

def judge(sample, submission):
    if broken("judge"):
        raise ValueError("the judge is down")
    return 1.0
"""
SUITE = """\
name: outage
dataset: d.jsonl
target: {kind: function, function: "bot.py:answer", max_retries: 0}
graders:
  right: {kind: tool, function: "bot.py:judge"}
"""


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bot.py").write_text(BOT)
    (tmp_path / "d.jsonl").write_text("".join(json.dumps({"id": one, "input": one}) + "\n" for one in "abcd"))
    (tmp_path / "suite.yaml").write_text(SUITE)
    return tmp_path / "suite.yaml"


def outage(suite: Path, *what: str) -> None:
    suite.with_name("broken").write_text(" ".join(what))


def asked(suite: Path) -> list[str]:
    """Return what the target was asked since the last time, in the order of letters."""
    path = suite.with_name("asked")
    lines = sorted(path.read_text().split()) if path.exists() else []
    path.unlink(missing_ok=True)
    return lines


@pytest.mark.parametrize("broken", ["b", "judge"])
def test_a_single_error_without_a_gate_is_no_success(suite: Path, broken: str) -> None:
    outage(suite, broken)
    assert run_suite(suite).exit_code == 3
    outage(suite)
    assert run_suite(suite).exit_code == 0


@pytest.mark.parametrize(("limit", "code"), [("1", 3), ("2", 0), ("25%", 3), ("50%", 0)])
def test_a_run_may_have_as_many_errors_as_it_is_told(suite: Path, limit: str, code: int) -> None:
    outage(suite, "b", "c")
    assert run_suite(suite, RunOptions(max_errors=limit)).exit_code == code


async def test_what_ended_with_an_error_is_tried_again_and_what_it_was_is_kept(suite: Path) -> None:
    outage(suite, "b", "c")
    with Store.open(settings().store) as store:
        first = await open_run(suite, store=store).execute()
        assert (first.exit_code, first.summary.error_attempts, asked(suite)) == (3, 2, ["a", "b", "c", "d"])
        with pytest.raises(UsageError, match=r"2 .* had an error; retry with: viva run --resume .* --errors"):
            reopen_run(first.run.id, store=store)
        outage(suite, "c")
        second = await reopen_run(first.run.id, store=store, errors=True).execute()
        assert (second.exit_code, second.summary.error_attempts, asked(suite)) == (3, 1, ["b", "c"])
        outage(suite)
        third = await reopen_run(first.run.id, store=store, errors=True).execute()
        assert (third.exit_code, third.summary.error_attempts, asked(suite)) == (0, 0, ["c"])
        assert (third.summary.attempts, third.summary.grader("right").scored) == (4, 4)
        replaced = store.replaced(first.run.id)
        assert sorted(one.key for one in replaced) == [AttemptKey(one, "bot.answer", 0) for one in "bcc"]
        assert all("is down" in json.dumps(one.rows["attempts"]) for one in replaced)


async def test_a_conversation_that_went_well_is_graded_again_and_not_held_again(suite: Path) -> None:
    outage(suite, "judge")
    with Store.open(settings().store) as store:
        first = await open_run(suite, store=store).execute()
        assert (first.summary.grader("right").errors, asked(suite)) == (4, ["a", "b", "c", "d"])
        outage(suite)
        again = await reopen_run(first.run.id, store=store, errors=True).execute()
        assert (again.exit_code, again.summary.grader("right").scored, asked(suite)) == (0, 4, [])
