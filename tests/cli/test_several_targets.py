"""Several targets on the command line: as a suite lists them, and as --target names them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from vivavoce.testing import LoopbackServer

from .conftest import Viva

SUITE = """\
name: capitals
target: {kind: function, function: "bot.py:nothing"}
dataset:
  rows:
    - {id: france, input: Which is the capital of France?, ground_truth: Paris}
    - {id: italy, input: Which is the capital of Italy?, ground_truth: Rome}
graders:
  right: {kind: function, function: contains}
gate: {kind: simple, metric_key: right, op: gte, value: 0.4}
"""
BOT = """\
def nothing(message):
    return "I do not know."

def knows(message):
    return "Paris, and Rome."
"""


@pytest.fixture(autouse=True)
def _files(tmp_path: Path) -> None:  # pyright: ignore[reportUnusedFunction]
    (tmp_path / "suite.yaml").write_text(SUITE)
    (tmp_path / "bot.py").write_text(BOT)


def test_each_target_that_is_named_is_run_and_none_is_lost(viva: Viva) -> None:
    with LoopbackServer(lambda request: "Paris") as server:
        model = f"{server.base_url}#m"
        done = viva("run", "suite.yaml", "-q", "--table", "--target", "bot.py:knows", "--target", model)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:5] == [
        "right of each sample with each target",
        "sample  bot.knows    m",
        "france  1.00         1.00",
        "italy   1.00         0.00 ✗",
        "",
    ]
    assert "right: no best target: on the same samples m is not clearly below bot.knows" in done.stdout
    assert "m used " in done.stdout
    assert "bot.nothing" not in done.stdout


def test_the_gate_holds_for_every_target(viva: Viva) -> None:
    done = viva("run", "suite.yaml", "-q", "--target", "bot.py:knows", "--target", "bot.py:nothing")
    assert done.returncode == 1
    assert "fail · bot.nothing: right: mean must be ≥ 0.4; it is 0" in done.stdout
    assert "bot.nothing  france  0.00  right:" in done.stdout


def test_what_each_used_has_a_price_where_the_table_has_one(viva: Viva, tmp_path: Path) -> None:
    with LoopbackServer(lambda request: "Paris") as server:
        prices = {"models": {f"{server.base_url}#m": {"input": 1000.0, "output": 1000.0}}}
        (tmp_path / "prices.json").write_text(json.dumps(prices))
        names = ("--target", f"{server.base_url}#m", "--target", "bot.py:knows")
        done = viva("run", "suite.yaml", "-q", *names, VIVAVOCE_PRICES=str(tmp_path / "prices.json"))
        again = viva("show", "--table", VIVAVOCE_PRICES=str(tmp_path / "prices.json"))
    assert "m used " in done.stdout
    assert "out, $" in done.stdout
    assert any(line.startswith("cost") and "$" in line for line in again.stdout.splitlines())


def test_a_stored_run_shows_its_table_and_a_single_target_its_graders(viva: Viva) -> None:
    viva("run", "suite.yaml", "-q")
    shown = viva("show", "--table")
    assert shown.stdout.splitlines()[:2] == ["sample  right", "france  0.00 ✗"]
    assert "capitals" in shown.stdout
    assert viva("show").stdout in shown.stdout
    for wrong in (("latest", "france"), ("--json",)):
        refused = viva("show", *wrong, "--table")
        assert (refused.returncode, "--table shows the samples of a whole run" in refused.stderr) == (2, True)


def test_validate_and_a_dry_run_count_every_target(viva: Viva) -> None:
    names = ("--target", "bot.py:knows", "--target", "bot.py:nothing", "--target", "http://localhost:1/v1#m")
    for command in (("validate",), ("run", "--dry-run")):
        done = viva(*command, "suite.yaml", *names)
        assert "2 samples × 3 targets × 1 trial = 6 conversations" in done.stdout, done.stderr


def test_a_target_given_twice_is_refused_before_anything_runs(viva: Viva) -> None:
    for command in ("validate", "run"):
        done = viva(command, "suite.yaml", "--target", "bot.py:knows", "--target", "bot.py:knows")
        assert (done.returncode, done.stderr) == (2, "--target: 'bot.py:knows' is given twice\n")


def test_tables_of_other_programs_name_the_target_in_each_row(viva: Viva) -> None:
    viva("run", "suite.yaml", "-q", "--target", "bot.py:knows", "--target", "bot.py:nothing")
    rows = csv.DictReader(viva("export", "--format", "csv").stdout.splitlines())
    assert {(row["sample_id"], row["target"]) for row in rows} == {
        (sample, f"bot.{name}") for sample in ("france", "italy") for name in ("knows", "nothing")
    }
    junit = viva("export", "--format", "junit").stdout
    assert '<testsuite name="bot.knows"' in junit
    assert 'classname="capitals.bot.nothing"' in junit
