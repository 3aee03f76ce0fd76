"""`viva run --recording`: a new release is tested offline against what an earlier one was recorded with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Viva
from vivavoce.messages import ToolCall
from vivavoce.testing import LoopbackServer

SUITE = """\
name: shop
dataset: {path: rows.jsonl}
target:
  kind: openai
  base_url: ${BASE}
  model_handles: [m]
  handlers: {look_up: tools.py:look_up, refund: tools.py:refund}
graders: {says: {kind: function, function: contains}}
"""
TOOLS = """\
def look_up(order: str, state: dict):
    return state["orders"][order]


def refund(order: str, state: dict, amount: int = 0):
    state["orders"][order] = "refunded"
    return "done"
"""
ROWS = [
    {
        "id": f"row-{number}",
        "input": [f"Refund A-{number}", "Yes"],
        "ground_truth": ["Shall I", "paid"],
        "state": {"orders": {f"A-{number}": "delivered"}},
        "expect": {"all": [{"state": {f"orders.A-{number}": "refunded"}}]},
    }
    for number in (1, 2)
]


def model(body: dict[str, Any]) -> Any:
    """Ask before a refund; with the word "hasty" in its prompt, name an amount, too."""
    messages = body["messages"]
    hasty = "hasty" in str(messages[0]["content"])
    said = [one["content"] for one in messages if one["role"] == "user"]
    order, agreed = said[0].split()[-1], said[-1] == "Yes"
    if messages[-1]["role"] == "tool":
        return "It is paid back." if agreed else "Shall I refund it?"
    more = {"amount": 5} if hasty and agreed and order == "A-2" else {}
    return [ToolCall(id=f"c{len(messages)}", name="refund" if agreed else "look_up", args={"order": order, **more})]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, viva: Viva) -> Iterator[Path]:
    """A folder with a suite, and its recording."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "suite.yaml").write_text(SUITE)
    (tmp_path / "hasty.yaml").write_text(SUITE.replace("  kind: openai", "  kind: openai\n  system_prompt: Be hasty"))
    write_rows(ROWS)
    with LoopbackServer(model) as server:
        monkeypatch.setenv("BASE", server.base_url)
        assert viva("run", "suite.yaml", "-q").returncode == 0
        assert viva("export", "latest", "-f", "recordings", "-o", "calls.jsonl").returncode == 0
        yield tmp_path


def write_rows(rows: list[dict[str, Any]]) -> None:
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.usefixtures("folder")
def test_the_same_release_is_as_recorded_and_leaves_the_recorded_state(viva: Viva) -> None:
    ran = viva("run", "suite.yaml", "-q", "--recording", "calls.jsonl")
    assert ran.returncode == 0
    assert "as recorded: 2 of 2 conversations\ntool calls: 4 answered from the recording\n" in ran.stdout
    assert "calls.jsonl covers 2 of 2 rows, recorded in run shop-" in ran.stderr
    assert "(recorded) delivered" in viva("show", "latest", "row-1").stdout


@pytest.mark.usefixtures("folder")
def test_a_call_that_was_not_recorded_is_an_error_and_nothing_is_called_in_its_place(viva: Viva) -> None:
    ran = viva("run", "hasty.yaml", "-q", "--recording", "calls.jsonl")
    assert ran.returncode == 3
    call = 'refund({"order": "A-2", "amount": 5})'
    assert f"a call that is not in the recording: 1 (row-2, turn 2: calls.jsonl has no result of {call}" in ran.stdout
    shown = viva("show", "latest", "row-2").stdout
    assert f"suite: calls.jsonl has no result of {call}, called in turn 2; record it anew" in shown.replace(
        "\n    ", " "
    )
    assert 'recorded: refund({"order": "A-2"})' in shown
    assert "says, 3 comparable turns: 0 better, 0 worse, 3 the same" in ran.stdout


@pytest.mark.usefixtures("folder")
def test_a_tool_is_called_for_real_where_it_is_named(viva: Viva) -> None:
    ran = viva("run", "hasty.yaml", "-q", "--recording", "calls.jsonl", "--live", "refund")
    assert ran.returncode == 0
    assert "tool calls: 2 answered from the recording, 2 answered live" in ran.stdout
    assert "different tool calls: 1 (row-2, turn 2: refund(" in ran.stdout
    verdict = "pass · expect: every conversation must pass; all 2 passed"
    assert verdict in ran.stdout, "the state is that of the live tools"


@pytest.mark.usefixtures("folder")
def test_what_may_be_live_has_to_be_known(viva: Viva) -> None:
    ran = viva("run", "suite.yaml", "--recording", "calls.jsonl", "--live", "refnd")
    assert (ran.returncode, "no tool and no target is called 'refnd'; did you mean 'refund'?" in ran.stderr) == (
        2,
        True,
    )
    ran = viva("run", "suite.yaml", "--live", "refund")
    assert ran.returncode == 2
    assert "--live needs --recording FILE" in ran.stderr


