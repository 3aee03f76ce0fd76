"""Which session is a turn of, and whose? Everybody who shows a turn says it, in the same words and figures.

One row has three sessions of two users with a bot that remembers by user, and forgets one thing.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from server.live import get, serving
from vivavoce.errors import UsageError
from vivavoce.records.run import Outcome
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.html.notebook import trajectory_html
from vivavoce.report.html.one_file import write_html
from vivavoce.report.json_file import write_jsonl
from vivavoce.report.junit import write_junit
from vivavoce.report.markdown import write_markdown
from vivavoce.report.tables import write_csv
from vivavoce.report.transcript import conversation
from vivavoce.report.worst_samples import worst
from vivavoce.run.summary import RunResult
from vivavoce.suites.check import check_suite
from vivavoce.suites.experiment import run_suite
from vivavoce.suites.load import load_suite

BOT = """\
KNOWN = {}


def remembers(message, user):
    if message.startswith("I "):
        KNOWN.setdefault(user, message)
        return "Noted."
    return KNOWN.get(user, "Who are you?")


def forgets(message):
    return message
"""
ROW = {
    "id": "diet",
    "sessions": [
        {"user": "ana", "input": ["I eat no meat", "I live in Rome"]},
        {"user": "bo", "input": "What do I eat?", "ground_truth": "Who"},
        {"user": "ana", "input": ["What do I eat?", "Where do I live?"], "ground_truth": ["no meat", "Rome"]},
    ],
}
SUITE: dict[str, Any] = {
    "name": "returning",
    "dataset": {"rows": [ROW, {**ROW, "id": "again"}]},
    "trials": 2,
    "target": {"kind": "function", "function": "bot.py:remembers"},
    "graders": {
        "says": {"kind": "function", "function": "contains"},
        "lost": {"kind": "metric", "metric": "forgetting"},
    },
}
LABELS = ["session 1 · ana", "session 1 · ana", "session 2 · bo", "session 3 · ana", "session 3 · ana"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    folder = tmp_path_factory.mktemp("sessions")
    (folder / "bot.py").write_text(BOT)
    (folder / "suite.yaml").write_text(json.dumps(SUITE))
    return run_suite(folder / "suite.yaml", store=str(folder / "kept.db"))


@pytest.fixture(scope="module")
def held(graded: GradedRun) -> Outcome:
    return next(iter(graded.outcomes()))


@pytest.fixture(scope="module")
def server(graded: GradedRun) -> Iterator[str]:
    with serving(graded.store) as address:
        yield address


def test_no_attempt_meets_the_memory_of_another(graded: GradedRun) -> None:
    answers = {tuple(message.text for message in outcome.attempt.trajectory.messages) for outcome in graded.outcomes()}
    assert len(answers) == 1
    assert next(iter(answers))[1::2] == ("Noted.", "Noted.", "Who are you?", "I eat no meat", "I eat no meat")


def test_the_record_says_it_by_the_message_of_each_turn(graded: GradedRun, held: Outcome) -> None:
    assert [turn.mark and turn.mark.label for turn in held.attempt.trajectory.turns] == LABELS
    out = io.StringIO()
    write_jsonl(graded, out)
    read = Outcome.model_validate_json(out.getvalue().splitlines()[0])
    assert [turn.mark and turn.mark.label for turn in read.attempt.trajectory.turns] == LABELS


def test_terminal_notebook_and_pages_say_it_beside_the_number_of_the_turn(
    graded: GradedRun, held: Outcome, server: str
) -> None:
    printed, page = io.StringIO(), io.StringIO()
    Console(file=printed, width=200).print(conversation(held))
    write_html(graded, page)
    for number, label in enumerate(LABELS, 1):
        assert f"── turn {number} · {label} · " in printed.getvalue()
        assert f"turn {number} · {label}" in trajectory_html(held.attempt.trajectory)
    live = get(f"{server}/runs/{graded.run.id}/samples/diet").text
    assert live.count("session 3 · ana") >= 2
    assert page.getvalue().count("session 3 · ana") >= 2


def test_a_turn_that_failed_is_quoted_with_its_session(graded: GradedRun) -> None:
    shown = worst(graded.store, graded.grading).samples[0]
    assert str(shown.exchange).startswith("session 3 · ana: “Where do I live?”")
    for write in (write_junit, write_markdown):
        out = io.StringIO()
        write(graded, out)
        assert "session 3 · ana" in out.getvalue()


def test_tables_have_its_number_and_user_in_columns(graded: GradedRun) -> None:
    out = io.StringIO()
    write_csv(graded, out)
    rows = [row for row in csv.DictReader(io.StringIO(out.getvalue())) if row["sample_id"] == "diet"]
    turns = [row for row in rows if row["trial"] == "1" and row["turn"] and row["grader"] == "says"]
    assert [f"session {row['session']} · {row['user']}" for row in turns] == LABELS
    assert {row["session"] for row in rows if not row["turn"]} == {""}


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"target": {"kind": "function", "function": "bot.py:forgets"}}, "is not told who speaks"),
        ({"target": {"kind": "http", "url": "http://127.0.0.1:1", "body": {"m": "{{ message }}"}}}, "sessions need"),
        ({"driver": "penelope", "tester": {"model": "openai:x"}}, "2 rows have several sessions; a tester leads one"),
    ],
)
def test_what_cannot_know_a_user_again_is_refused_before_anything_runs(
    tmp_path: Path, changed: dict[str, Any], rule: str
) -> None:
    (tmp_path / "bot.py").write_text(BOT)
    (tmp_path / "suite.yaml").write_text(json.dumps({**SUITE, **changed}))
    with pytest.raises(UsageError, match=rule):
        check_suite(load_suite(tmp_path / "suite.yaml"))


def test_a_target_that_is_told_may_be_one_of_http(tmp_path: Path) -> None:
    target = {"kind": "http", "url": "http://127.0.0.1:1", "body": {"m": "{{ message }}", "who": "{{ user }}"}}
    (tmp_path / "suite.yaml").write_text(json.dumps({**SUITE, "target": target}))
    check_suite(load_suite(tmp_path / "suite.yaml"))
