"""`viva judge`: metrics over a file, over real HTTP, and what the other commands make of its runs."""

from __future__ import annotations

import csv
import io
import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from forked import program
from vivavoce import Store
from vivavoce.cli.main import main
from vivavoce.testing import LoopbackServer
from vivavoce.testing.loopback import completion

from .conftest import Viva

Row = dict[str, Any]
POLITE = """\
name: polite
prompt: Is the assistant polite?
score: {kind: categorical, categories: [rude, polite], passing: [polite]}
"""
OWN = "def short(messages) -> bool:\n    return len(messages[-1].text) < 9\n"


def talk(number: int) -> Row:
    answer = f"poison {number}" if number % 4 == 3 else f"Answer {number}."
    messages = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": answer}]
    return {"id": f"r{number}", "messages": messages, "metadata": {"wish": f"wish {number}"}}


def judge(body: Row) -> Row:
    """Answer in the form that is asked for: a category, a goal's outcomes, or violations."""
    text, form = body["messages"][1]["content"], json.dumps(body["response_format"])
    bad = "poison" in text
    told: Row = {"reasoning": "It told." if bad else "Fine.", "confidence": 1}
    if '"label"' in form:
        return {**told, "evidence": ["Hi"], "label": "rude" if bad else "polite"}
    if '"criteria"' in form:
        words = re.findall(r'^assistant: "(.*)"$', text, re.MULTILINE)
        outcome: Row = {"outcome": "told", "kind": "fact", "evidence": words, "met": not bad}
        return {**told, "criteria": [outcome], "breaches": []}
    harm: Row = {"what": "It told.", "evidence": ["poison"], "severity": "critical"}
    return {**told, "violations": [harm] if bad else []}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LoopbackServer]:
    (tmp_path / "polite.yaml").write_text(POLITE)
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "talks.jsonl").write_text("".join(json.dumps(talk(i)) + "\n" for i in range(8)))
    with LoopbackServer(judge) as server:
        yield server


@pytest.fixture
def model(server: LoopbackServer) -> str:
    return f"{server.base_url}#judge"


def summary(place: str = ".vivavoce/vivavoce.db") -> Row:
    """Return the summary of each grader of the newest run, by its name."""
    with Store.open(place) as store:
        found = store.grading(store.run("latest").id).summary or {}
    return {one["name"]: one for one in found["graders"]}


def test_a_file_is_measured_and_the_other_commands_read_what_came_out(
    viva: Viva, model: str, tmp_path: Path, server: LoopbackServer
) -> None:
    done = viva("judge", "talks.jsonl", "--metrics", "safety, refusal,own.py:short,polite.yaml", "--judge", model)
    assert done.returncode == 0, done.stderr
    assert "run judge-talks-" in done.stderr
    assert "r3" in done.stdout.partition("the worst samples")[2]
    graders = summary()
    assert {name: (one["scored"], one["pass_rate"]) for name, one in graders.items()} == {
        "safety": (8, 0.75),
        "refusal": (8, 1.0),
        "short": (8, 0.25),
        "polite": (8, 0.75),
    }
    assert graders["safety"]["pass_low"] < 0.75 < graders["safety"]["pass_high"]
    shown = viva("show", "latest", "r3").stdout
    assert "0.00  safety  It told." in shown
    assert "“poison”" in shown
    rows = list(csv.DictReader(io.StringIO(viva("export", "latest", "--format", "csv").stdout)))
    assert {(row["sample_id"], row["score"]) for row in rows if row["grader"] == "safety"} >= {("r3", "0.0")}
    asked = len(server.requests)
    assert asked == 16
    again = viva("judge", "talks.jsonl", "--metrics", "safety", "--judge", model, "-q")
    assert (again.returncode, again.stderr, len(server.requests)) == (0, "", asked)
    runs = [json.loads(line)["id"] for line in viva("runs", "--json").stdout.splitlines()]
    compared = viva("compare", *runs)
    assert (compared.returncode, "safety" in compared.stdout) == (0, True), compared.stderr


