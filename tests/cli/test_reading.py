"""The commands that only read: what they say, in which order, from which stores, and what they load for it."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from vivavoce.store.store import Store

from .conftest import Viva

SUITE = """\
name: capitals
dataset: d.jsonl
target: {kind: function, function: "bot.py:answer", max_retries: 0}
graders:
  right: {kind: tool, function: contains}
"""
BOT = """\
import random, time

def answer(message):
    time.sleep(random.random() / 50)
    if message == "wrong":
        return "no"
    return message

def broken(message):
    raise OSError("down")

def judge(sample, submission):
    return {}["verdict"]
"""


@pytest.fixture(autouse=True)
def _files(tmp_path: Path) -> None:  # pyright: ignore[reportUnusedFunction]
    (tmp_path / "suite.yaml").write_text(SUITE)
    (tmp_path / "bot.py").write_text(BOT)
    write(tmp_path, [f"s{i}" for i in range(20)])


def write(folder: Path, inputs: list[str]) -> None:
    """Write a dataset of samples, each called by its place and answered right unless its input is `wrong`."""
    rows = [{"id": f"id-{i}", "input": text, "ground_truth": "s"} for i, text in enumerate(inputs)]
    (folder / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_two_runs_of_a_suite_are_exported_in_the_same_order_that_of_the_dataset(viva: Viva) -> None:
    exports: list[list[tuple[str, str]]] = []
    for _ in range(2):
        assert viva("run", "suite.yaml", "--trials", "2", "--max-concurrent", "10").returncode == 0
        rows = csv.DictReader(viva("export", "--format", "csv").stdout.splitlines())
        exports.append([(row["sample_id"], row["trial"]) for row in rows])
    assert exports == [[(f"id-{i}", trial) for i in range(20) for trial in "12"]] * 2


def test_resuming_keeps_the_order(viva: Viva) -> None:
    viva("run", "suite.yaml", "--max-concurrent", "4", "--max-calls", "9")
    assert viva("run", "--resume", "latest").returncode == 0
    rows = [json.loads(line) for line in viva("export", "--format", "jsonl").stdout.splitlines()]
    assert [row["attempt"]["key"]["sample_id"] for row in rows] == [f"id-{i}" for i in range(20)]
    assert [row["attempt"]["position"] for row in rows] == list(range(20))


def test_a_run_leads_to_its_worst_sample(viva: Viva, tmp_path: Path) -> None:
    write(tmp_path, ["s0", "wrong", *("wrong" for _ in range(6))])
    for done in (viva("run", "suite.yaml"), viva("show")):
        assert "and 2 more\n" in done.stdout
        command = done.stdout.splitlines()[-1].removeprefix("show the worst: ").split()
        assert command[-1] == "id-1"
        assert "does not contain 's'" in viva(*command[1:]).stdout


def test_a_run_in_another_store_leads_to_its_worst_sample_there(viva: Viva, tmp_path: Path) -> None:
    write(tmp_path, ["wrong"])
    done = viva("run", "suite.yaml", "--store", "exam.db")
    command = done.stdout.splitlines()[-1].removeprefix("show the worst: ").split()
    assert viva(*command[1:]).returncode == 0


def test_a_target_that_is_down_is_one_line_and_its_error_is_told_once(viva: Viva) -> None:
    done = viva("run", "suite.yaml", "--target", "bot.py:broken")
    assert done.returncode == 3
    assert re.search(r"^all 20\s+error\s+target: .*OSError: down$", done.stdout, re.MULTILINE)
    assert done.stdout.count("OSError: down") == 1
    assert "INCONCLUSIVE\n  inconclusive · right: nothing was scored (20 errors)\n" in done.stdout
    shown = viva("show", "latest", "id-3").stdout
    assert 'raise OSError("down")' in shown
    assert len(re.findall(r"^  ! target: .*OSError: down$", shown, re.MULTILINE)) == 1


def test_a_grader_that_breaks_is_named_and_shown_with_its_traceback(viva: Viva, tmp_path: Path) -> None:
    (tmp_path / "suite.yaml").write_text(SUITE + '  judge: {kind: tool, function: "bot.py:judge"}\n')
    done = viva("run", "suite.yaml")
    assert done.returncode == 3
    assert "INCONCLUSIVE\n  inconclusive · judge: nothing was scored (20 errors)\n" in done.stdout
    shown = viva("show", "latest", "id-0").stdout
    assert "error  judge  grader: KeyError: 'verdict'\n" in shown
    assert 'return {}["verdict"]\n' in shown


def test_a_run_that_was_stopped_says_where(viva: Viva) -> None:
    done = viva("run", "suite.yaml", "--max-calls", "5")
    assert done.returncode == 3
    assert re.search(r"^INCONCLUSIVE: stopped after 5 of 20 conversations: ", done.stdout, re.MULTILINE)
    assert "no gate" not in done.stdout
    shown = viva("show").stdout
    assert re.search(r"^INCONCLUSIVE: \w+ after 5 ", shown, re.MULTILINE)
    assert "continue with: viva run --resume capitals-" in shown


def test_a_run_is_found_by_the_end_of_its_name(viva: Viva) -> None:
    viva("run", "suite.yaml")
    name = json.loads(viva("runs", "--json").stdout)["id"]
    assert viva("show", name.rpartition("-")[2]).stdout.startswith(name)
    assert viva("show", name, "--grading", "g1").returncode == 0


def test_runs_as_json_have_the_verdict_and_the_means(viva: Viva) -> None:
    viva("run", "suite.yaml")
    (found,) = map(json.loads, viva("runs", "--json").stdout.splitlines())
    assert (found["verdict"], found["attempts"], found["failed_attempts"]) == (None, 20, 0)
    assert [(one["name"], one["mean"], one["scored"]) for one in found["graders"]] == [("right", 1.0, 20)]


def test_a_sample_as_json_holds_no_json_in_a_string(viva: Viva) -> None:
    viva("run", "suite.yaml")
    found = json.loads(viva("show", "latest", "id-3", "--json").stdout)
    assert found["sample"]["input"] == "s3"
    assert (found["sample_id"], found["scores"]["right"]["value"], found["scores"]["right"]["passed"]) == (
        "id-3",
        1.0,
        True,
    )


def test_scores_of_an_upgraded_store_say_where_their_passing_comes_from(viva: Viva, tmp_path: Path) -> None:
    viva("run", "suite.yaml")
    said = "Pass or fail was added to these scores when the store was upgraded"
    assert said not in viva("show").stdout
    with Store.open(str(tmp_path / ".vivavoce" / "vivavoce.db")) as store:
        store.update_grading(store.grading(store.run("latest").id).model_copy(update={"passed_added": True}))
    assert said in viva("show").stdout
    assert json.loads(viva("show", "--json").stdout)["grading"]["passed_added"] is True


def test_in_a_narrow_window_the_name_of_a_run_stays_whole(viva: Viva) -> None:
    viva("run", "suite.yaml")
    name = json.loads(viva("runs", "--json").stdout)["id"]
    for command in (["runs"], ["compare", "latest", "latest"], ["show"]):
        text = viva(*command, COLUMNS="50", FORCE_COLOR="1").stdout
        lines = re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()
        assert any(name in line for line in lines)
        assert max(map(len, lines)) <= 50


def test_what_is_piped_has_no_blanks_at_the_ends_of_lines(viva: Viva) -> None:
    viva("run", "suite.yaml")
    viva("run", "suite.yaml")
    for command in (["runs"], ["compare"], ["show"], ["show", "latest", "id-1"]):
        lines = viva(*command).stdout.splitlines()
        assert lines == [line.rstrip() for line in lines]


def test_a_file_tells_its_format_by_its_ending_and_that_it_was_written(viva: Viva, tmp_path: Path) -> None:
    viva("run", "suite.yaml")
    done = viva("export", "--output", "exam.xml")
    assert (done.returncode, done.stdout) == (0, "")
    assert re.fullmatch(r"wrote exam\.xml: junit, the scores capitals-\w+-g1\n", done.stderr)
    assert (tmp_path / "exam.xml").read_text().startswith("<?xml")


def test_a_wrong_export_writes_nothing(viva: Viva, tmp_path: Path) -> None:
    viva("run", "suite.yaml")
    before = sorted(tmp_path.iterdir())
    for arguments, said in (
        ("-o exam.txt", "exam.txt: unknown file extension; name the format with --format: json, jsonl, "),
        ("-f letta", "letta writes a folder; name one with --output"),
        ("-f parquet", "parquet is not text; name a file with --output"),
        (
            "-f xml",
            "no export format 'xml'; known: baseline, conversations, csv, github, html, json, jsonl, junit, ",
        ),
    ):
        done = viva("export", *arguments.split())
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(said)
    assert sorted(tmp_path.iterdir()) == before


def test_what_is_no_store_is_a_mistake_and_what_is_broken_an_error(viva: Viva, tmp_path: Path) -> None:
    assert viva("show", "--store", "suite.yaml").returncode == 2
    viva("run", "suite.yaml", "--store", "exam.db")
    with (tmp_path / "exam.db").open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 4000)
    done = viva("runs", "--store", "exam.db")
    assert (done.returncode, done.stderr.startswith("exam.db: ")) == (3, True)


def test_what_only_reads_loads_nothing_of_what_runs(viva: Viva, tmp_path: Path) -> None:
    viva("run", "suite.yaml")
    code = (
        "import sys\nfrom vivavoce.cli.main import main\n"
        "for command in ('runs', 'show', 'show latest id-0', 'export', 'export -f csv'):\n"
        "    try:\n        main(command.split())\n    except SystemExit as ended:\n        assert not ended.code\n"
        "print(*{name.partition('.')[0] for name in sys.modules}, *sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    loaded = set(done.stderr.split())
    assert not loaded & {"scipy", "numpy", "aiohttp", "jinja2", "jsonschema", "rapidfuzz", "ruamel", "alembic"}
    assert not loaded & {"vivavoce.suites.spec", "vivavoce.run.experiment_run", "vivavoce.targets.target"}


def test_a_trial_is_shown_by_its_name_and_one_that_is_not_there_is_told(viva: Viva) -> None:
    assert viva("run", "suite.yaml", "--trials", "2").returncode == 0
    assert viva("show", "latest", "id-3#2").stdout.startswith("id-3#2 · ")
    for name, said in {
        "id-3#3": "its trials are 1, 2",
        "id-3#0": "the first is 'id-3#1'",
        "id-x#1": "no sample",
    }.items():
        done = viva("show", "latest", name)
        assert (done.returncode, said in done.stderr) == (2, True)
