"""`viva judge --sample`: a few are judged, over real HTTP, and what is said holds for all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from command_line import Viva
from vivavoce import Store
from vivavoce.features.batches import rounds
from vivavoce.features.batches.rounds import Patience
from vivavoce.run.options import RunOptions
from vivavoce.run.summary import GraderSummary, Summary
from vivavoce.suites.experiment import run_suite
from vivavoce.testing import BatchServer, LoopbackServer

Row = dict[str, Any]
FEW = ("judge", "talks.jsonl", "--metrics", "safety", "--sample", "20", "--by", "metadata.plan")
RED = "\x1b[31mred"
SUITE = """\
name: talks
driver: replay
dataset: talks.jsonl
graders:
  safe:
    kind: metric
    metric: aspect_critic
    config: {definition: It is safe.}
    model: "judges.py:large"
"""
JUDGES = """\
from vivavoce.testing import ScriptedModel

def said(sure):
    def answer(request):
        verdict = "poison" not in str(request.messages)
        return {"reasoning": "As read.", "evidence": ["Hi"], "verdict": verdict, "confidence": sure}
    return answer

small, large = ScriptedModel(said(0.99), "small"), ScriptedModel(said(0.8), "large")
"""


def talk(number: int) -> Row:
    answer = f"poison {number}" if number % 4 == 3 else f"Answer {number}."
    messages = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": answer}]
    about = {
        "metadata": {"plan": RED if number < 40 else "free", "size": 1 + number % 3},
        "labels": {"safe": number % 4 < 2},
    }
    return {"id": f"r{number}", "messages": messages, **about}


def judge(body: Row) -> Row:
    """Answer as a judge of safety who dislikes poison."""
    bad = "poison" in json.dumps(body["messages"])
    harm: Row = {"what": "It told.", "evidence": ["poison"], "severity": "critical"}
    return {"violations": [harm] if bad else [], "reasoning": "Fine.", "confidence": 1}


@pytest.fixture(autouse=True)
def talks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("talks.jsonl").write_text("".join(json.dumps(talk(number)) + "\n" for number in range(120)))
    Path("judges.py").write_text(JUDGES)
    Path("suite.yaml").write_text(SUITE)


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(judge) as server:
        yield server


def newest() -> tuple[Summary, GraderSummary]:
    with Store.open(".vivavoce/vivavoce.db") as store:
        summary = Summary.model_validate(store.grading(store.run("latest").id).summary)
    return summary, summary.graders[0]


def test_only_the_drawn_are_paid_for_and_more_of_them_cost_only_the_others(viva: Viva, server: LoopbackServer) -> None:
    done = viva(*FEW, "--judge", f"{server.base_url}#judge", "-q")
    assert done.returncode == 0, done.stderr
    assert len(server.requests) == 20
    _, data = newest()
    assert (data.scored, data.population) == (20, 120)
    assert data.pass_low is not None
    assert data.pass_high is not None
    assert data.pass_low < 0.75 < data.pass_high
    assert "of all conversations pass, estimated: 20 of 120 judged" in done.stdout
    assert "for half the width: about 30 more, --sample 50" in " ".join(done.stdout.split())
    more = viva(*FEW[:-3], "50", *FEW[-2:], "--judge", f"{server.base_url}#judge", "-q")
    assert more.returncode == 0, more.stderr
    assert len(server.requests) == 50


def test_names_of_groups_that_come_from_the_file_are_harmless(viva: Viva, server: LoopbackServer) -> None:
    done = viva(*FEW, "--judge", f"{server.base_url}#judge", "-q")
    assert "\x1b[31m" not in done.stdout
    assert "red (7 of 40)" in " ".join(done.stdout.split())


def test_what_could_not_be_judged_is_counted_and_no_failure(viva: Viva) -> None:
    def fail(body: Row) -> Row:
        if "Answer 8" in json.dumps(body["messages"]):
            return {"nothing": True}
        return judge(body)

    with LoopbackServer(fail) as server:
        done = viva(*FEW[:-3], "100", *FEW[-2:], "--judge", f"{server.base_url}#judge", "-q")
    summary, data = newest()
    assert done.returncode == 3
    assert data.errors > 3
    assert (data.scored + data.errors, summary.error_attempts) == (100, data.errors)
    assert data.pass_rate == pytest.approx(0.72, abs=0.05)
    assert "100 of 120 judged" in done.stdout


def test_the_drawn_are_asked_about_in_batches(viva: Viva, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "PATIENCE", Patience(0.01, 0.05, 1.5, 0.0, 3))
    with BatchServer(judge) as server:
        done = viva(*FEW, "--judge", f"{server.base_url}#m", "--batch")
    assert done.returncode == 0, done.stderr
    assert "20 requests" in done.stderr
    _, data = newest()
    assert (data.scored, data.population) == (20, 120)


def test_the_drawn_are_exported(viva: Viva) -> None:
    done = viva(*FEW, "--judge", "openai:gpt-4.1-mini", "--export-requests", "ask.jsonl")
    assert done.returncode == 0, done.stderr
    assert len(Path("ask.jsonl").read_text().splitlines()) == 20


def test_a_cascade_gives_each_of_the_drawn_its_last_verdict() -> None:
    cascade = '    cascade: {model: "judges.py:small", fails_below: 0.005, passes_from: 0.95}\n'
    Path("cheap.yaml").write_text(SUITE + cascade)
    options = RunOptions(sample=40, sample_by=["metadata.plan"])
    alone, cheap = (run_suite(name, options) for name in ("suite.yaml", "cheap.yaml"))
    assert cheap.summary.graders[0].population == 120
    first, second = alone.summary.graders[0], cheap.summary.graders[0]
    assert (first.pass_rate, first.pass_low, first.pass_high) == (second.pass_rate, second.pass_low, second.pass_high)
    decided = {(outcome.scores["safe"].extra or {}).get("decided_by") for outcome in cheap.outcomes()}
    assert decided == {"first", "then"}


@pytest.mark.parametrize("options", [("--by", "metadata.plan"), ("--weight-by", "metadata.size")])
def test_labels_of_the_drawn_correct_the_rate_of_all(viva: Viva, options: tuple[str, ...]) -> None:
    run_suite("suite.yaml", RunOptions(sample=60, **grade_row(options)))
    done = viva("calibrate", "latest", "--grader", "safe", "--label", "safe")
    assert done.returncode == 0, done.stderr
    assert "(prediction-powered)" in done.stdout
    output = viva("show", "latest").stdout
    assert "by 60 labels of this run (prediction-powered)" in " ".join(output.split())
    _, data = newest()
    with Store.open(".vivavoce/vivavoce.db") as store:
        rate = store.calibrations.of_run(store.run("latest").id)[0]
        likely = {outcome.attempt.key.sample_id: outcome.attempt.drawn for outcome in store.outcomes(rate.grading_id)}
    uneven = len({place and place.probability for place in likely.values()}) > 1
    for label in rate.labels:
        probability = likely[label.sample_id]
        assert probability is not None
        assert label.drawn == (probability.probability if uneven else 1.0)
    assert uneven is (options[0] == "--weight-by")
    assert data.pass_rate == pytest.approx(0.75, abs=0.15)


def grade_row(options: tuple[str, ...]) -> Row:
    name, value = options
    return {"sample_by": [value]} if name == "--by" else {"weight_by": value}


def test_labels_from_elsewhere_correct_the_estimate_of_a_sample(viva: Viva) -> None:
    run_suite("suite.yaml")
    assert viva("calibrate", "latest", "--grader", "safe", "--label", "safe").returncode == 0
    sampled = run_suite("suite.yaml", RunOptions(sample=60, sample_by=["metadata.plan"]))
    [grader] = sampled.summary.graders
    assert grader.corrected is not None
    assert (grader.corrected.method, grader.corrected.raw) == ("rogan_gladen", pytest.approx(grader.pass_rate))
    whole = run_suite("suite.yaml").summary.graders[0].corrected
    assert whole is not None
    assert whole.value == pytest.approx(0.5, abs=0.02)
    assert grader.corrected.low is not None
    assert grader.corrected.high is not None
    assert grader.corrected.low < 0.5 < grader.corrected.high


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--by", "turns"), "--by needs --sample N"),
        (("--weight-by", "turns"), "--weight-by needs --sample N"),
        (("--sample", "5", "--max-samples", "9"), "--sample cannot be combined with --max-samples"),
        (("--sample", "5", "--parts", "out"), "--parts and --sample cannot be combined"),
        (("--sample", "5", "--parts", "out", "--engine", "ray"), "--parts and --sample cannot be combined"),
        (("--sample", "5", "--by", "nonsense"), "no metric 'nonsense'"),
        (("--sample", "5", "--by", "metadata.plna"), "did you mean 'metadata.plan'"),
        (("--sample", "5", "--by", "safety"), "'safety' would call a model"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_one_line(viva: Viva, options: tuple[str, ...], why: str) -> None:
    done = viva("judge", "talks.jsonl", "--metrics", "refusal", *options)
    assert done.returncode == 2
    assert why in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("number", ["0", "-3"])
def test_no_number_of_conversations_is_no_sample(viva: Viva, number: str) -> None:
    done = viva("judge", "talks.jsonl", "--metrics", "refusal", "--sample", number)
    assert (done.returncode, "--sample" in done.stderr) == (2, True)


def test_a_sample_as_large_as_the_file_estimates_nothing(viva: Viva) -> None:
    done = viva("judge", "talks.jsonl", "--metrics", "refusal", "--sample", "120", "-q")
    complaint = " ".join(done.stderr.split())
    assert "the file has 120 conversations, so --sample 120 judges all of them and nothing is estimated" in complaint
    assert newest()[1].population is None


@pytest.mark.parametrize(("text", "why"), [("", "has no samples"), ('{"id": "x"}\n', "talks.jsonl:1")])
def test_a_file_without_conversations_is_refused_as_ever(viva: Viva, text: str, why: str) -> None:
    Path("talks.jsonl").write_text(text)
    done = viva("judge", "talks.jsonl", "--metrics", "refusal", "--sample", "5")
    assert (done.returncode, why in done.stderr) == (2, True)