def test_a_target_that_calls_tools_itself_has_to_be_named(viva: Viva, folder: Path) -> None:
    (folder / "bot.py").write_text("def reply(message):\n    return 'It is paid back.'\n")
    rows = [{key: value for key, value in row.items() if key in ("id", "input", "ground_truth")} for row in ROWS]
    write_rows(rows)
    asked = ("run", "suite.yaml", "-q", "--recording", "calls.jsonl", "--target", "bot.py:reply")
    refused = viva(*asked)
    assert refused.returncode == 2
    assert "calls its tools itself, so calls.jsonl cannot answer them" in refused.stderr
    assert "use --live bot.reply" in refused.stderr
    ran = viva(*asked, "--live", "bot.reply")
    assert ran.returncode == 0
    assert "as recorded: 0 of 2 conversations" in ran.stdout


def test_a_dry_run_says_which_rows_are_covered(viva: Viva, folder: Path) -> None:
    other = {**ROWS[1], "input": ["Refund A-2", "No"]}
    write_rows([ROWS[0], other, {**ROWS[0], "id": "new"}])
    text = (folder / "calls.jsonl").read_text()
    changed = text.replace('"suite":"shop"', '"suite":"old"').replace('"name":"look_up"', '"name":"find"')
    (folder / "other.jsonl").write_text(changed)
    ran = viva("run", "suite.yaml", "--dry-run", "--recording", "other.jsonl")
    assert ran.returncode == 0
    for said in (
        "other.jsonl covers 2 of 3 rows, recorded in run shop-",
        "other.jsonl was recorded with another suite, 'old'; rows are matched by their ids",
        "other.jsonl was recorded with another version of the dataset",
        "other.jsonl does not have new: a tool that only these rows call is not answered",
        "other.jsonl has other words of the user: row-2 from turn 2 on",
        "other.jsonl has calls of tools that no target offers: find; is it called look_up now?",
    ):
        assert said in ran.stderr


def test_validate_reads_the_recording_of_a_suite(viva: Viva, folder: Path) -> None:
    with (folder / "suite.yaml").open("a") as file:
        file.write("recording: {path: calls.jsonl, live: [refund]}\n")
    ran = viva("validate", "suite.yaml")
    assert (ran.returncode, "note: calls.jsonl covers 2 of 2 rows" in ran.stdout) == (0, True)
    (folder / "calls.jsonl").write_text((folder / "calls.jsonl").read_text()[:-20])
    ran = viva("validate", "suite.yaml")
    assert (ran.returncode, "calls.jsonl:" in ran.stderr, ran.stderr.count("\n")) == (2, True, 1)


@pytest.mark.usefixtures("folder")
def test_a_recording_of_other_rows_cannot_be_used(viva: Viva) -> None:
    write_rows([{**row, "id": f"other-{index}"} for index, row in enumerate(ROWS)])
    ran = viva("run", "suite.yaml", "--recording", "calls.jsonl")
    assert ran.returncode == 2
    assert "none of its 2 rows is among the 2 of this suite; it was recorded with the suite 'shop'" in ran.stderr


def test_two_recorded_trials_are_said_and_the_nearest_is_compared(viva: Viva, folder: Path) -> None:
    assert viva("run", "suite.yaml", "-q", "--trials", "2").returncode == 0
    assert viva("export", "latest", "-f", "recordings", "-o", "two.jsonl").returncode == 0
    lines = [json.loads(line) for line in (folder / "two.jsonl").read_text().splitlines()]
    for line in lines:
        if line.get("kind") == "reply" and line["trial"] == 0 and line["turn"] == 0:
            line["messages"][-1]["content"] = "Something else"
    (folder / "two.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    ran = viva("run", "suite.yaml", "-q", "--recording", "two.jsonl")
    assert "two.jsonl has up to 2 conversations of a row; each new one is compared with the nearest" in ran.stderr
    assert "as recorded: 2 of 2 conversations" in ran.stdout


def test_a_recorded_target_answers_without_the_bot(viva: Viva, folder: Path) -> None:
    suite = "name: shop\ndataset: {path: rows.jsonl}\ngraders: {says: {kind: function, function: contains}}\n"
    (folder / "offline.yaml").write_text(f"{suite}target: {{kind: recording, path: calls.jsonl}}\n")
    rows = [{key: value for key, value in row.items() if key in ("id", "input", "ground_truth")} for row in ROWS]
    write_rows([rows[0], {**rows[1], "input": ["Refund A-2", "No"]}])
    ran = viva("run", "offline.yaml", "-q", BASE="http://127.0.0.1:9")
    assert ran.returncode == 3
    shown = viva("show", "latest", "row-2").stdout.replace("\n    ", " ")
    assert "no reply for turn 2 of row 'row-2': the user says 'No', and said 'Yes' then" in shown
    assert "1.00  says  matches" in shown


def test_texts_of_a_recording_control_no_terminal(viva: Viva, folder: Path) -> None:
    text = (folder / "calls.jsonl").read_text().replace("Shall I refund it?", "\\u001b[2JShall I [red]refund[/red] it?")
    (folder / "hostile.jsonl").write_text(text.replace('"suite":"shop"', '"suite":"\\u001b[31mx"'))
    ran = viva("run", "suite.yaml", "-q", "--recording", "hostile.jsonl")
    assert "\x1b" not in ran.stdout + ran.stderr
    assert "Shall I [red]refund[/red] it?" in ran.stdout
