"""Verdicts on evidence that is not in the conversation are counted everywhere, and a gate may allow none."""

from __future__ import annotations

from pathlib import Path

import pytest

from vivavoce.report.verdict import explain_verdict, unverified_lines
from vivavoce.run.options import RunOptions
from vivavoce.suites.experiment import run_suite

JUDGE = """\
from vivavoce.testing import ScriptedModel

def answer(request):
    text = request.messages[1].text
    polite = "rude" not in text
    quote = "Never said by anybody." if "bad quote" in text else "So long"
    return {"reasoning": "r", "evidence": [quote], "verdict": polite, "confidence": 1.0}

judge = ScriptedModel(answer)
"""
SUITE = """\
name: counted
driver: replay
dataset:
  rows:
    - {{id: a, messages: [{{role: user, content: Hi}}, {{role: assistant, content: So long}}]}}
    - {{id: b, messages: [{{role: user, content: Hi}}, {{role: assistant, content: "rude, bad quote"}}]}}
graders:
  polite: {{kind: metric, metric: aspect_critic, model: "judge.py:judge", config: {{definition: It is polite.}}}}
gate: {{kind: simple, metric_key: polite, aggregation: accuracy, value: 50{more}}}
"""


@pytest.mark.parametrize(
    ("more", "verdict"), [("", "pass"), (", max_unverified: 1", "pass"), (", max_unverified: 0", "fail")]
)
def test_they_are_counted_and_a_gate_may_allow_so_many(
    more: str, verdict: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("judge.py").write_text(JUDGE)
    Path("suite.yaml").write_text(SUITE.format(more=more))
    summary = run_suite("suite.yaml", RunOptions(), store="kept.db").summary
    assert (summary.verdict, summary.grader("polite").unverified) == (verdict, 1)
    assert list(unverified_lines(summary)) == ["polite: 1 verdict rests on unverified evidence"]
    assert any(
        "1 of 2 verdicts rest on unverified evidence; allowed: 0" in line for line in explain_verdict(summary)
    ) == (verdict == "fail")


@pytest.mark.parametrize("limit", [1, 0])
@pytest.mark.parametrize(
    ("gate", "otherwise"),
    [
        ("{{kind: simple, metric_key: polite, value: 0{more}}}", "pass"),
        ("{{kind: samples, metric_key: polite, min_pass: 1{more}}}", "fail"),
        ("{{kind: weighted_average, weights: {{polite: 1, calm: 1}}, value: 0{more}}}", "pass"),
        ("{{kind: logical, operator: or, conditions: [{{metric_key: polite, value: 0, kind: simple}}]{more}}}", "pass"),
        (
            "{{kind: logical, operator: and, conditions: [{{metric_key: polite, value: 0, kind: simple{more}}}]}}",
            "pass",
        ),
    ],
)
def test_every_kind_of_gate_may_limit_them(
    gate: str, otherwise: str, limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("judge.py").write_text(JUDGE)
    head = SUITE.format(more="").partition("gate:")[0]
    both = head.replace("graders:\n", "graders:\n  calm: {kind: function, function: ascii_printable_only}\n")
    Path("suite.yaml").write_text(f"{both}gate: {gate.format(more=f', max_unverified: {limit}')}\n")
    summary = run_suite("suite.yaml", RunOptions(), store="kept.db").summary
    assert summary.grader("polite").unverified == 1
    assert summary.verdict == (otherwise if limit else "fail")
    assert [reason.code for reason in summary.reasons].count("unverified") == (0 if limit else 1)
