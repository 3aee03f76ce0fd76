"""The commands as people use them: exit codes, output one can pipe, and what follows from one to the next."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
import tomllib
from pathlib import Path

import pytest

from forked import program
from vivavoce.cli.main import commands, full_name, load_command, panels

from .conftest import Viva

SUITE = """\
name: capitals
dataset: d.jsonl
target: {kind: function, function: "bot.py:answer"}
graders:
  right: {kind: tool, function: contains}
gate: {kind: simple, metric_key: right, value: 0.9}
"""


@pytest.fixture(autouse=True)
def _files(tmp_path: Path) -> None:  # pyright: ignore[reportUnusedFunction]
    (tmp_path / "suite.yaml").write_text(SUITE)
    rows = [
        {"id": "fr", "input": ["France?", "Really?"], "ground_truth": ["Paris", "yes"]},
        {"id": "de", "input": "Germany?", "ground_truth": "Berlin"},
    ]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "bot.py").write_text(
        "CITY = {'France?': 'Paris', 'Germany?': 'Berlin', 'Really?': 'yes'}\n"
        "def answer(message):\n    return CITY[message]\n"
        "def rude(message):\n    return '\\x1b[31mno\\x1b[0m [bold]' if message == 'Germany?' else CITY[message]\n"
    )


def test_exit_codes_tell_pass_fail_and_inconclusive(viva_process: Viva, tmp_path: Path) -> None:
    assert viva_process("run", "suite.yaml").returncode == 0
    assert viva_process("run", "suite.yaml", "--target", "bot.py:rude").returncode == 1
    (tmp_path / "bot.py").write_text("def answer(message):\n    raise OSError('down')\n")
    done = viva_process("run", "suite.yaml")
    assert done.returncode == 3
    assert "INCONCLUSIVE" in done.stdout
    assert "OSError: down" in done.stdout


def test_results_go_to_stdout_and_progress_to_stderr(viva_process: Viva) -> None:
    done = viva_process("run", "suite.yaml")
    assert "run capitals-" in done.stderr
    assert "PASS" in done.stdout
    quiet = viva_process("run", "suite.yaml", "-q")
    assert quiet.stderr == ""


def test_show_gives_the_transcript_with_the_grades_of_each_turn(viva: Viva) -> None:
    viva("run", "suite.yaml", "--target", "bot.py:rude")
    shown = viva("show", "latest", "de").stdout
    assert "user  Germany?" in shown
    assert "assistant  no [bold]" in shown, "text of a target is neither colour nor markup"
    assert "\x1b" not in shown
    assert "0.00  right  does not contain 'Berlin'" in shown
    turns = viva("show", "latest", "fr").stdout
    assert turns.count("── turn") == 2
    assert viva("show", "latest", "france").stderr.startswith("no sample 'france' in run capitals-")


def test_json_can_be_piped(viva: Viva) -> None:
    viva("run", "suite.yaml")
    run = json.loads(viva("show", "--json").stdout)
    assert run["grading"]["verdict"] == "pass"
    sample = json.loads(viva("show", "latest", "fr", "--json").stdout)
    assert [turn["turn"] for turn in sample["scores"]["right"]["turns"]] == [0, 1]
    assert [json.loads(line)["suite"] for line in viva("runs", "--json").stdout.splitlines()] == ["capitals"]


def test_compare_shows_what_flipped(viva: Viva) -> None:
    viva("run", "suite.yaml")
    viva("run", "suite.yaml", "--target", "bot.py:rude")
    shown = viva("compare").stdout
    assert "pass on a, fail on b (1)" in shown
    assert re.search(r"de\s+1\.00 → 0\.00", shown)
    found = json.loads(viva("compare", "--json").stdout)
    assert found["targets"][0]["matched"] == 2


def test_grade_adds_scores_beside_the_old_ones(viva: Viva, tmp_path: Path) -> None:
    viva("run", "suite.yaml", "--target", "bot.py:rude")
    (tmp_path / "lenient.yaml").write_text(SUITE.replace("contains", "ascii_printable_only"))
    (tmp_path / "bot.py").unlink()
    done = viva("grade", "--suite", "lenient.yaml")
    assert done.returncode == 1, done.stderr
    assert "one of 2 sets of scores" in viva("show").stdout
    first = json.loads(viva("show", "--json").stdout)["run"]["id"] + "-g1"
    assert "does not contain" in viva("show", "--grading", first).stdout


def test_dry_run_says_what_would_be_called_and_calls_nothing(viva: Viva, tmp_path: Path) -> None:
    done = viva("run", "suite.yaml", "--dry-run", "--trials", "3")
    assert done.returncode == 0
    assert "2 samples × 1 target × 3 trials = 6 conversations; 9 messages to the target" in done.stdout
    assert not (tmp_path / ".vivavoce").exists()


def test_output_writes_the_files_of_letta_evals(viva: Viva, tmp_path: Path) -> None:
    viva("run", "suite.yaml", "--output", "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"suite.json", "summary.json", "bot.answer.jsonl"}


@pytest.mark.parametrize("form", ["json", "jsonl", "csv", "junit", "markdown"])
def test_every_text_format_can_be_piped(viva: Viva, form: str) -> None:
    viva("run", "suite.yaml")
    done = viva("export", "--format", form)
    assert done.returncode == 0, done.stderr
    assert "right" in done.stdout


def test_doctor_names_what_is_missing_without_showing_keys(viva: Viva) -> None:
    done = viva("doctor", OPENAI_API_KEY="sk-secret")
    assert done.returncode == 0
    assert re.search(r"OPENAI_API_KEY\s+ok", done.stdout)
    assert "sk-secret" not in done.stdout


def test_doctor_names_every_extra(viva: Viva) -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    shown = viva("doctor").stdout
    for extra in project["project"]["optional-dependencies"]:
        assert re.search(rf"^extra {extra}\s", shown, re.MULTILINE), extra


def test_the_list_of_commands_fits_on_one_screen_and_says_what_each_does(viva: Viva) -> None:
    lines = viva("--help", COLUMNS="80").stdout.splitlines()
    listed = [name for names in panels().values() for name in names]
    assert len(listed) <= 20
    assert len(lines) <= 40
    for name in listed:
        assert any(re.search(rf"\s{name}\s+{re.escape(commands()[name].help)}$", line) for line in lines), name


def test_help_of_every_command_teaches(viva: Viva) -> None:
    for name, command in commands().items():
        assert len(load_command(name).help) >= len(command.help)
        words = full_name(name).split()
        if len(words) == 2:
            assert re.search(rf"viva {words[0]} {name}\s", viva(words[0], "--help").stdout)
        for spelled in (words, [name]):
            shown = viva(*spelled, "--help")
            assert shown.returncode == 0
            assert shown.stdout.startswith(f"Usage: viva {full_name(name)} ")


def test_a_former_name_of_a_command_still_works(viva: Viva) -> None:
    assert viva("watch-traces", "--help").stdout == viva("watch", "--help").stdout


def test_the_help_of_run_shows_its_common_options_and_says_where_the_others_are(viva: Viva) -> None:
    short, everything = viva("run", "--help").stdout, viva("run", "--help-all").stdout
    assert "--trials" in short
    assert "--ray-address" not in short
    assert "viva run --help-all shows" in short
    options = [name for each in load_command("run").params for name in each.opts if name.startswith("--")]
    assert all(name in everything for name in options)


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_keeps_what_is_finished(tmp_path: Path, viva: Viva, times: int) -> None:
    rows = [{"id": str(i), "input": "x", "ground_truth": "ok"} for i in range(400)]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "bot.py").write_text(
        "import asyncio\nfrom pathlib import Path\nCALLS = 0\n"
        "async def answer(message):\n"
        "    global CALLS\n    CALLS += 1\n"
        "    if CALLS == 40: Path('going').touch()\n"
        "    await asyncio.sleep(0.05)\n    return 'ok'\n"
    )
    command = [str(program("viva")), "run", "suite.yaml", "-q"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=-1, stderr=-1, text=True) as process:
        while not (tmp_path / "going").exists():
            assert process.poll() is None
            time.sleep(0.02)
        for _ in range(times):
            process.send_signal(signal.SIGINT)
            time.sleep(0.01)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "viva run --resume capitals-" in out
    kept = json.loads(viva("show", "--json").stdout)["grading"]["summary"]["attempts"]
    assert 20 <= kept < 400
    assert viva("run", "--resume", "latest", "-q").returncode == 0
    assert json.loads(viva("show", "--json").stdout)["grading"]["summary"]["attempts"] == 400
