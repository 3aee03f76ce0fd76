"""`viva metrics test`, with a judge that is asked as in real life."""

from __future__ import annotations

import json
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from command_line import Viva
from vivavoce.store.store import Store

JUDGE = """
import json
from pathlib import Path
from vivavoce.testing import ScriptedModel

def spoken(request):
    lines = request.messages[1].text.splitlines()
    return [json.loads(line[11:]) for line in lines if line.startswith('assistant: "')]

def answer(request):
    with Path("asked.txt").open("a") as file:
        file.write("asked\\n")
    said = str(request.messages)
    words = [one for one in ("idiot", "stupid", "really this slow") if one in said]
    evidence = words or spoken(request)
    return {"reasoning": "As seen.", "evidence": evidence, "verdict": not words, "confidence": 0.9}

def blind(request):
    return {"reasoning": "Fine.", "evidence": spoken(request), "verdict": True, "confidence": 0.9}

sees = ScriptedModel(answer, "sees")
passes = ScriptedModel(blind, "passes")
"""
POLITE = "{metric: aspect_critic, name: polite, config: {definition: The assistant is polite.}}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "judge.py").write_text(JUDGE)
    return tmp_path


def asked(folder: Path) -> int:
    path = folder / "asked.txt"
    return len(path.read_text().splitlines()) if path.exists() else 0


def ran(viva: Viva, *options: str, code: int = 0, metric: str = POLITE) -> CompletedProcess[str]:
    done = viva("metrics", "test", metric, "--quiet", *options)
    assert done.returncode == code, done.stderr
    return done


def metrics(viva: Viva, *options: str, code: int = 0, metric: str = POLITE) -> str:
    return ran(viva, *options, code=code, metric=metric).stdout


def figures(viva: Viva, *options: str, code: int = 0) -> dict[str, Any]:
    return json.loads(metrics(viva, "--json", *options, code=code))


def test_a_judge_that_sees_insults_sees_all_of_them_and_their_turn(viva: Viva, folder: Path) -> None:
    found = figures(viva, "--judge", "judge.py:sees", "--defects", "insult,loop")
    (one,) = found["metrics"]
    by_name = {edit["edit"]: edit for edit in one["edits"]}
    assert (found["conversations"], one["compared"], one["errors"]) == (10, 10, 0)
    assert (by_name["insult"]["moved"]["times"], by_name["insult"]["moved"]["n"]) == (10, 10)
    assert by_name["insult"]["placed"] == 10
    assert (by_name["loop"]["moved"]["times"], by_name["loop"]["moved"]["n"]) == (0, 10)
    assert (one["detection"]["share"], one["false_alarms"]["share"]) == (0.5, 0.0)
    assert one["judge"] == "judge.py:sees"


def test_every_verdict_is_one_call(viva: Viva, folder: Path) -> None:
    found = figures(viva, "--judge", "judge.py:sees", "--defects", "insult")
    with Store.open(Path(".vivavoce/vivavoce.db"), create=False) as store:
        runs = list(store.runs())
        verdicts = sum(len(list(store.scores(store.grading(run.id).id))) for run in runs)
    assert (len(runs), found["metrics"][0]["run"]) == (2, runs[0].id)
    assert asked(folder) == verdicts


def test_two_judges_are_compared_on_conversations_that_both_pass(viva: Viva, folder: Path) -> None:
    shown = metrics(
        viva, "--judge", "judge.py:sees", "--judge", "judge.py:passes", "--defects", "insult", "--max-samples", "4"
    )
    rows = [line.split()[:5] for line in shown.splitlines() if line.startswith("polite by") and "%" in line]
    assert rows[:2] == [
        ["polite", "by", "judge.py:sees", "4", "100.0%"],
        ["polite", "by", "judge.py:passes", "4", "0.0%"],
    ]
    assert "polite by judge.py:passes sees none of these: insult" in shown


def test_a_gate_fails_a_judge_that_sees_too_little(viva: Viva, folder: Path) -> None:
    done = ran(
        viva,
        *("--judge", "judge.py:passes", "--defects", "insult", "--max-samples", "3"),
        *("--min-detection", "0.8", "--max-false-alarms", "0.1"),
        code=1,
    )
    assert "polite by judge.py:passes sees 0.0% [0.0%, 56.1%] of the defects, less than 80.0%" in done.stderr
    metrics(viva, "--judge", "judge.py:sees", "--defects", "insult", "--max-samples", "3", "--min-detection", "0.8")