def test_a_dry_run_counts_what_would_be_asked_and_asks_nobody(
    viva: Viva, model: str, tmp_path: Path, server: LoopbackServer
) -> None:
    options = ["--metrics", "safety,refusal", "--dry-run", "--max-samples", "3"]
    done = viva("judge", "talks.jsonl", *options, "--judge", model)
    told = "3 recorded conversations, 3 turns; no target is called, 3 judge verdicts"
    assert (done.returncode, done.stdout.strip()) == (0, told)
    unkeyed = viva("judge", "talks.jsonl", *options, "--judge", "openai:gpt-4.1-mini")
    assert (unkeyed.returncode, "OPENAI_API_KEY" in unkeyed.stderr) == (2, True)
    assert viva("judge", "talks.jsonl", *options, "--judge", "openai:gpt-4.1-mini", "--replay").stdout.strip() == told
    assert server.requests == []
    assert not (tmp_path / ".vivavoce").exists()


def test_what_a_metric_needs_is_found_in_another_field_or_it_is_skipped_and_says_why(
    viva: Viva, model: str, server: LoopbackServer
) -> None:
    done = viva("judge", "talks.jsonl", "--metrics", "goal_achievement", "--judge", model)
    assert done.returncode == 3
    assert "nothing was scored" in done.stdout
    assert "goal_achievement skipped 8 of 8 conversations: needs a goal, and none is given" in done.stdout
    assert server.requests == []
    more = ["--field", "goal=metadata.wish", "--store", "other.db"]
    done = viva("judge", "talks.jsonl", "--metrics", "goal_achievement", "--judge", model, *more)
    assert done.returncode == 0, done.stdout
    assert summary("other.db")["goal_achievement"]["pass_rate"] == 0.75
    assert "wish 2" in json.dumps([request.body["messages"] for request in server.requests])


def test_each_turn_is_judged_with_the_scope_turn_and_the_environment_names_the_judge(
    viva: Viva, model: str, tmp_path: Path, server: LoopbackServer
) -> None:
    two = {"messages": [*talk(0)["messages"], *talk(3)["messages"]]}
    (tmp_path / "two.jsonl").write_text(json.dumps(two) + "\n")
    options = ["--metrics", "safety", "--scope", "turn", "--no-cache"]
    for _ in range(2):
        assert viva("judge", "two.jsonl", *options, VIVAVOCE_JUDGE=model).returncode == 0
    assert len(server.requests) == 4, "without the cache everything is asked again"
    (line,) = viva("export", "latest", "--format", "jsonl").stdout.splitlines()
    turns = json.loads(line)["scores"]["safety"]["turns"]
    assert [(turn["turn"], turn["value"]) for turn in turns] == [(0, 1.0), (1, 0.0)]


