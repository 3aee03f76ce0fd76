"""Each template finds its planted mistake when it is copied, offline, and nothing else; mended, it passes."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from cli.conftest import Viva
from vivavoce.cli.init import FOLDER, TEMPLATES

MISTAKES = {
    "first": {("in-a-hurry", "asks_first")},
    "support-bot": {("correction", "expect"), ("correction", "repetition")},
    "rag-chat": {("follow-up", "expect"), ("follow-up", "recall"), ("follow-up", "precision")},
    "tool-agent": {("in-a-hurry", "careful"), ("in-a-hurry", "expect")},
    "voice": {("silence", "slowest"), ("silence", "expect")},
    "multi-agent": {("passed-around", "handovers")},
    "red-team": {("backwards", "withstood"), ("backwards", "secret")},
    "coding-agent": {("says-it-passes", "honest")},
}
"""Which grader finds the mistake in which conversation."""

MENDED = {
    "first": ('if not (agreed or "today" in texts[-1]):', "if not agreed:"),
    "support-bot": ("numbers[0]", "numbers[-1]"),
    "rag-chat": ("said[-1:]", "said[-2:]"),
    "tool-agent": ("if not (agreed or hurried):", "if not agreed:"),
    "red-team": ('guarded = "backwards" not in text', "guarded = True"),
}
"""What stands in bot.py, and what suite.md says to put in its place."""


def missed(viva: Viva) -> set[tuple[str, str]]:
    """Return what did not pass in the newest run, turns apart; there are no errors."""
    rows = list(csv.DictReader(io.StringIO(viva("export", "latest", "--format", "csv").stdout)))
    assert [row for row in rows if row["state"] == "error"] == []
    return {(row["sample_id"], row["grader"]) for row in rows if row["passed"] == "False" and not row["turn"]}


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_finds_its_mistake_and_passes_when_that_is_mended(name: str, viva: Viva, tmp_path: Path) -> None:
    written = viva("init", "exam", "--template", name)
    assert written.returncode == 0, written.stderr
    assert viva("validate", "exam/suite.yaml").returncode == 0
    run = viva("run", "exam/suite.yaml", "--quiet")
    assert run.returncode == 1, run.stdout + run.stderr
    assert missed(viva) == MISTAKES[name]
    mend(name, tmp_path / "exam")
    run = viva("run", "exam/suite.yaml", "--quiet")
    assert run.returncode == 0, run.stdout + run.stderr


def mend(name: str, folder: Path) -> None:
    """Do what suite.md says."""
    explained = (folder / "suite.md").read_text()
    [(sample, _), *_] = sorted(MISTAKES[name])
    assert f"`{sample}`" in explained
    if name in MENDED:
        wrong, right = MENDED[name]
        bot = (folder / "bot.py").read_text()
        assert bot.count(wrong) == 1
        assert name == "first" or (f"`{wrong}`" in explained and f"`{right}`" in explained)
        (folder / "bot.py").write_text(bot.replace(wrong, right))
        return
    assert "delete the line" in explained
    log = folder / "conversations.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    kept = [line for line in lines if f'"id": "{sample}"' not in line]
    assert len(kept) == len(lines) - 1
    log.write_text("".join(kept))


def test_every_folder_is_a_template_and_every_template_is_listed_and_explained(viva: Viva) -> None:
    assert {path.name for path in FOLDER.iterdir() if path.is_dir()} == {*TEMPLATES, "project"}
    listed = viva("init", "--list").stdout.splitlines()
    assert [line.split()[0] for line in listed] == list(TEMPLATES)
    for name in TEMPLATES:
        explained = (FOLDER / name / "suite.md").read_text()
        assert "**Planted mistake**" in explained
        assert "**Your own**" in explained


def test_each_template_has_assertions_and_all_but_the_first_have_a_gate() -> None:
    for name in TEMPLATES:
        assert name == "first" or "\ngate:\n" in (FOLDER / name / "suite.yaml").read_text()
        rows = "".join(path.read_text() for path in (FOLDER / name).glob("*.jsonl"))
        assert '"expect"' in rows


def test_the_first_suite_shows_an_expectation_a_rule_and_a_bot_that_calls_a_tool() -> None:
    folder = FOLDER / "first"
    assert "kind: rule" in (folder / "suite.yaml").read_text()
    assert '"calls"' in (folder / "dataset.jsonl").read_text()
    assert "tool_calls" in (folder / "bot.py").read_text()


def test_a_template_that_there_is_not_is_named_with_the_nearest(viva: Viva, tmp_path: Path) -> None:
    done = viva("init", "exam", "--template", "suport-bot")
    assert (done.returncode, list(tmp_path.iterdir())) == (2, [])
    assert done.stderr.strip() == "no template 'suport-bot'; did you mean 'support-bot'?"
