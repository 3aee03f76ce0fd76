"""The job for GitLab: its script runs in a shell, as a runner of GitLab would run it."""

from __future__ import annotations

from pathlib import Path

from ci.runner import ROOT, bash, read_yaml, stem
from ci.test_action import BOT, SPOILT, SUITE
from forked import program

TEMPLATE = ROOT / "ci" / "gitlab.yml"


def test_the_script_checks_runs_and_reports_and_fails_with_the_suite(tmp_path: Path) -> None:
    job = read_yaml(TEMPLATE)[".viva"]
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "shop.viva.yaml").write_text(SUITE.format(name="shop"))
    (tmp_path / "evals" / "bot.py").write_text(SPOILT)
    variables = {**job["variables"], "VIVA_SUITES": "evals/*.viva.yaml", "VIVA_ARGS": "--trials 2"}
    done = bash("\n".join(job["script"]), tmp_path, program("viva").parent, **variables)
    assert done.returncode == 1, done.stdout
    assert "evals/shop.viva.yaml: valid" in done.stdout
    kept = tmp_path / ".viva-ci"
    assert {path.name for path in kept.iterdir() if path.suffix != ".db"} == {
        "answers",
        f"{stem('evals/shop.viva.yaml')}.html",
        f"{stem('evals/shop.viva.yaml')}.xml",
    }
    assert "<failure" in (kept / f"{stem('evals/shop.viva.yaml')}.xml").read_text()


def test_a_mistake_in_a_suite_ends_the_job(tmp_path: Path) -> None:
    job = read_yaml(TEMPLATE)[".viva"]
    done = bash("\n".join(job["script"]), tmp_path, program("viva").parent, **job["variables"])
    assert (done.returncode, "suite.yaml" in done.stdout, (tmp_path / ".viva-ci").exists()) == (2, True, False)


def test_every_suite_has_its_own_files_and_one_that_cannot_run_stops_no_other(tmp_path: Path) -> None:
    job = read_yaml(TEMPLATE)[".viva"]
    (tmp_path / "evals").mkdir()
    paths = ["evals-a.yaml", "evals/a.yaml"]
    for path in paths:
        (tmp_path / path).write_text(SUITE.format(name="shop"))
    for place in (tmp_path, tmp_path / "evals"):
        (place / "bot.py").write_text(BOT)
    bot, model = (
        '{kind: function, function: "bot.py:reply"}',
        "{kind: openai, base_url: 'https://192.0.2.1/v1', model_handles: [m], api_key_env: NO_SUCH_KEY}",
    )
    (tmp_path / "a.yaml").write_text(SUITE.format(name="keyless").replace(bot, model))
    kept = tmp_path / ".viva-ci"
    (kept / "answers").mkdir(parents=True)
    (kept / "answers" / f"{stem('a.yaml')}.jsonl").write_text('{"vivavoce_replies": 1}\n')
    variables = {**job["variables"], "VIVA_SUITES": "a.yaml evals-a.yaml evals/a.yaml"}
    done = bash("\n".join(job["script"]), tmp_path, program("viva").parent, **variables)
    assert (done.returncode, "NO_SUCH_KEY" in done.stdout) == (2, True), done.stdout
    assert {path.name for path in kept.glob("*.html")} == {f"{stem(path)}.html" for path in paths}


def test_nothing_is_installed_until_it_is_said_where_vivavoce_comes_from(tmp_path: Path) -> None:
    job = read_yaml(TEMPLATE)[".viva"]
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nprintf "%s " "$@" > {tmp_path}/installed\n')
    python.chmod(0o755)
    [install] = job["before_script"]
    done = bash(install, tmp_path, tmp_path, **job["variables"])
    assert (done.returncode != 0, (tmp_path / "installed").exists()) == (True, False)
    assert "VIVA_INSTALL: set it to where vivavoce comes from" in done.stdout
    assert bash(install, tmp_path, tmp_path, VIVA_INSTALL="git+https://host/a.git -r more.txt").returncode == 0
    assert (tmp_path / "installed").read_text() == "-m pip install --quiet git+https://host/a.git -r more.txt "
