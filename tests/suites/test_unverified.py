"""Verdicts on evidence that is not in the conversation are counted everywhere, and a gate may allow none."""

from __future__ import annotations

from pathlib import Path

import pytest

from vivavoce.distributed.part_file import PartFile, read_part, write_part  # pyright: ignore[reportUnusedImport]
from vivavoce.report.reasons import explained
from vivavoce.report.unverified import unverified_lines
from vivavoce.run.options import RunOptions
from vivavoce.suites.opening import run_suite

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


@pytest.mark.parametrize(("more", "verdict"), [("", "pass"), (", max_unverified: 1", "pass"), (", max_unverified: 0", "fail")])
def test_they_are_counted_and_a_gate_may_allow_so_many(
    more: str, verdict: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("judge.py").write_text(JUDGE)
    Path("suite.yaml").write_text(SUITE.format(more=more))
    summary = run_suite("suite.yaml", RunOptions(), store="kept.db").summary
    assert (summary.verdict, summary.grader("polite").unverified) == (verdict, 1)
    assert list(unverified_lines(summary)) == ["polite: 1 verdict rests on unverified evidence"]
    assert any("1 of 2 verdicts rest on unverified evidence; none may" in line for line in explained(summary)) == (
        verdict == "fail"
    )


def test_a_schema_is_checked_and_the_formats_that_are_not_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    E
sed -i '/part_file import/d; /^def test_a_schema_is_checked/,$d' tests/suites/test_unverified.py
cat > tests/suites/test_schema_formats.py <<'E'
from __future__ import annotations

from pathlib import Path

import pytest

from vivavoce.errors import UsageError
from vivavoce.suites.check import checked
from vivavoce.suites.load import load_suite

SUITE = """\
name: formats
driver: replay
dataset:
  rows:
    - {id: a, messages: [{role: user, content: Hi}, {role: assistant, content: "1"}], expect: {json_schema: {type: string, format: ROW}}}
graders:
  fits: {kind: function, function: json_schema, config: {schema: GRADER}}
  rows: {kind: function, function: expect}
"""


def notes(tmp_path: Path, row: str, grader: str) -> list[str]:
    (tmp_path / "suite.yaml").write_text(SUITE.replace("ROW", row).replace("GRADER", grader))
    return [note for note in checked(load_suite(tmp_path / "suite.yaml")).prepared.suite.notes if "format" in note]


def test_the_formats_that_are_not_checked_are_named_in_rows_and_graders(tmp_path: Path) -> None:
    assert notes(tmp_path, "date", "{format: uuid}") == []
    (note,) = notes(tmp_path, "iri", "{properties: {a: {format: duration}}}")
    assert note.startswith("JSON schemas: the formats 'duration', 'iri' are not checked and accept any text; checked are ")
    assert "date-time" in note


def test_a_grader_whose_schema_is_not_valid_is_refused_at_its_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"suite\.yaml:7.*the JSON schema is not valid at"):
        notes(tmp_path, "date", "{type: nothing}")
