"""`viva calibrate cascade`: from two judges and labels to a suite with a cascade and a corrected rate."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest

from command_line import Viva
from vivavoce.suites.experiment import run_suite

JUDGES = """
import re

from vivavoce.models.model import ModelReply
from vivavoce.records.score import Usage
from vivavoce.testing import ScriptedModel


class Priced(ScriptedModel):
    def __init__(self, answer, name, cost):
        super().__init__(answer, name)
        self.cost = cost

    async def complete(self, request):
        reply = await super().complete(request)
        usage = Usage(input_tokens=100, calls=1, cost=self.cost)
        return ModelReply(reply.text, reply.parsed, reply.tool_calls, usage=usage)


EVIDENCE = ["yes", "no", "hi"]


def said(verdict, sure):
    return {"reasoning": "As seen.", "evidence": EVIDENCE, "verdict": verdict, "confidence": sure}


def quick(request):
    good, sure = re.search(r"(yes|no) ([01]\\.\\d+)", str(request.messages)).groups()
    return said(good == "yes", float(sure))


def careful(request):
    return said("right" in str(request.messages), 0.9)


small, large = Priced(quick, "small", 0.1), Priced(careful, "large", 1.0)
free, other = Priced(quick, "free", None), Priced(careful, "other", 1.0)
flat = Priced(lambda _: said(True, 0.7), "flat", 0.1)
"""
GRADER = """\
  NAME: {kind: metric, metric: aspect_critic, config: {definition: It is so.}, model: "judges.py:MODEL"MORE}
"""
HEAD = "name: talks\ndataset: talks.jsonl\ndriver: replay\ngraders:\n"


def grader(name: str, model: str, more: str = "") -> str:
    return GRADER.replace("NAME", name).replace("MODEL", model).replace("MORE", more)


@pytest.fixture(scope="module")
def graded_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Grade 300 recorded conversations by all judges, in a folder that tests copy.

    The small judge is right as often as it is sure.
    """
    folder = tmp_path_factory.mktemp("graded")
    (folder / "judges.py").write_text(JUDGES)
    graders = "".join(grader(each, each) for each in ("small", "large", "free", "other", "flat"))
    (folder / "suite.yaml").write_text(HEAD + graders + "  brief: {kind: metric, metric: refusal}\n")
    chance = random.Random(5)
    with (folder / "talks.jsonl").open("w") as file:
        for n in range(300):
            good = chance.random() < 0.6
            sure = round(chance.betavariate(2.5, 1) * 0.5 + 0.5, 2)
            says = good if chance.random() < sure else not good
            right = good if chance.random() < 0.93 else not good
            text = f"{'yes' if says else 'no'} {sure:.2f} {'right' if right else 'wrong'}"
            messages = [{"role": "user", "content": "When?"}, {"role": "assistant", "content": text}]
            labels = {"good": good, "all": True, "stars": 5 if good else 1}
            file.write(json.dumps({"id": f"t{n}", "messages": messages, "labels": labels}) + "\n")
    run_suite(folder / "suite.yaml", store=str(folder / ".vivavoce" / "vivavoce.db"))
    return folder


@pytest.fixture(autouse=True)
def copy_graded(graded_once: Path, tmp_path: Path) -> None:
    """Have the suite and its graded run in the folder of the test."""
    shutil.copytree(graded_once, tmp_path, dirs_exist_ok=True)


EXPECTED = """
on the held-out labels  escalated    cost  accuracy   95% interval      κ   95% interval
small alone                     –   10.0%     0.887  0.827 … 0.929  0.768  0.644 … 0.853
large alone                100.0%  100.0%     0.914  0.858 … 0.949  0.823  0.708 … 0.895
the cascade                 38.4%   48.4%     0.934  0.882 … 0.964  0.860  0.752 … 0.923

small: fails below 0.05 and passes from 0.7; large decides the rest
note: on the held-out labels, the agreement of the cascade is within the 95% intervals of large
note: small alone is within the interval of large on the held-out labels: label more to distinguish them

replace both graders with this one, and calibrate it like any other judge:
  large:
    …
    cascade: {model: "judges.py:small", fails_below: 0.05, passes_from: 0.7}
"""


def test_thresholds_are_chosen_on_one_half_and_reported_on_the_other(viva: Viva) -> None:
    result = viva("cascade", "--first", "small", "--then", "large", "--label", "good")
    assert result.returncode == 0, result.stderr
    head, table = result.stdout.split("\n", 1)
    assert head.startswith("small, then large of run talks-")
    assert head.endswith(": 300 labels, 149 to choose thresholds and 151 to report")
    assert table == EXPECTED


