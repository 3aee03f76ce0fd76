"""Every example is run as its reader would run it: by the command line, in a folder of its own."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from forked import program

EXAMPLES = Path(__file__).parents[2] / "examples"
SUPPORT = EXAMPLES / "support_bot" / "suite.yaml"
RELEASE_2 = f"{EXAMPLES / 'support_bot' / 'bot_v2.py'}:reply"

Row = dict[str, str]
Grade = tuple[str, str, str]
"""A sample, a turn (empty for the whole conversation), and a grader."""


def viva(*arguments: object, exits: int = 0) -> str:
    """Run a command and return what it wrote to standard output."""
    done = subprocess.run([program("viva"), *map(str, arguments)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, "Traceback" in done.stderr) == (exits, False), f"{done.stdout}\n{done.stderr}"
    return done.stdout


def newest(store: Path | None = None) -> list[Row]:
    """Return a row for each grade of the newest run."""
    place = [] if store is None else ["--store", store]
    return list(csv.DictReader(io.StringIO(viva("export", "latest", "--format", "csv", *place))))


def grades(rows: list[Row], state: str, score: str = "") -> set[Grade]:
    """Return the grades that are in this state, and have this score."""
    return {(r["sample_id"], r["turn"], r["grader"]) for r in rows if (r["state"], r["score"]) == (state, score)}


def of_turns(found: set[Grade]) -> set[Grade]:
    return {(sample, turn, grader) for sample, turn, grader in found if turn}


def test_release_1_of_the_support_bot_passes() -> None:
    viva("run", SUPPORT)
    rows = newest()
    assert not grades(rows, "error")
    assert not grades(rows, "scored", "0.0")
    skipped = {(sample, turn) for sample, turn, grader in grades(rows, "skipped") if grader != "refund_form"}
    assert skipped == {("plain-refund", "1"), ("too-late", "2")}
    assert {grader for _, _, grader in grades(rows, "scored", "1.0")} >= {"refund_form"}


def test_both_releases_stand_side_by_side() -> None:
    release_1 = RELEASE_2.replace("bot_v2", "bot_v1")
    shown = viva("run", SUPPORT, "--quiet", "--table", "--target", release_1, "--target", RELEASE_2, exits=1)
    assert shown.splitlines()[1].split() == ["sample", "bot_v1.reply", "bot_v2.reply"]
    assert {row["target"] for row in newest()} == {"bot_v1.reply", "bot_v2.reply"}


@pytest.fixture(scope="module")
def release_2(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    """What came of release 2, whose gate has failed."""
    store = tmp_path_factory.mktemp("release_2") / "store.db"
    assert "FAIL" in viva("run", SUPPORT, "--target", RELEASE_2, "--store", store, exits=1)
    return newest(store)


def test_every_fault_of_release_2_is_found_in_its_turn(release_2: list[Row]) -> None:
    forgot_the_number = {("change-of-topic", turn, grader) for turn in "45" for grader in ("answers", "tools")}
    wrong_amount = {("correction", "3", grader) for grader in ("answers", "tools")}
    paid_unasked = {("question-before-yes", "2", grader) for grader in ("answers", "tools", "asks_first")}
    nothing_left_to_pay = {("question-before-yes", "3", grader) for grader in ("answers", "tools")}
    found = of_turns(grades(release_2, "scored", "0.0"))
    assert found == forgot_the_number | wrong_amount | paid_unasked | nothing_left_to_pay


def test_the_crash_of_release_2_is_an_error_of_the_target(release_2: list[Row]) -> None:
    crashed = [row for row in release_2 if row["state"] == "error" and row["turn"]]
    assert {(row["sample_id"], row["turn"]) for row in crashed} == {("not-arrived-yet", "2")}
    assert {(row["blame"], row["failure_kind"], row["score"]) for row in crashed} == {("target", "crash", "")}


def demo(viva: str, store: Path) -> subprocess.CompletedProcess[str]:
    script = EXAMPLES / "support_bot" / "demo.sh"
    environment = os.environ | {"VIVA": viva, "DEMO_STORE": str(store)}
    return subprocess.run([script], env=environment, capture_output=True, text=True, timeout=60)


def test_the_demo_shows_both_releases_and_what_to_do_next(tmp_path: Path) -> None:
    done = demo(str(program("viva")), tmp_path / "demo.db")
    assert done.returncode == 0, done.stderr
    told = [
        "PASS",
        "FAIL",
        "show latest question-before-yes",
        "compare latest~1 latest",
        "it is 0.8727",
        "init my-suite",
    ]
    told += ["success · target passed", "impossible · target failed", "target: the bot paid EUR 24.90 back"]
    assert [text for text in told if text not in done.stdout] == []
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith("demo.db")] == []


@pytest.mark.parametrize(("always", "rule"), [("false", "exit code 1 where 0"), ("true", "exit code 0 where 1")])
def test_the_demo_fails_when_release_1_fails_or_release_2_passes(always: str, rule: str, tmp_path: Path) -> None:
    done = demo(always, tmp_path / "demo.db")
    assert done.returncode == 1
    assert rule in done.stderr


def test_a_fresh_suite_fails_by_its_rule_and_passes_once_the_bot_is_fixed(tmp_path: Path) -> None:
    viva("init", "exam")
    viva("run", "exam/suite.yaml", exits=1)
    assert grades(newest(), "scored", "0.0") == {("in-a-hurry", "", "asks_first")}
    bot = tmp_path / "exam" / "bot.py"
    bot.write_text(bot.read_text().replace('if not (agreed or "today" in texts[-1]):', "if not agreed:"))
    viva("run", "exam/suite.yaml")


def test_recorded_conversations_are_graded_and_compared_with_what_people_said() -> None:
    shown = viva("run", EXAMPLES / "replay" / "suite.yaml")
    assert "calls predicts solved: precision 0.800, recall 1.000" in shown
    zeros = grades(newest(), "scored", "0.0")
    assert {sample for sample, _, grader in zeros if grader == "calls"} == {"wrong-book", "promised-only"}
    assert {sample for sample, _, grader in zeros if grader == "solved"} == {
        "wrong-book",
        "promised-only",
        "rude-but-right",
    }


@contextmanager
def started(script: Path, *arguments: str) -> Generator[str]:
    """Start the server of an example and return its address."""
    command = [program("python"), script, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().removeprefix("listening on ").strip()
        finally:
            server.terminate()


def test_a_bot_behind_http_keeps_the_baskets_of_its_sessions_apart(tmp_path: Path) -> None:
    folder = shutil.copytree(EXAMPLES / "http_bot", tmp_path / "http_bot")
    with started(EXAMPLES / "http_bot" / "server.py", "0") as url:
        suite = (folder / "suite.yaml").read_text()
        assert "http://127.0.0.1:8765/chat" in suite
        (folder / "suite.yaml").write_text(suite.replace("http://127.0.0.1:8765/chat", url))
        viva("run", folder / "suite.yaml")
    assert len(of_turns(grades(newest(), "scored", "1.0"))) == 7


def test_a_bot_that_is_not_there_is_an_error_and_not_a_score(tmp_path: Path) -> None:
    folder = shutil.copytree(EXAMPLES / "http_bot", tmp_path / "http_bot")
    suite = (folder / "suite.yaml").read_text().replace(":8765/", ":9/").replace("timeout: 10", "max_retries: 0")
    (folder / "suite.yaml").write_text(suite)
    viva("run", folder / "suite.yaml", exits=3)
    assert not grades(newest(), "scored", "0.0")


def test_an_agent_with_tools_leaves_the_state_that_its_rows_expect(tmp_path: Path) -> None:
    folder = shutil.copytree(EXAMPLES / "tool_agent", tmp_path / "tool_agent")
    with started(folder / "model.py", "--port", "0") as url:
        suite = (folder / "suite.yaml").read_text()
        assert "http://127.0.0.1:8766/v1" in suite
        (folder / "suite.yaml").write_text(suite.replace("http://127.0.0.1:8766/v1", url))
        viva("run", folder / "suite.yaml")
        rows = newest()
        assert {(sample, grader) for sample, _, grader in grades(rows, "scored", "1.0")} == {
            *((sample, "agreed") for sample in ("refund", "changes-mind", "too-early")),
            *((sample, "expect") for sample in ("refund", "changes-mind", "too-early", "service-down")),
        }
        handlers = (folder / "handlers.py").read_text()
        (folder / "handlers.py").write_text(handlers.replace('found["status"] = "refunded"', "pass"))
        printed = viva("run", folder / "suite.yaml", "--quiet", exits=1)
    assert 'orders.A-17.status: wanted "refunded", is "delivered"' in printed


@pytest.mark.parametrize("name", ["support_bot", "replay", "http_bot", "letta", "tool_agent", "pytest"])
def test_every_suite_is_valid_and_names_the_schema(name: str) -> None:
    (suite,) = (EXAMPLES / name).glob("*.yaml")
    assert "valid" in viva("validate", suite)
    assert suite.read_text().startswith("# yaml-language-server: $schema=../suite.schema.json\n")


def test_the_tests_of_the_pytest_example_pass_and_ask_nobody(tmp_path: Path) -> None:
    folder = shutil.copytree(EXAMPLES / "pytest", tmp_path / "pytest")
    plugins = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "vivavoce.testing.plugin"}
    command = [sys.executable, "-m", "pytest", "-q", "-o", "viva_judge=judge.py:asks_nobody"]
    (folder / "judge.py").write_text(
        "from vivavoce.testing import ScriptedModel\nasks_nobody = ScriptedModel([], 'scripted judge')\n"
    )
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **plugins}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout
    assert "6 passed" in done.stdout


def test_the_schema_of_the_examples_is_the_one_that_viva_prints() -> None:
    kept = json.loads((EXAMPLES / "suite.schema.json").read_text())
    assert kept == json.loads(viva("schema")), "refresh it with: viva validate schema > examples/suite.schema.json"
