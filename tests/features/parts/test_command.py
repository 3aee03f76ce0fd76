"""Judging and running in parts from the command line, and making one run of the parts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import Viva
from vivavoce.features.parts import inputs
from vivavoce.store.store import Store

SUITE = """\
name: bot
dataset: rows.jsonl
target: {kind: function, function: "bot.py:bot"}
graders: {said: {kind: function, function: contains}}
trials: 2
gate: {kind: simple, metric_key: said, value: 0.9}
"""
BOT = "def bot(message):\n    return 'nine' if 'open' in message else 'What?'\n"


def write_talks(name: str, numbers: range) -> None:
    messages = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]
    rows = [json.dumps({"id": f"r{at}", "messages": messages}) for at in numbers]
    Path(name).write_text("\n".join(rows) + "\n", "utf-8")


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "PART_BYTES", 300)


@pytest.mark.usefixtures("small_parts")
def test_shards_of_several_processes_become_one_run(viva: Viva) -> None:
    write_talks("a.jsonl", range(6))
    write_talks("b.jsonl", range(6, 11))
    for shard in ("1/2", "2/2"):
        done = viva("judge", "*.jsonl", "--metrics", "refusal", "--parts", "out", "--shard", shard)
        assert done.returncode == 0, done.stderr
        assert "as a run, with pages: viva runs merge out" in done.stdout
        early = viva("merge", "out")
        assert early.returncode == (3 if shard == "1/2" else 0)
    with Store.open(".vivavoce/vivavoce.db") as store:
        (run,) = store.runs()
        assert (run.status, store.counts(run.id)) == ("finished", (11, 0))
    assert viva("show", "latest", "r10").returncode == 0


def test_the_same_command_does_what_is_left(viva: Viva) -> None:
    write_talks("a.jsonl", range(3))
    Path("b.parquet").write_text("broken", "utf-8")
    command = ("judge", "a.jsonl", "*.parquet", "--metrics", "refusal", "--parts", "out")
    done = viva(*command)
    assert done.returncode == 3
    assert "b.parquet: cannot be read as Parquet" in done.stdout
    assert "3 conversations in 1 of 1 part" in done.stdout
    Path("b.parquet").unlink()
    write_talks("c.jsonl", range(3, 5))
    done = viva("judge", "a.jsonl", "c.jsonl", "--metrics", "refusal", "--parts", "out")
    assert "1 of 2 parts already done" in done.stderr
    assert "5 conversations in 2 of 2 parts" in done.stdout


def test_rows_that_are_no_conversations_make_it_inconclusive_unless_they_are_allowed(viva: Viva) -> None:
    write_talks("a.jsonl", range(3))
    with Path("a.jsonl").open("a", encoding="utf-8") as file:
        file.write("{broken\n")
    command = ("judge", "a.jsonl", "--metrics", "refusal", "--parts", "out")
    done = viva(*command)
    assert done.returncode == 3
    assert "1 row left out" in done.stdout
    assert "without 1 row of the files that viva could not read" in viva("merge", "out").stderr
    assert "a.jsonl:4: not valid JSON" in done.stdout
    assert viva(*command, "--max-errors", "1").returncode == 0


@pytest.mark.usefixtures("small_parts")
def test_a_suite_in_parts_ends_with_the_verdict_of_a_run_in_one_piece(viva: Viva) -> None:
    Path("suite.yaml").write_text(SUITE, "utf-8")
    Path("bot.py").write_text(BOT, "utf-8")
    asked = ["When do you open?"] * 6 + ["And?"]
    rows = [{"id": f"r{at}", "input": text, "ground_truth": "nine"} for at, text in enumerate(asked)]
    Path("rows.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n", "utf-8")
    whole, parts = viva("run", "suite.yaml"), viva("run", "suite.yaml", "--parts", "out")
    assert whole.returncode == parts.returncode == 1
    assert len(list(Path("out").glob("part-*.parquet"))) > 1
    verdict = [line for line in whole.stdout.splitlines() if "fail · said: mean must be" in line]
    assert verdict
    assert all(line in parts.stdout for line in verdict)
    with Store.open(".vivavoce/vivavoce.db") as store:
        second, first = store.runs()
        keys = [[(row.key, row.value) for row in store.scores(f"{run.id}-g1")] for run in (first, second)]
        assert keys[0] == keys[1]
        assert len(keys[0]) == 14
    resumed = viva("run", "--resume", second.id, "--errors")
    assert resumed.returncode == 2
    assert "was run in parts" in resumed.stderr
    again = viva("run", "--failed", second.id)
    assert again.returncode == 2
    assert "single parts cannot be repeated" in again.stderr


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize(("missed", "code"), [(False, 0), (True, 1)])
def test_a_suite_with_nothing_but_assertions_in_its_rows_works_in_parts(viva: Viva, missed: bool, code: int) -> None:
    target = 'target: {kind: function, function: "bot.py:bot"}'
    Path("suite.yaml").write_text(f"name: bot\ndataset: rows.jsonl\n{target}\n", "utf-8")
    Path("bot.py").write_text(BOT, "utf-8")
    rows = [{"id": f"r{at}", "input": "When do you open?", "expect": [{"contains": "nine"}]} for at in range(6)]
    rows.append({"id": "plain", "input": "And?"})
    if missed:
        rows.append({"id": "missed", "input": "And?", "expect": [{"contains": "nine"}]})
    Path("rows.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n", "utf-8")
    whole, parts = viva("run", "suite.yaml"), viva("run", "suite.yaml", "--parts", "out")
    assert (whole.returncode, parts.returncode) == (code, code), parts.stderr
    assert len(list(Path("out").glob("part-*.parquet"))) > 1
    assert viva("merge", "out").returncode == code
    with Store.open(".vivavoce/vivavoce.db") as store:
        merged, first = store.runs()
        scores = [{row.key: (row.state, row.value) for row in store.scores(f"{run.id}-g1")} for run in (first, merged)]
        assert scores[0] == scores[1]
        assert len(scores[0]) == len(rows)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        (["--shard", "1/2"], "--shard needs --parts FOLDER"),
        (["--engine", "ray"], "--engine needs --parts FOLDER"),
        (["--parts", "out", "--workers", "2"], "--workers needs --engine ray"),
        (["--parts", "out", "--engine", "ray", "--shard", "1/2"], "--shard and --engine cannot be combined"),
        (["--parts", "out", "--shard", "3/2"], "--shard needs PART/TOTAL, such as 2/8; got '3/2'"),
        (["--parts", "out", "--max-samples", "2"], "--max-samples needs the whole dataset"),
        (["--parts", "out", "--replay"], "--replay needs the whole dataset"),
        (["--parts", "out", "--dry-run"], "--parts and --dry-run cannot be combined"),
        (["b.jsonl"], "b.jsonl: several files are judged in parts"),
    ],
)
def test_options_that_do_not_go_together_are_told(options: list[str], rule: str, viva: Viva) -> None:
    write_talks("a.jsonl", range(2))
    done = viva("judge", "a.jsonl", "--metrics", "refusal", *options)
    assert done.returncode == 2
    assert rule in done.stderr


def test_a_pattern_without_a_folder_for_the_parts_is_told_so(viva: Viva) -> None:
    write_talks("a.jsonl", range(2))
    done = viva("judge", "*.jsonl", "--metrics", "refusal")
    assert (done.returncode, "*.jsonl: several files are judged in parts" in done.stderr) == (2, True)


def test_a_suite_with_its_rows_inside_is_told_to_write_them_into_a_file(viva: Viva) -> None:
    Path("suite.yaml").write_text(SUITE.replace("rows.jsonl", "{rows: [{id: a, input: Hi}]}"), "utf-8")
    Path("bot.py").write_text(BOT, "utf-8")
    done = viva("run", "suite.yaml", "--parts", "out")
    assert done.returncode == 2
    assert "put them into a JSONL file" in done.stderr
    done = viva("run", "suite.yaml", "--parts", "out", "--table")
    assert "--parts and --table cannot be combined" in done.stderr


def test_a_folder_without_parts_is_told(viva: Viva) -> None:
    done = viva("merge", "nothing")
    assert done.returncode == 2
    assert "nothing has no parts of a run" in done.stderr