def test_a_limit_stops_it_and_it_can_be_gone_on_with_or_replayed(
    viva: Viva, model: str, server: LoopbackServer
) -> None:
    options = ["--metrics", "safety", "--judge", model, "--max-concurrent", "1"]
    done = viva("judge", "talks.jsonl", *options, "--max-calls", "3")
    assert done.returncode == 3
    assert "stopped after 3 of 8 conversations: the limit of 3 calls is reached" in done.stdout
    missing = viva("judge", "talks.jsonl", *options, "--replay", "--store", ".vivavoce/vivavoce.db")
    assert "no recorded reply" in missing.stdout
    run = done.stdout.rpartition("continue with: viva run --resume ")[2].strip()
    assert viva("run", "--resume", run).returncode == 0
    replayed = viva("judge", "talks.jsonl", *options, "--replay")
    assert (replayed.returncode, len(server.requests)) == (0, 8)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["gone.jsonl", "--metrics", "refusal"], "gone.jsonl: there is no such file"),
        ([".", "--metrics", "refusal"], ". is a folder"),
        (["polite.yaml", "--metrics", "refusal"], "the file extension must be one of"),
        (["talks.jsonl"], "--metrics"),
        (["talks.jsonl", "--metrics", " , "], "--metrics needs at least one metric"),
        (["talks.jsonl", "--metrics", "saftey"], "no metric 'saftey'; did you mean 'safety'?"),
        (["talks.jsonl", "--metrics", "safety"], "needs a judge: use --judge, or set VIVAVOCE_JUDGE"),
        (["talks.jsonl", "--metrics", "safety", "--judge", "nobody:x"], "no provider 'nobody'; known: anthropic"),
        (["talks.jsonl", "--metrics", "safety", "--judge", "openai:x"], "set the environment variable OPENAI_API_KEY"),
        (["talks.jsonl", "--metrics", "refusal", "--field", "goal"], "--field goal: write it as goal=metadata.wish"),
        (["talks.jsonl", "--metrics", "refusal", "--field", "gaol=x"], "no such field; did you mean 'goal'?"),
        (["talks.jsonl", "--metrics", "refusal", "--field", "goal=x.y"], "talks.jsonl:1 this row has no 'x.y'"),
        (["talks.jsonl", "--metrics", "refusal", "--scope", "turns"], "--scope"),
        (["talks.jsonl", "--metrics", "refusal", "--max-cost", "inf"], "--max-cost: expected an amount in US dollars"),
        (["talks.jsonl", "--metrics", "safety", "--judge", "http://h/v1#m", "--max-cost", "1"], "#m is unknown"),
        (["talks.jsonl", "--metrics", "safety", "--export-requests", "q.jsonl"], "needs a judge: use --judge"),
        (["talks.jsonl", "--metrics", "refusal", "--import-responses", "a.jsonl"], "a.jsonl: there is no such file"),
        (["bad.jsonl", "--metrics", "refusal"], "bad.jsonl:2"),
        (["asked.jsonl", "--metrics", "refusal"], "1 rows have no 'messages' to replay"),
    ],
)
@pytest.mark.usefixtures("server")
def test_a_mistake_is_told_and_begins_no_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    (tmp_path / "bad.jsonl").write_text(json.dumps(talk(0)) + "\n{\n")
    (tmp_path / "asked.jsonl").write_text('{"input": "Hi."}\n')
    with pytest.raises(SystemExit) as ended:
        main(["judge", *arguments])
    told = capsys.readouterr()
    assert (ended.value.code, told.out) == (2, "")
    assert said in told.err
    assert "Traceback" not in told.err
    if (tmp_path / ".vivavoce").exists():
        with Store.open(".vivavoce/vivavoce.db") as store:
            assert store.runs() == []


def test_the_questions_travel_in_a_file_and_the_answers_come_back_in_another(
    viva: Viva, model: str, tmp_path: Path, server: LoopbackServer
) -> None:
    options = ["judge", "talks.jsonl", "--metrics", "safety,refusal", "--judge", model]
    asked = viva(*options, "--export-requests", "questions.jsonl")
    assert (asked.returncode, asked.stderr) == (0, "")
    assert asked.stdout.startswith("8 requests in questions.jsonl; 8 verdicts needed no request")
    questions = [json.loads(line) for line in (tmp_path / "questions.jsonl").read_text().splitlines()]
    assert server.requests == []
    samples = [json.loads(line)["id"] for line in (tmp_path / "talks.jsonl").read_text().splitlines()]
    assert [(question["sample"], question["metric"]) for question in questions] == [
        (name, "safety") for name in samples
    ]
    with (tmp_path / "answers.jsonl").open("w") as file:
        for question in questions[:-1]:
            body = completion(judge(question["body"]), question["body"])
            answer = {"custom_id": question["custom_id"], "response": {"status_code": 200, "body": body}, "error": None}
            file.write(json.dumps(answer) + "\n")
    done = viva(*options, "--import-responses", "answers.jsonl")
    assert "7 answers imported, 7 of them new" in done.stderr
    found = summary()["safety"]
    assert (found["scored"], found["errors"], server.requests) == (7, 1, [])
    assert "no recorded reply" in done.stdout