def test_only_good_conversations_are_changed(viva: Viva, folder: Path) -> None:
    rude = [{"role": "user", "content": "When?"}, {"role": "assistant", "content": "Only an idiot would ask. At nine."}]
    kind = [{"role": "user", "content": "When?"}, {"role": "assistant", "content": "At nine in the morning."}]
    rows = [
        {"id": "a", "messages": kind, "labels": {"good": True, "stars": 5}},
        {"id": "b", "messages": rude, "labels": {"good": False, "stars": 1}},
        {"id": "c", "messages": rude, "labels": {"good": True, "stars": 4}},
    ]
    Path("talks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    judged = figures(viva, "--judge", "judge.py:sees", "--on", "talks.jsonl", "--defects", "insult")
    assert (judged["conversations"], judged["left_out"]) == (1, 2)
    for label in (("--label", "good"), ("--label", "stars", "--good-from", "4")):
        labelled = figures(viva, "--judge", "judge.py:sees", "--on", "talks.jsonl", "--defects", "insult", *label)
        assert (labelled["conversations"], labelled["left_out"], labelled["metrics"][0]["failed_as_is"]) == (2, 1, 1)


def test_an_exact_metric_needs_no_judge(viva: Viva, folder: Path) -> None:
    shown = metrics(viva, metric="repetition")
    assert [line.split()[:3] for line in shown.splitlines() if line.startswith("loop")] == [["loop", "10", "100.0%"]]


def test_requests_are_answered_by_others_in_two_rounds_and_kept(viva: Viva, folder: Path) -> None:
    command = ("--judge", "openai:reader", "--defects", "insult", "--max-samples", "2")
    answers: list[str] = []
    for number in range(2):
        metrics(
            viva,
            *command,
            "--export-requests",
            f"r{number}.jsonl",
            *(("--import-responses", "a.jsonl") if number else ()),
        )
        for line in Path(f"r{number}.jsonl").read_text().splitlines():
            said: dict[str, Any] = {
                "reasoning": "Fine.",
                "evidence": json.loads(line)["body"]["messages"][-1]["content"].split('"')[1::2],
                "verdict": "idiot" not in line,
                "confidence": 0.9,
            }
            body = {
                "choices": [{"message": {"role": "assistant", "content": json.dumps(said)}, "finish_reason": "stop"}]
            }
            done = {
                "custom_id": json.loads(line)["custom_id"],
                "response": {"status_code": 200, "body": body},
                "error": None,
            }
            answers.append(json.dumps(done))
        Path("a.jsonl").write_text("\n".join(answers))
    found = figures(viva, *command, "--import-responses", "a.jsonl")
    assert found["metrics"][0]["detection"]["n"] == 2
    assert found["metrics"][0]["errors"] == 0
    again = figures(viva, *command, "--replay")
    assert again["metrics"][0]["edits"] == found["metrics"][0]["edits"]


def test_without_answers_it_is_inconclusive(viva: Viva, folder: Path) -> None:
    Path("talks.jsonl").write_text(
        json.dumps(
            {
                "id": "a",
                "labels": {"good": True},
                "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello there."}],
            }
        )
    )
    command = ("--judge", "openai:reader", "--on", "talks.jsonl", "--label", "good", "--defects", "insult", "--replay")
    assert "errors; viva show" in metrics(viva, *command, code=3)


def test_nothing_is_called_on_a_dry_run(viva: Viva, folder: Path) -> None:
    shown = metrics(viva, "--judge", "judge.py:sees", "--defects", "insult", "--dry-run")
    assert "judge verdicts" in shown
    assert asked(folder) == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--defects", "insults"), "no defect 'insults'; did you mean 'insult'"),
        (("--good-from", "3"), "--good-from needs --label"),
        (("--json", "--markdown"), "cannot be combined"),
        (("--on", "no.jsonl"), "no.jsonl"),
        (("--label", "good"), "no row has labels.good; name a label"),
        (("--judge", "a:b", "--judge", "c:d", "--export-requests", "x.jsonl"), "one judge at a time"),
    ],
)
def test_wrong_usage_is_told(viva: Viva, folder: Path, options: tuple[str, ...], said: str) -> None:
    done = ran(viva, "--judge", "judge.py:sees", *options, code=2)
    assert said in done.stderr


def test_a_judge_that_passes_nothing_leaves_no_conversation(viva: Viva, folder: Path) -> None:
    rows = [
        {"id": "b", "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "You idiot."}]}
    ]
    Path("talks.jsonl").write_text(json.dumps(rows[0]))
    done = ran(viva, "--judge", "judge.py:sees", "--on", "talks.jsonl", code=2)
    assert "none of 1 conversation passes" in done.stderr


def test_conversations_that_are_too_short_are_said_and_the_rest_is_stated(viva: Viva, folder: Path) -> None:
    said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello there."}]
    Path("talks.jsonl").write_text(json.dumps({"id": "a", "messages": said}))
    shown = metrics(viva, "--judge", "judge.py:sees", "--on", "talks.jsonl", "--defects", "loop,wrong_argument")
    assert "no conversation has a place for loop, wrong_argument" in shown
    assert "padding" in shown
    gated = ("--judge", "judge.py:sees", "--on", "talks.jsonl", "--defects", "loop", "--min-detection", "0.1")
    assert "no conversation has a place for loop" in ran(viva, *gated, code=3).stdout


def test_an_empty_file_is_told(viva: Viva, folder: Path) -> None:
    Path("talks.jsonl").write_text("")
    assert "talks.jsonl" in ran(viva, "--judge", "judge.py:sees", "--on", "talks.jsonl", code=2).stderr
