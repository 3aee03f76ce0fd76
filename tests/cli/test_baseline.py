"""`viva run` and `viva compare` against a baseline: exit codes, words, and bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Viva

ROWS = "".join(f'    - {{id: r{i}, input: "money back {i}", ground_truth: money}}\n' for i in range(7))
SUITE = f"""\
name: shop
dataset:
  rows:
{ROWS}target: {{kind: function, function: "bot.py:reply"}}
graders:
  said: {{kind: function, function: contains}}
gate: {{kind: simple, metric_key: said, value: 0, min_scored: 0.1}}
"""


@pytest.fixture(autouse=True)
def baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, viva: Viva) -> None:
    """A suite with the baseline of its first version."""
    monkeypatch.chdir(tmp_path)
    Path("suite.yaml").write_text(SUITE)
    Path("bot.py").write_text("def reply(message):\n    return 'your money'\n")
    Path("worse.py").write_text("def reply(message):\n    return 'sorry'\n\n\ntwo = reply\n")
    assert viva("run", "suite.yaml", "--quiet").returncode == 0
    assert viva("export", "--format", "baseline", "--output", "base.json").returncode == 0


def test_a_run_that_is_not_worse_passes_and_a_worse_one_fails(viva: Viva) -> None:
    same = viva("run", "suite.yaml", "--quiet", "--baseline", "base.json")
    assert (same.returncode, "PASS: no loss shown; a loss up to 0.410 is not excluded" in same.stdout) == (0, True), (
        same.stdout + same.stderr
    )
    worse = viva("run", "suite.yaml", "--quiet", "--baseline", "base.json", "--target", "worse.py:reply")
    assert worse.returncode == 1
    assert "FAIL: worse than before\n  fail · said: -1.000" in worse.stdout
    again = viva(*shown(worse.stdout))
    assert (again.returncode, "FAIL: worse than before" in again.stdout) == (1, True)


@pytest.mark.parametrize(
    ("bot", "tolerance", "code"),
    [
        ("'your money' if message[-1] < '6' else ''", ["--smallest-effect", "0.1"], 3),
        ("'your money' if '0' not in message else ''", ["--fail-on-break"], 1),
    ],
)
def test_the_command_that_is_shown_decides_the_same(viva: Viva, bot: str, tolerance: list[str], code: int) -> None:
    Path("worse.py").write_text(f"def reply(message):\n    return {bot}\n")
    run = viva("run", "suite.yaml", "-q", "--baseline", "base.json", "--target", "worse.py:reply", *tolerance)
    again = viva(*shown(run.stdout))
    assert (run.returncode, again.returncode) == (code, code), run.stdout + again.stdout


def shown(text: str) -> list[str]:
    """Return the arguments of the command that a run ends with."""
    return text.rpartition("see what changed with: viva ")[2].split()


def test_a_part_of_the_baseline_is_undecided_and_so_is_a_changed_judge(viva: Viva) -> None:
    part = viva("run", "suite.yaml", "--quiet", "--baseline", "base.json", "--sample", "r1")
    assert part.returncode == 3
    assert "the dataset differs: 6 samples only in the earlier run: r0, r2" in part.stdout
    Path("suite.yaml").write_text(SUITE.replace("function: contains", "function: contains, threshold: 0.5"))
    changed = viva("run", "suite.yaml", "--quiet", "--baseline", "base.json")
    assert (changed.returncode, "said: changed between the two gradings" in changed.stdout) == (3, True)


def test_two_runs_are_decided_only_when_asked_and_every_format_says_it(viva: Viva) -> None:
    viva("run", "suite.yaml", "--quiet", "--target", "worse.py:reply")
    assert viva("compare").returncode == 0
    assert json.loads(viva("compare", "--json").stdout)["ruling"] is None
    for more in (["--fail-on-worse"], ["--fail-on-break"], ["--smallest-effect", "0.5"]):
        told = viva("compare", "--json", *more)
        assert (told.returncode, json.loads(told.stdout)["ruling"]["verdict"]) == (1, "fail")
    assert "**Worse than before**" in viva("compare", "--fail-on-worse", "--markdown").stdout
    assert viva("compare", "--baseline", "base.json", "latest~1").returncode == 0


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("run", "suite.yaml", "--baseline", "suite.yaml"), "suite.yaml is not a baseline: it is not JSON"),
        (("run", "suite.yaml", "--fail-on-break"), "need --baseline FILE"),
        (("run", "suite.yaml", "--baseline", "base.json", "--smallest-effect", "2"), "--smallest-effect"),
        (
            ("run", "suite.yaml", "--baseline", "base.json", "--target", "worse.py:reply", "--target", "worse.py:two"),
            "base.json: no target in both runs (baseline: bot.reply; run: worse.reply, worse.two); use",
        ),
        (("compare", "--baseline", "none.json"), "none.json: cannot be read"),
        (("compare", "--baseline", "base.json", "latest", "latest"), "name only the later one"),
        (("compare", "--baseline", "base.json", "--grading-a", "g"), "name only the later one"),
    ],
)
def test_a_wrong_baseline_is_told_before_anything_runs(viva: Viva, command: tuple[str, ...], said: str) -> None:
    found = viva(*command)
    assert (found.returncode, said in found.stderr) == (2, True), found.stderr
    assert len(viva("runs", "--json").stdout.splitlines()) == 1


def test_a_run_that_was_stopped_says_that_it_was_not_compared(viva: Viva) -> None:
    stopped = viva("run", "suite.yaml", "--quiet", "--baseline", "base.json", "--max-calls", "1")
    assert stopped.returncode == 3
    assert "not compared with base.json: the run is not complete" in stopped.stdout


@pytest.mark.parametrize("options", [["--fail-on-worse"], ["--fail-on-break"], ["--smallest-effect", "0.1"]])
def test_the_latest_run_is_compared_with_the_one_before_it(viva: Viva, options: list[str]) -> None:
    viva("run", "suite.yaml", "--quiet", "--target", "worse.py:reply")
    assert viva("compare", "latest", *options).returncode == 1
    assert viva("compare", "latest", "--json").stdout == viva("compare", "--json").stdout


@pytest.mark.parametrize("runs", [["latest", "latest"], ["latest~1", "latest~1"]])
@pytest.mark.parametrize("options", [["--fail-on-worse"], ["--fail-on-break"], ["--smallest-effect", "0.1"]])
def test_scores_are_not_compared_with_themselves(viva: Viva, runs: list[str], options: list[str]) -> None:
    viva("run", "suite.yaml", "--quiet", "--target", "worse.py:reply")
    decided = viva("compare", *runs, *options)
    assert (decided.returncode, decided.stdout) == (2, "")
    assert "both sides are the grading shop-" in decided.stderr
    assert "name two runs, the earlier one first: viva compare latest~1 latest" in decided.stderr
    assert viva("compare", *runs).returncode == 0, "without a verdict it is only said"


def test_the_id_of_the_newest_run_alone_names_no_two_runs(viva: Viva) -> None:
    run = json.loads(viva("show", "--json").stdout)["run"]["id"]
    assert viva("compare", run, "--fail-on-worse").returncode == 2
