"""One stored run with 3 turns and 2 trials, through every reader: all give a turn and a trial the same number.

In the run the bot is wrong once, in the third turn of the second trial of `refund`. Whoever writes for people says
`refund#2` and turn 3; records, JSON and the files of letta-evals say trial 1 and turn 2.
"""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from forked import program
from server.live import get, serving
from vivavoce.errors import UsageError
from vivavoce.grading.functions import metadata_of
from vivavoce.metrics import FunctionMetric, evaluate_test_result
from vivavoce.metrics.transcript import transcript
from vivavoce.records.run import AttemptKey, Outcome
from vivavoce.report.export import export
from vivavoce.store.labels import LabelPlace, now_label
from vivavoce.store.store import Store
from vivavoce.suites.experiment import run_suite

SUITE = """\
name: counting
dataset:
  rows:
    - {id: refund, input: [one, two, three], ground_truth: [one, two, three]}
target: {kind: function, function: "bot.py:reply"}
trials: 2
max_concurrent: 1
graders:
  echo: {kind: tool, function: exact_match}
  proof: {kind: tool, function: "graders.py:proof"}
gate: {kind: simple, metric_key: echo, op: gte, value: 0.5}
"""
BOT = """\
times = 0

def reply(message):
    global times
    times += message == "three"
    return "WRONG" if times == 2 and message == "three" else message
"""
GRADERS = """\
def proof(sample, submission):
    wrong = submission == "WRONG"
    evidence = [{"text": "WRONG", "kind": "quote", "turn": 2, "verified": True}]
    found = {"kind": "violation", "what": "a slip", "verdict": "seen", "state": "fail", "turn": 2, "evidence": evidence}
    return {"score": 0.0 if wrong else 1.0, "rationale": "seen", "findings": [found] if wrong else []}
"""
NAME, FAULT = "refund#2", "echo, turn 3"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the suite, in which the run was held."""
    for name, text in {"suite.yaml": SUITE, "bot.py": BOT, "graders.py": GRADERS}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    run_suite("suite.yaml")
    return tmp_path


@pytest.fixture
def store(folder: Path) -> Iterator[Store]:
    with Store.open(str(folder / ".vivavoce" / "vivavoce.db")) as opened:
        yield opened


@pytest.fixture
def exported(store: Store) -> Callable[[str], str]:
    def write(form: str) -> str:
        out = io.StringIO(newline="")
        run = store.run("latest")
        export(store, run, store.grading(run.id), form, out)
        return out.getvalue()

    return write


def viva(*arguments: str) -> str:
    """Return what the real command prints."""
    command = [program("viva"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def numbers(pattern: str, text: str) -> list[int]:
    """Return every number that a pattern finds, once and in order."""
    return sorted({int(found) for found in re.findall(pattern, text)})


def test_the_terminal(folder: Path) -> None:
    report = viva("show")
    assert NAME in report
    assert FAULT in report
    (first, second), shown = viva("show", "latest", "refund").split(f"\n{NAME} · ", 1), viva("show", "latest", NAME)
    assert first.startswith("refund · ")
    assert shown == f"{NAME} · {second}"
    assert numbers(r"── turn (\d+)", shown) == [1, 2, 3]
    assert shown.index("── turn 3") < shown.index("WRONG") < shown.index("── grades")
    assert re.search(r"turn 3  “WRONG”", shown)
    assert viva("show", "latest", "refund#1").startswith("refund · ")
    assert json.loads(viva("show", "latest", NAME, "--json"))["trial"] == 1


@pytest.mark.parametrize("form", ["markdown", "github", "html"])
def test_files_for_people(exported: Callable[[str], str], form: str) -> None:
    text = exported(form)
    assert NAME in text
    assert ("echo: turn 3 of 3 not passed" if form == "html" else FAULT) in text.replace("%2C", ",")
    assert not re.search(r"\b[Tt]urns? 0\b|#0\b|counted? from 0", text)


def test_the_page_in_one_file(exported: Callable[[str], str]) -> None:
    html = exported("html")
    assert numbers(r'aria-label="Turn (\d+)', html) == [1, 2, 3]
    assert numbers(r'id="s\d+-t(\d+)"', html) == [1, 2, 3]
    assert "3 fail" in html
    assert ">Turn 3</a>" in html


def test_tables(exported: Callable[[str], str], store: Store, tmp_path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(exported("csv"))))
    assert {row["trial"] for row in rows} == {"1", "2"}
    assert {row["turn"] for row in rows} == {"", "1", "2", "3"}
    (wrong,) = [row for row in rows if row["grader"] == "echo" and row["turn"] and float(row["score"]) == 0]
    assert (wrong["trial"], wrong["turn"]) == ("2", "3")
    parquet: Any = pytest.importorskip("pyarrow.parquet", reason="needs the extra [frames]")
    run = store.run("latest")
    export(store, run, store.grading(run.id), "parquet", tmp_path / "scores.parquet")
    table = parquet.read_table(tmp_path / "scores.parquet").to_pylist()
    assert [(str(row["trial"]), str(row["turn"] or "")) for row in table] == [(r["trial"], r["turn"]) for r in rows]


def test_junit(exported: Callable[[str], str]) -> None:
    root = ElementTree.fromstring(exported("junit"))
    cases = {case.attrib["name"]: case for case in root.iter("testcase")}
    assert {"refund · echo", f"{NAME} · echo"} <= cases.keys()
    known = {one.attrib["name"]: one.attrib["value"] for one in cases[f"{NAME} · echo"].iter("property")}
    assert known["trial"] == "2"


def test_records_count_from_0(exported: Callable[[str], str], store: Store, tmp_path: Path) -> None:
    first, second = (Outcome.model_validate_json(line) for line in exported("jsonl").splitlines())
    assert (first.attempt.key.trial, second.attempt.key.trial) == (0, 1)
    echo = second.scores["echo"]
    assert [(one.turn, one.value) for one in echo.turns or ()] == [(0, 1.0), (1, 1.0), (2, 0.0)]
    assert [one["turn"] for one in metadata_of(echo)["per_turn_grades"]] == [0, 1, 2]
    run = store.run("latest")
    export(store, run, store.grading(run.id), "letta", tmp_path / "letta")
    lines = "".join(file.read_text("utf-8") for file in (tmp_path / "letta").rglob("*.jsonl"))
    assert numbers(r"\[Turn (\d+)\]", lines) == [0, 1, 2]


def test_pages_and_the_api(store: Store) -> None:
    run = store.run("latest").id
    with serving(store) as url:
        listed = get(f"{url}/runs/{run}").text
        assert NAME in listed
        assert "echo: turn 3 of 3 not passed" in listed
        link, *_ = re.findall(rf'href="(/runs/{run}/samples/refund\?[^"]*trial=2[^"]*)"', listed)
        page = get(url + link.replace("&amp;", "&")).text
        assert "WRONG" in get(f"{url}/runs/{run}/samples/refund%232").text
        assert numbers(r'id="t(\d+)"', page) == [1, 2, 3]
        assert 'href="#t3">Turn 3</a>' in page
        assert not re.search(r"\b[Tt]urns? 0\b|#0\b|count from 0", page)
        assert "WRONG" not in get(f"{url}/runs/{run}/samples/refund?trial=1").text
        assert get(f"{url}/runs/{run}/samples/refund?trial=0").status == 422
        record = get(f"{url}/api/v1/runs/{run}/samples/refund/1").json()
        assert [one["turn"] for one in record["scores"]["echo"]["turns"]] == [0, 1, 2]
        missing = get(f"{url}/api/v1/runs/{run}/samples/refund/2")
        assert (missing.status, "its trials are 1, 2" in missing.text) == (404, True)


def test_two_conversations_side_by_side(store: Store) -> None:
    run = store.run("latest").id
    with serving(store) as url:
        page = get(f"{url}/compare/samples?a={run}&b={run}&sample_a=refund&trial=2").text
        assert NAME in page
        assert numbers(r'id="t(\d+)"', page) == [1, 2, 3]


def test_a_name_means_the_same_conversation_in_python(folder: Path) -> None:
    def wrong(messages: list[Any]) -> bool:
        return any(message.text == "WRONG" for message in messages)

    def score(name: str) -> object:
        return evaluate_test_result(f"latest/{name}", [FunctionMetric(wrong)])["wrong"].score

    said = {name: score(name) for name in ("refund", "refund#1", NAME)}
    assert said == {"refund": False, "refund#1": False, NAME: True}
    with pytest.raises(UsageError, match="its trials are 1, 2"):
        score("refund#3")


def test_a_filter_names_the_same_trial(store: Store) -> None:
    grading = store.grading(store.run("latest").id)
    for wanted, trials in {"trial:2": [1], "trial:1": [0], "trial>1": [1], "trial:0": [], "echo<1": [1]}.items():
        assert [sample.trial for sample in store.browse.samples(grading.id, wanted).samples] == trials


def test_labels(store: Store) -> None:
    run = store.run("latest").id
    place = LabelPlace(run, AttemptKey("refund", "bot.reply", 1), 2, "echo", "Ida")
    store.labels.set(run, now_label(place, "pass", None, blind=False))
    assert store.audit.entries(None, 1).entries[0].subject == f"{run}/{NAME}"
    (row,) = csv.DictReader(io.StringIO(viva("labels", "export", "--format", "csv")))
    assert (row["trial"], row["turn"]) == ("2", "3")
    label = json.loads(viva("labels", "export"))
    assert (label["trial"], label["turn"]) == (1, 2)
    assert f"too strict  {NAME} turn 3" in viva("labels", "agreement", "--grader", "echo", "--turns")


def test_a_judge_reads_the_same_numbers(store: Store) -> None:
    second = next(attempt for attempt in store.attempts(store.run("latest").id) if attempt.key.trial == 1)
    text = transcript(second.trajectory.messages).text()
    assert numbers(r"(?m)^turn (\d+)$", text) == [1, 2, 3]
    assert text.index("\nturn 3\n") < text.index("WRONG")
