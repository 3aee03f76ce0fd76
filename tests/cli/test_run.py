"""`viva run` over several suites, over what failed, over what changed, and with what is left to do."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from forked import program
from vivavoce.settings import settings
from vivavoce.store.store import Store

from .conftest import Viva

SUITE = """\
name: capitals
dataset: d.jsonl
target: {kind: function, function: "bot.py:answer", max_retries: 0}
graders:
  right: {kind: function, function: contains}
gate: {kind: simple, metric_key: right, value: 0.9}
"""
BOT = """\
from pathlib import Path

CITY = {"France?": "Paris", "Germany?": "Bonn", "Norway?": "Oslo"}

def answer(message):
    with Path(__file__).with_name("asked.log").open("a") as asked:
        asked.write(message + "\\n")
    if message == "Norway?" and not Path(__file__).with_name("up").exists():
        raise OSError("down")
    return CITY[message]
"""
ROWS = [
    {"id": "fr", "input": "France?", "ground_truth": "Paris", "tags": ["west"]},
    {"id": "de", "input": "Germany?", "ground_truth": "Berlin", "tags": ["west", "big"]},
    {"id": "no", "input": "Norway?", "ground_truth": "Oslo"},
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "suite.yaml").write_text(SUITE)
    (tmp_path / "bot.py").write_text(BOT)
    write_rows(tmp_path, ROWS)
    return tmp_path


def write_rows(folder: Path, rows: Sequence[Mapping[str, object]]) -> None:
    (folder / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def repair(folder: Path) -> None:
    (folder / "bot.py").write_text(BOT.replace("Bonn", "Berlin"))
    (folder / "up").touch()


def asked(folder: Path) -> list[str]:
    """Return what the target was asked since the last time, sorted."""
    log = folder / "asked.log"
    found = sorted(log.read_text().split()) if log.exists() else []
    log.unlink(missing_ok=True)
    return found


def run_named(text: str) -> str:
    found = re.search(r"run (\S+-[0-9a-f]{6})\b", text)
    assert found is not None, text
    return found[1]


def test_only_what_failed_is_run_again_and_the_new_run_is_partial(viva: Viva, folder: Path) -> None:
    first = viva("run", "suite.yaml")
    assert first.returncode == 1
    assert len(asked(folder)) == 3
    repair(folder)
    again = viva("run", "--failed")
    assert again.returncode == 0
    assert asked(folder) == ["Germany?", "Norway?"]
    whole, partial = run_named(first.stderr), run_named(again.stderr)
    assert f"partial: reruns part of {whole}" in again.stdout
    with Store.open(settings().store) as store:
        assert store.run("latest").partial_of == whole
        assert store.run("latest", whole=True).id == whole
        assert [one.run.id for one in store.series.of("capitals").runs] == [whole]
        [recent] = store.series.recent()[0]
        assert (recent.total, [one.run.id for one in recent.runs]) == (1, [whole])
        assert [one.partial_of for one in store.browse.runs().runs] == [whole, None]
    assert "finished, partial" in viva("runs").stdout
    assert viva("compare").returncode == 2
    assert viva("compare", whole, partial).returncode == 0
    assert f"partial: reruns part of {whole}" in viva("show").stdout
    for form in ("markdown", "github", "junit", "html", "json"):
        done = viva("export", partial, "--format", form)
        assert "partial" in done.stdout
        assert whole in done.stdout
        assert "partial" not in viva("export", whole, "--format", form).stdout.replace('"partial_of":null', "")


def test_a_suite_that_is_named_is_used_as_it_is_now(viva: Viva, folder: Path) -> None:
    viva("run", "suite.yaml")
    (folder / "suite.yaml").write_text(SUITE.replace("contains}", "contains, display_name: city}"))
    recorded = viva("run", "--failed")
    assert "suite.yaml is not as capitals-" in recorded.stderr
    assert "city" not in recorded.stdout
    assert "city" in viva("run", "suite.yaml", "--failed").stdout
    write_rows(folder, ROWS[:2])
    assert "1 of the samples that failed in" in viva("run", "--failed", "suite.yaml").stderr


def test_a_choice_among_what_failed(viva: Viva, folder: Path) -> None:
    viva("run", "suite.yaml")
    asked(folder)
    viva("run", "--failed", "--sample", "n*")
    assert asked(folder) == ["Norway?"]
    viva("run", "--failed", "latest~1", "--tag", "big")
    assert asked(folder) == ["Germany?"]
    none = viva("run", "--failed", "--sample", "fr")
    assert (none.returncode, asked(folder)) == (2, [])
    assert "no failed sample of" in none.stderr


def test_where_nothing_failed_nothing_is_run(viva: Viva, folder: Path) -> None:
    repair(folder)
    viva("run", "suite.yaml")
    asked(folder)
    done = viva("run", "--failed", "suite.yaml")
    assert (done.returncode, done.stdout, asked(folder)) == (0, "", [])
    assert "nothing failed in run capitals-" in done.stderr


def test_a_run_that_is_not_complete_is_not_taken_for_one_in_which_nothing_failed(viva: Viva, folder: Path) -> None:
    repair(folder)
    held = run_named(viva("run", "suite.yaml", "--sample", "fr").stderr)
    with Store.open(settings().store) as store:
        run, grading = store.run(held), store.grading(held)
        store.update_run(run.model_copy(update={"status": "running", "finished_at": None}))
        store.update_grading(grading.model_copy(update={"summary": None, "verdict": None, "finished_at": None}))
    done = viva("run", "--failed", "suite.yaml")
    assert done.returncode == 3
    assert f"run {held} is not complete" in done.stderr
    assert f"continue with: viva run --resume {held}" in done.stderr


def test_a_dry_run_has_no_table(viva: Viva, folder: Path) -> None:
    done = viva("run", "suite.yaml", "--dry-run", "--table")
    assert (done.returncode, done.stdout, asked(folder)) == (2, "", [])
    assert "--table" in done.stderr
    assert "--dry-run" in done.stderr


def test_a_summary_with_errors_ends_with_the_command_that_tries_them_again(viva: Viva, folder: Path) -> None:
    def last_command(text: str) -> list[str]:
        said = text.rstrip().splitlines()[-1]
        assert said.startswith("retry 1 conversation with an error: viva run --resume capitals-")
        return said.partition(": viva ")[2].split()

    done = viva("run", "suite.yaml", "--store", "here.db")
    assert last_command(done.stdout) == last_command(viva("show", "--store", "here.db").stdout)
    (folder / "up").touch()
    asked(folder)
    again = viva(*last_command(done.stdout))
    assert asked(folder) == ["Norway?"]
    assert "with an error again" not in again.stdout
    graded = viva("grade", "--store", "here.db", "--suite", "suite.yaml")
    assert "with an error again" not in graded.stdout


def test_resume_means_the_latest_run_of_the_suite(viva: Viva, folder: Path) -> None:
    stopped = viva("run", "suite.yaml", "--max-calls", "1", "--max-concurrent", "1")
    assert stopped.returncode == 3
    (folder / "b.yaml").write_text(SUITE.replace("capitals", "other"))
    viva("run", "b.yaml")
    asked(folder)
    assert "is finished; there is nothing to resume" in viva("run", "--resume").stderr
    resumed = viva("run", "--resume", "suite.yaml", "-q")
    assert resumed.returncode == 1
    assert len(asked(folder)) == 2
    assert "is finished" in viva("run", "suite.yaml", "--resume").stderr
    assert "name a suite to run or a run to resume" in viva("run", "suite.yaml", "--resume", "other").stderr


def test_several_suites_end_with_a_line_each_and_the_code_of_the_worst(viva: Viva, folder: Path) -> None:
    (folder / "broken.yaml").write_text("graders: [\n")
    ungated = SUITE.replace("capitals", "ungated").partition("gate:")[0]
    (folder / "ungated.yaml").write_text(ungated)
    both = viva("run", "ungated.yaml", "suite.yaml", "-q")
    assert both.returncode == 1
    lines = both.stdout.splitlines()[-2:]
    assert re.fullmatch(r"ungated.yaml: ungated-\w+: inconclusive; 3 conversations; right 0.500", lines[0])
    assert re.fullmatch(r"suite.yaml: capitals-\w+: fail; 3 conversations; right 0.500", lines[1])
    wrong = viva("run", "broken.yaml", "suite.yaml", "-q")
    assert wrong.returncode == 2
    assert "broken.yaml:2" in wrong.stderr
    assert wrong.stdout.splitlines()[-2] == "broken.yaml: wrong usage or configuration, nothing was run"
    assert viva("run", "ungated.yaml", "ungated.yaml", "-q").returncode == 3


def test_samples_and_tags_are_chosen_by_pattern_and_name(viva: Viva, folder: Path) -> None:
    viva("run", "suite.yaml", "--sample", "[df]?", "-q")
    assert asked(folder) == ["France?", "Germany?"]
    wrong = viva("run", "suite.yaml", "--tag", "west", "--tag", "bgi")
    assert "'d.jsonl' has no samples with the tags bgi; the tags are big, west" in wrong.stderr
    neither = viva("run", "suite.yaml", "--tag", "big", "--sample", "fr")
    assert "none of the chosen samples of d.jsonl has the tags big" in neither.stderr
    assert asked(folder) == []


def test_an_env_file_is_read_only_where_it_is_named(viva_process: Viva, folder: Path) -> None:
    (folder / "suite.yaml").write_text(SUITE.replace("name: capitals", "name: on ${STAGE_OF_TEST}"))
    (folder / ".env").write_text("STAGE_OF_TEST=staging\n")
    assert "STAGE_OF_TEST is not set" in viva_process("run", "suite.yaml").stderr
    done = viva_process("run", "suite.yaml", "--env-file", ".env")
    assert "run on-staging-" in done.stderr
    assert done.stdout.rstrip().endswith("--errors --env-file .env")


Watching = Callable[[str], str]


@pytest.fixture
def watching(folder: Path) -> Iterator[Watching]:
    """Watch the suite, and return a function that waits for a text in what is said from there on."""
    repair(folder)
    said = folder / "said.txt"
    with said.open("w") as out:
        process = subprocess.Popen(
            [str(program("viva")), "run", "suite.yaml", "--watch"],
            cwd=folder,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
    read = 0

    def wait_for(text: str) -> str:
        nonlocal read
        until = time.monotonic() + 20
        while time.monotonic() < until:
            new = said.read_text()[read:]
            if text in new:
                read += new.index(text) + len(text)
                return new
            time.sleep(0.02)
        raise AssertionError(f"{text!r} was not said in {said.read_text()[read:]!r}")

    try:
        yield wait_for
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
    finally:
        process.kill()
        process.wait()


def test_only_what_changed_is_run_again(watching: Watching, folder: Path) -> None:
    watching("watching 3 files; Ctrl-C ends")
    assert len(asked(folder)) == 3
    write_rows(folder, [ROWS[0], {**ROWS[1], "ground_truth": "Bonn"}, ROWS[2]])
    watching("d.jsonl changed")
    assert "partial: reruns" in watching("FAIL")
    watching("show the worst")
    assert asked(folder) == ["Germany?"]
    (folder / "suite.yaml").write_text(SUITE.replace("0.9", "0.5"))
    watching("PASS")
    watching("show the worst")
    assert asked(folder) == []
    (folder / "bot.py").write_text(BOT.replace("Bonn", "Berlin") + "\n# changed\n")
    assert "partial" not in watching("PASS")
    watching("show the worst")
    assert len(asked(folder)) == 3


def test_a_file_that_is_half_written_is_shown_and_watched_on(watching: Watching, folder: Path) -> None:
    watching("Ctrl-C ends")
    asked(folder)
    (folder / "suite.yaml").write_text(SUITE + "agreement: [\n")
    watching("is not YAML")
    watching("it is run again when a file changes")
    (folder / "suite.yaml").write_text(SUITE)
    watching("PASS")
    assert asked(folder) == []
