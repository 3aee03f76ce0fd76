"""Wrong input is one line with file, line and next step, exit code 2, and nothing half-written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .conftest import Viva

SUITE = """\
name: capitals
dataset: d.jsonl
target: {kind: function, function: "bot.py:answer"}
graders:
  right: {kind: tool, function: contains}
gate: {kind: simple, metric_key: right, value: 0.5}
"""
ROW = '{"id": "a", "input": "France?", "ground_truth": "Paris"}\n'


@pytest.fixture(autouse=True)
def _files(tmp_path: Path) -> None:  # pyright: ignore[reportUnusedFunction]
    (tmp_path / "suite.yaml").write_text(SUITE)
    (tmp_path / "d.jsonl").write_text(ROW)
    (tmp_path / "bot.py").write_text("def answer(message):\n    return 'Paris'\n")


def refused(viva: Viva, folder: Path, *said: str) -> None:
    """Check that both validate and run refuse, in the same words, and leave nothing behind."""
    before = {path.name for path in folder.iterdir()}
    for command in ("validate", "run"):
        done = viva(command, "suite.yaml")
        assert done.returncode == 2, done.stdout + done.stderr
        assert done.stdout == ""
        assert "Traceback" not in done.stderr
        for part in said:
            assert part in done.stderr, done.stderr
    left = {path.name for path in folder.iterdir()} - before - {"__pycache__", ".vivavoce"}
    assert not left
    shown = viva("runs", "--json")
    assert shown.stdout == "", "a refused run was recorded"


def test_an_output_that_cannot_be_written_is_refused_before_anything_runs(viva: Viva, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in ("/proc/nope", "file", "file/below"):
        (tmp_path / "suite.yaml").write_text(f"{SUITE}output: {place}\n")
        refused(viva, tmp_path, f"suite.yaml:7:1 output: {place} cannot be written")
        done = viva("run", "suite.yaml", "--output", place)
        assert (done.returncode, f"{place} cannot be written" in done.stderr) == (2, True), done.stderr
    assert viva("runs", "--json").stdout == ""


def test_an_option_that_takes_one_value_is_refused_twice(viva: Viva) -> None:
    done = viva("run", "suite.yaml", "--trials", "2", "--trials", "3")
    assert done.returncode == 2
    assert "--trials was given twice; it takes one value" in done.stderr
    assert viva("run", "suite.yaml", "--sample", "a", "--sample", "b", "-q", "-q", "--dry-run").returncode == 0


def test_an_empty_list_of_inputs_is_refused(viva: Viva, tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text('{"input": [], "ground_truth": []}\n')
    refused(viva, tmp_path, "d.jsonl:1 'input' is an empty list")


BAD_SUITES = {
    "infinite weight": (
        "gate:",
        "reward: {kind: weighted, weights: {right: .inf}}\ngate:",
        "reward.weights: weights must be finite numbers; got right: inf",
    ),
    "weight that is not a number": (
        "{kind: simple, metric_key: right,",
        "{kind: weighted_average, weights: {right: .nan},",
        "gate.weights: weights must be finite numbers; got right: nan",
    ),
    "unknown key": ("dataset:", "datasett:", "suite.yaml:2:1 datasett: unknown key; did you mean 'dataset'?"),
    "unknown grader": (
        "contains",
        "contians",
        "graders.right.function: no grader 'contians'; did you mean 'contains'?",
    ),
    "unknown extractor": (
        "function: contains",
        "function: contains, extractor: last_assistnt",
        "suite.yaml:5:43 graders.right.extractor: no extractor 'last_assistnt'; did you mean 'last_assistant'?",
    ),
    "unknown option": (
        "function: contains",
        "function: contains, config: {caseless: true}",
        "'contains' has no option 'caseless'; it takes none",
    ),
    "unknown gate key": ("metric_key: right", "metric_key: rihgt", "no grader 'rihgt'; did you mean 'right'?"),
    "missing dataset": ("d.jsonl", "absent.jsonl", "suite.yaml:2:1 dataset: there is no file 'absent.jsonl'"),
    "missing function": (
        "bot.py:answer",
        "bot.py:anwser",
        "suite.yaml:3:1 target: bot.py has no 'anwser'; did you mean 'answer'?",
    ),
    "missing grader": (
        "function: contains",
        "function: bot.py:rihgt",
        "suite.yaml:5:23 graders.right.function: bot.py has no 'rihgt'; known: answer",
    ),
    "missing extractor": (
        "function: contains",
        "function: contains, extractor: absent.py:f",
        "suite.yaml:5:43 graders.right.extractor: no file 'absent.py' next to the suite",
    ),
    "missing file": ("bot.py:answer", "robot.py:answer", "suite.yaml:3:1 target: no file 'robot.py' next to the suite"),
}


@pytest.mark.parametrize("name", BAD_SUITES)
def test_a_wrong_suite(viva: Viva, tmp_path: Path, name: str) -> None:
    old, new, said = BAD_SUITES[name]
    (tmp_path / "suite.yaml").write_text(SUITE.replace(old, new, 1))
    refused(viva, tmp_path, said)


BAD_DATA = {
    "broken line": (ROW + "\n" + '{"id": "b", "input": \n', "d.jsonl:3"),
    "differing lengths": ('{"input": ["a", "b"], "ground_truth": ["x"]}\n', "d.jsonl:1"),
    "duplicate ids": (ROW + ROW, "d.jsonl:2"),
    "empty input": ('{"id": "a", "input": " ", "ground_truth": "x"}\n', "'input' is empty"),
    "nothing to ask": ('{"id": "a", "ground_truth": "x"}\n', "needs 'input'"),
    "a typo": ('{"id": "a", "input": "x", "ground_thruth": "y"}\n', "did you mean 'ground_truth'?"),
    "a list against one input": ('{"id": "a", "input": "x", "ground_truth": ["y"]}\n', "ground_truth is a list"),
}


@pytest.mark.parametrize("name", BAD_DATA)
def test_a_wrong_dataset(viva: Viva, tmp_path: Path, name: str) -> None:
    text, said = BAD_DATA[name]
    (tmp_path / "d.jsonl").write_text(text)
    refused(viva, tmp_path, "d.jsonl:", said)


def test_blank_lines_are_skipped(viva: Viva, tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text("\n" + ROW + "  \n")
    assert viva("run", "suite.yaml").returncode == 0


def test_bytes_that_are_not_utf8(viva: Viva, tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_bytes(ROW.encode() + b'{"id": "b", "input": "\xff\xfe"}\n')
    refused(viva, tmp_path, "d.jsonl:2", "UTF-8")


def test_a_yaml_bomb(viva: Viva, tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    (tmp_path / "suite.yaml").write_text("\n".join(lines))
    refused(viva, tmp_path, "suite.yaml: has more than")


def test_a_python_file_that_raises_on_import(viva: Viva, tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text("import os\n\nraise OSError('no model here')\n")
    said = "bot.py:3 raises OSError on import: no model here (used by suite.yaml:3:1 target)"
    refused(viva, tmp_path, said)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_an_unreadable_path(viva: Viva, tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").chmod(0)
    refused(viva, tmp_path, "d.jsonl")


def test_a_folder_in_place_of_a_file(viva: Viva, tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").unlink()
    (tmp_path / "d.jsonl").mkdir()
    refused(viva, tmp_path, "d.jsonl")
    done = viva("run", ".")
    assert (done.returncode, done.stderr) == (2, ". is a folder; name the file in it, or several: *.yaml\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run"], "name a suite to run"),
        (["run", "absent.yaml"], "absent.yaml: there is no such file"),
        (["run", "suite.yaml", "--resume", "x"], "name a suite to run"),
        (["run", "--resume", "x", "--trials", "2"], "--resume uses the options the run was started with"),
        (["run", "--resume", "x", "--model-handle", "m"], "--resume uses the options the run was started with"),
        (["run", "--failed", "x", "--base-url", "http://h"], "--api-key, --recording and --live need a suite"),
        (["run", "suite.yaml", "--api-key", "k"], "--api-key: a target of kind 'function' has no api_key"),
        (["run", "suite.yaml", "--target", "nonsense"], "--target: 'nonsense' must be file.py:function or"),
        (["run", "suite.yaml", "--target", "nofile.py:f"], "--target: no file 'nofile.py'"),
        (["validate", "suite.yaml", "--target", "bot.py:f"], "--target: bot.py has no 'f'"),
        (["run", "bot.py"], "bot.py: is a Python file, not a suite"),
        (["validate", "d.jsonl"], "d.jsonl: is a dataset, not a suite"),
        (["run", "suite.yaml", "--sample", "b"], "has no sample 'b'"),
        (["run", "suite.yaml", "--sample", "z*"], "has no sample 'z*'"),
        (["run", "suite.yaml", "--tag", "slow"], "has no samples with the tags slow; no row has tags"),
        (["run", "suite.yaml", "--trials", "0"], "--trials"),
        (["run", "suite.yaml", "--watch", "--failed"], "--failed and --watch cannot be combined"),
        (["run", "suite.yaml", "--failed"], "no run 'latest' in suite"),
        (["run", "--failed"], "no run 'latest': there are no runs yet"),
        (["run", "--resume"], "no run 'latest': there are no runs yet"),
        (["run", "suite.yaml", "suite.yaml", "--resume"], "--resume continues one run; name one suite"),
        (["run", "suite.yaml", "suite.yaml", "-o", "here"], "--output is a folder for one suite"),
        (["run", "suite.yaml", "--env-file", "absent.env"], "--env-file: absent.env cannot be read"),
        (["run", "suite.yaml", "--env-file", "suite.yaml"], "suite.yaml:1 is not NAME=value"),
        (["rnu", "suite.yaml"], "no command 'rnu'; did you mean 'run'?"),
        (["show"], "no run has been stored here yet"),
        (["export", "-f", "xml"], "no run has been stored here yet"),
    ],
)
def test_a_wrong_command(viva: Viva, arguments: list[str], said: str) -> None:
    done = viva(*arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_mistake_of_our_own_is_no_failed_gate(viva_process: Viva, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import vivavoce.run.summary as summary\n"
        "def broken(*a, **k):\n    raise ZeroDivisionError('ours')\n"
        "summary.summarise = broken\n"
    )
    done = viva_process("run", "suite.yaml", PYTHONPATH=str(tmp_path))
    assert done.returncode == 3
    assert "ZeroDivisionError: ours" in done.stderr
    assert "a bug in vivavoce" in done.stderr


WRONG_SUITE = """\
name: wrong everywhere
driver: replay
dataset: d.jsonl
graders:
  judged: {kind: model_judge, model: "judge.py:judge", prompt: "Is {{ topic }} in the {{ tone }}: {{ submission }}"}
  exact: {kind: function, function: containz}
