"""`viva calibrate`: from labels to gates by the corrected rate, with a judge that is asked as in real life."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from command_line import Viva
from vivavoce.store.store import Store

JUDGE = """
from vivavoce.testing import ScriptedModel

def answer(request):
    helped = "cannot" not in str(request.messages)
    return {"reasoning": "As seen.", "evidence": ["When?"], "verdict": helped, "confidence": 0.9}

model = ScriptedModel(answer, "rules")
"""
SUITE = """
name: talks
dataset: talks.jsonl
driver: replay
graders:
  helps:
    kind: metric
    metric: aspect_critic
    config: {definition: The assistant DOES.}
    model: "judge.py:model"
"""
GATE = """
gate:
  metric_key: helps
  aggregation: accuracy
  on: corrected_lower
  value: LEAST
  needs_calibration: {labels: 50, kappa: 0.2}
"""
TEXTS = [("I cannot.", False), ("At nine.", True), ("No idea.", False), ("It costs 5.", True), ("At noon.", True)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A suite of 150 recorded conversations; the judge passes 80% of them, and 60% are good."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "judge.py").write_text(JUDGE)
    (tmp_path / "suite.yaml").write_text(SUITE.replace("DOES", "answers"))
    with (tmp_path / "talks.jsonl").open("w") as file:
        for n in range(150):
            text, good = TEXTS[n % 5]
            messages = [{"role": "user", "content": "When?"}, {"role": "assistant", "content": text}]
            file.write(
                json.dumps({"id": f"t{n}", "messages": messages, "labels": {"good": good, "stars": n % 5}}) + "\n"
            )
    return tmp_path


def labels(folder: Path, number: int = 60) -> str:
    with (folder / "labels.jsonl").open("w") as file:
        for n in random.Random(3).sample(range(150), number):
            verdict = "pass" if TEXTS[n % 5][1] else "fail"
            file.write(json.dumps({"sample_id": f"t{n}", "verdict": verdict}) + "\n")
    return "labels.jsonl"


def write_gated_suite(folder: Path, least: float) -> str:
    (folder / "gated.yaml").write_text(SUITE.replace("DOES", "answers") + GATE.replace("LEAST", f"{least}"))
    return "gated.yaml"


def test_a_gate_waits_for_labels_and_then_compares_the_corrected_rate(folder: Path, viva: Viva) -> None:
    assert viva("run", "suite.yaml", "-q").returncode == 0
    waiting = viva("run", write_gated_suite(folder, 35), "-q")
    assert waiting.returncode == 3
    assert "its judge is not calibrated; calibrate it with: viva calibrate RUN --grader helps" in waiting.stdout
    output = viva("calibrate", "latest", "--grader", "helps", "--labels", labels(folder), "--random")
    assert output.returncode == 0, output.stderr
    assert "60 labels, all drawn at random" in output.stdout
    assert "80.0% pass (judge), 59." in output.stdout
    assert "saved as cal-" in output.stderr
    for least, code, verdict in ((30, 0, "pass"), (65, 1, "fail")):
        done = viva("run", write_gated_suite(folder, least), "-q")
        assert done.returncode == code, done.stdout
        assert f"{verdict} · helps: lower bound of the corrected pass rate must be ≥ {least}%; it is " in done.stdout
        assert "% corrected [" in done.stdout
        data = json.loads(viva("export", "latest", "--format", "json").stdout)
        (reason,), (grader,) = data["summary"]["reasons"], data["summary"]["graders"]
        assert reason["found"] == pytest.approx(100 * grader["corrected"]["low"])


def test_another_prompt_has_no_calibration(folder: Path, viva: Viva) -> None:
    viva("run", "suite.yaml", "-q")
    viva("calibrate", "--grader", "helps", "--label", "good")
    (folder / "gated.yaml").write_text(SUITE.replace("DOES", "answers well") + GATE.replace("LEAST", "35"))
    changed = viva("run", "gated.yaml", "-q")
    assert changed.returncode == 3
    assert "its judge is not calibrated" in changed.stdout
    assert "with another prompt, model or setting; calibrate it again" in changed.stdout


def test_a_label_of_the_dataset_needs_no_draw_where_all_have_it(folder: Path, viva: Viva) -> None:
    viva("run", "suite.yaml", "-q")
    done = viva("calibrate", "--grader", "helps", "--label", "good", "--json")
    data = json.loads(done.stdout)
    assert (data["drawn"], data["kept"], data["rates"][0]["rate"]["value"]) == (150, True, pytest.approx(0.6))
    number = viva("calibrate", "--grader", "helps", "--label", "stars")
    assert (number.returncode, "--good-from 4" in number.stderr) == (2, True)
    stars = viva("calibrate", "--grader", "helps", "--label", "stars", "--good-from", "3", "--markdown")
    assert "| judge passes | 60 | 60 |" in stars.stdout


def test_what_was_not_drawn_is_shown_and_not_kept(folder: Path, viva: Viva) -> None:
    viva("run", "suite.yaml", "-q")
    done = viva("calibrate", "--grader", "helps", "--labels", labels(folder))
    assert "60 labels of conversations that were not randomly sampled: not counted" in done.stdout
    assert "nothing was saved" in done.stderr
    dry = viva("calibrate", "--grader", "helps", "--labels", labels(folder), "--random", "--dry-run")
    assert "% corrected [" in dry.stdout
    with Store.open(".vivavoce/vivavoce.db") as store:
        assert store.calibrations.of_run(store.run("latest").id) == []


def test_conversations_are_drawn_for_people(folder: Path, viva: Viva) -> None:
    viva("run", "suite.yaml", "-q")
    done = viva("calibrate", "--grader", "helps", "--draw", "30", "--people", "Ida, Olu")
    assert "30 conversations sampled into queue q-" in done.stdout
    assert "Ida 15, Olu 15" in done.stdout
    with Store.open(".vivavoce/vivavoce.db") as store:
        (queue,) = store.queues.all()
        assert (queue.selection, queue.blind, queue.items) == ("weighted", True, 30)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--labels", "a", "--label", "good"], "cannot be combined"),
        (["--good-from", "3"], "--good-from needs --label"),
        (["--random"], "labels from the pages record how they were sampled"),
        (["--json", "--markdown"], "cannot be combined"),
        (["--draw", "3"], "must be used together"),
        (["--people", "Ida"], "must be used together"),
        (["--draw", "3", "--people", "Ida", "--json"], "shows no figures"),
        (["--labels", "nowhere.jsonl"], "nowhere.jsonl"),
        (["--labels", "labels.csv"], "JSON Lines"),
        (["--draw", "3", "--people", "Ida,Ida"], "each once"),
    ],
)
def test_wrong_options_are_said(folder: Path, viva: Viva, options: list[str], complaint: str) -> None:
    viva("run", "suite.yaml", "-q")
    (folder / "labels.csv").write_text("sample_id,verdict\nt0,pass\n")
    done = viva("calibrate", "--grader", "helps", *options)
    assert done.returncode == 2
    assert complaint in done.stderr


def test_a_grader_or_run_that_is_not_there_is_named(folder: Path, viva: Viva) -> None:
    viva("run", "suite.yaml", "-q")
    assert "did you mean 'helps'" in viva("calibrate", "--grader", "help").stderr
    assert viva("calibrate", "nobody", "--grader", "helps").returncode == 2


@pytest.mark.parametrize(
    "gate",
    [
        "{metric_key: helps, aggregation: avg_score, on: corrected, value: 0.5}",
        "{metric_key: helps, aggregation: accuracy, on: corrected_lower, value: 50, pass_threshold: 0.5}",
        "{kind: weighted_average, weights: {helps: 1}, aggregation: accuracy, on: corrected, value: 50}",
        "{metric_key: helps, value: 0.5, needs_calibration: {labels: 0}}",
    ],
)
def test_a_gate_that_cannot_be_is_refused_before_anything_runs(folder: Path, viva: Viva, gate: str) -> None:
    (folder / "wrong.yaml").write_text(SUITE.replace("DOES", "answers") + f"gate: {gate}\n")
    assert viva("validate", "wrong.yaml").returncode == 2