def test_the_line_makes_a_judge_that_is_calibrated_like_any_other(viva: Viva) -> None:
    report = json.loads(viva("cascade", "--first", "small", "--then", "large", "--label", "good", "--json").stdout)
    assert (report["fails_below"], report["passes_from"], report["held"], report["why"]) == (0.05, 0.7, True, None)
    Path("cheap.yaml").write_text(HEAD + grader("helps", "large", f", {report['line']}"))
    assert "at most 600 judge verdicts" in viva("run", "cheap.yaml", "--dry-run").stdout
    assert viva("run", "cheap.yaml", "-q").returncode == 0
    (row,) = [row for row in report["rows"] if row["name"] == "cascade"]
    data = json.loads(viva("calibrate", "--grader", "helps", "--label", "good", "--json").stdout)
    assert (data["kept"], data["drawn"]) == (True, 300)
    (accuracy,) = [figure["value"] for figure in data["figures"] if figure["name"] == "accuracy"]
    assert accuracy == pytest.approx(row["accuracy"]["value"], abs=0.05)
    (rate,) = [rate["rate"] for rate in data["rates"]]
    good = sum(json.loads(line)["labels"]["good"] for line in Path("talks.jsonl").read_text().splitlines()) / 300
    assert (rate["value"], rate["method"]) == (pytest.approx(good), "prediction_powered")
    again = viva("run", "cheap.yaml", "-q").stdout
    assert f"{good:.1%} corrected [" in again
    other = viva("run", "suite.yaml", "-q")
    assert "corrected [" not in other.stdout


def test_without_a_price_costs_are_tokens_of_the_large_judge(viva: Viva) -> None:
    result = viva("cascade", "--first", "free", "--then", "large", "--label", "stars", "--good-from", "3")
    note = "a price is unknown, so costs are shares of the tokens of large; free also uses 100% as many tokens"
    assert f"\nnote: {note}\n" in result.stdout
    rows = [line.split() for line in result.stdout.splitlines()[2:6]]
    assert [row[:5] for row in (rows[1], rows[3])] == [
        ["free", "alone", "–", "–", "0.887"],
        ["the", "cascade", "38.4%", "38.4%", "0.934"],
    ]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--first", "small", "--then", "small"], "small and small are the same judge"),
        (["--first", "smell", "--then", "large"], "no grader 'smell' in run talks-"),
        (["--first", "small", "--then", "lorge"], "did you mean 'large'?"),
        (["--first", "small", "--then", "large", "--good-from", "3"], "--good-from needs --label"),
        (["--first", "small", "--then", "large", "--random"], "--random is for --labels and --label"),
        (["--first", "small", "--then", "large", "--labels", "no.jsonl"], "no.jsonl: there is no such file"),
        (
            ["--first", "small", "--then", "large", "--label", "stars"],
            "set the lowest good value",
        ),
    ],
)
def test_what_cannot_be_compared_is_said_in_one_line(viva: Viva, options: list[str], sentence: str) -> None:
    result = viva("cascade", *options)
    assert (result.returncode, result.stdout) == (2, "")
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            ["--then", "large", "--label", "all"],
            "no thresholds chosen: people pass every conversation used to choose thresholds",
        ),
        (["--then", "large", "--labels", "few.jsonl", "--random"], "no thresholds chosen: too few labels, 3: "),
        (
            ["--then", "large", "--labels", "some.jsonl"],
            "no thresholds chosen: no randomly sampled conversation has a label",
        ),
        (["--then", "free", "--label", "good"], "small and free give the same verdict on every labelled conversation"),
        (["--then", "flat", "--label", "good"], "no thresholds chosen: small costs as much as flat"),
        (["--then", "large", "--label", "good", "--cost", "0.1"], "cost 10% of it or less; the cheapest cost "),
        (["--then", "brief", "--label", "good"], "no thresholds chosen: brief uses no model, so it costs nothing"),
        (["--first", "flat", "--then", "large", "--label", "good"], "chosen: flat gives 0.7 for every labelled"),
    ],
)
def test_where_nothing_can_be_chosen_a_sentence_says_why(viva: Viva, options: list[str], sentence: str) -> None:
    label = {"sample_id": "t0", "verdict": "pass"}
    lines = [json.dumps({**label, "sample_id": f"t{n}"}) + "\n" for n in range(3)]
    Path("few.jsonl").write_text("".join(lines))
    Path("some.jsonl").write_text("".join(lines))
    first_option = [] if "--first" in options else ["--first", "small"]
    result = viva("cascade", *first_option, *options)
    assert (result.returncode, result.stderr) == (0, "")
    assert sentence in result.stdout
    assert "write under graders" not in result.stdout