gate: {kind: simple, metric_key: judgd, value: 0.5}
"""
TALK = '"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]'


def test_validate_names_every_mistake_of_every_layer_in_one_pass(viva: Viva, tmp_path: Path) -> None:
    wrong = [f'{{"id": "r{number}", {TALK}, "expect": {{"all": [{{"contain": "x"}}]}}}}\n' for number in range(30)]
    right = [f'{{"id": "{name}", {TALK}, "rubric_vars": {{"topik": "x"}}}}\n' for name in ("x", "y", "x")]
    (tmp_path / "d.jsonl").write_text("".join([*wrong, *right]))
    (tmp_path / "suite.yaml").write_text(WRONG_SUITE)
    (tmp_path / "judge.py").write_text("from vivavoce.testing import ScriptedModel\njudge = ScriptedModel([])\n")
    lines = viva("validate", "suite.yaml").stderr.splitlines()
    rows, others = lines[:30], lines[30:]
    assert [line.partition(" ")[0] for line in rows] == [f"d.jsonl:{number}" for number in range(1, 31)]
    assert [line.partition(";")[0] for line in others] == [
        "d.jsonl:33 id 'x' with trial 0 is already in line 31",
        "suite.yaml:5:56 graders.judged.prompt: prompt needs the variable 'tone'",
        "suite.yaml:5:56 graders.judged.prompt: prompt needs the variable 'topic'",
        "suite.yaml:6:27 graders.exact.function: no grader 'containz'",
        "suite.yaml:7:22 gate.metric_key: no grader 'judgd'",
    ]
    done = viva("run", "suite.yaml")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-2:] == [rows[19], "and 15 more; viva validate lists every mistake of a suite"]