def test_a_line_of_a_request_names_the_repetition_and_the_turns_that_are_judged(
    viva: Viva, model: str, tmp_path: Path
) -> None:
    said = [("user", "Hi"), ("assistant", "Hello"), ("user", "And?"), ("assistant", "That is all.")]
    messages = [{"role": role, "content": text} for role, text in said]
    rows = [{"id": "c1", "trial": trial, "messages": [*messages, *messages[: 2 * trial]]} for trial in range(2)]
    (tmp_path / "again.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    metrics = ["--metrics", "safety,coherence", "--scope", "turn"]
    viva("judge", "again.jsonl", *metrics, "--judge", model, "--export-requests", "q.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "q.jsonl").read_text().splitlines()]
    places = {
        (line["metric"], line["sample"], line["piece"]["first_turn"], line["piece"]["last_turn"]) for line in lines
    }
    shared = [("c1", 0, 0), ("c1", 1, 1), *(("c1#2", turn, turn) for turn in range(3))]
    assert places == {(metric, *place) for metric in ("safety", "coherence") for place in shared}


def test_an_answer_outside_its_schema_is_reported_and_asked_again(
    viva: Viva, model: str, tmp_path: Path, server: LoopbackServer
) -> None:
    def answered(file: str, change: Row | None = None) -> None:
        """Answer the questions of a file, one of them otherwise."""
        lines: list[str] = []
        for line in (tmp_path / file).read_text().splitlines():
            question = json.loads(line)
            body = completion({**judge(question["body"]), **(change or {})}, question["body"])
            change = None
            response: Row = {"status_code": 200, "body": body}
            lines.append(json.dumps({"custom_id": question["custom_id"], "response": response, "error": None}) + "\n")
        (tmp_path / "answers.jsonl").write_text("".join(lines))

    options = ["judge", "talks.jsonl", "--metrics", "safety", "--judge", model]
    viva(*options, "--export-requests", "all.jsonl")
    answered("all.jsonl", {"confidence": 7})
    done = viva(*options, "--import-responses", "answers.jsonl")
    assert "8 answers imported, 8 of them new" in done.stderr
    assert "1 cached answer is outside the schema and could not be used" in done.stderr
    assert (summary()["safety"]["scored"], summary()["safety"]["errors"]) == (7, 1)
    assert viva(*options, "--export-requests", "rest.jsonl").stdout.startswith("1 request in rest.jsonl; 7 verdicts")
    answered("rest.jsonl")
    done = viva(*options, "--import-responses", "answers.jsonl")
    assert "1 answer imported, 0 of them new, 1 replacing another" in done.stderr
    assert "could not be used" not in done.stderr
    assert (summary()["safety"]["scored"], summary()["safety"]["errors"], server.requests) == (8, 0, [])
    other = viva(
        "judge", "talks.jsonl", "--metrics", "safety", "--judge", f"{model}2", "--import-responses", "answers.jsonl"
    )
    assert (other.returncode, "answers.jsonl:1 answers a question to a model other than" in other.stderr) == (2, True)


def test_ctrl_c_keeps_what_was_judged_and_the_rest_can_follow(
    viva: Viva, model: str, tmp_path: Path, server: LoopbackServer
) -> None:
    (tmp_path / "many.jsonl").write_text("".join(json.dumps(talk(i)) + "\n" for i in range(200)))
    server.delay = 0.02
    options = ["--metrics", "safety", "--judge", model, "--max-concurrent", "4", "-q"]
    command = [str(program("viva")), "judge", "many.jsonl", *options]
    with subprocess.Popen(command, cwd=tmp_path, stdout=-1, stderr=-1, text=True) as process:
        while len(server.requests) < 30:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert 26 <= summary()["safety"]["scored"] < 200
    server.delay = 0
    assert viva("run", "--resume", "latest", "-q").returncode == 0, out
    assert len(server.requests) == 200, "nothing is asked twice"
    found = summary()["safety"]
    assert (found["scored"], found["errors"], found["pass_rate"]) == (200, 0, 0.75)
