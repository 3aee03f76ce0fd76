from __future__ import annotations

from pathlib import Path

import pytest

from vivavoce.errors import UsageError
from vivavoce.suites.check import run_checks
from vivavoce.suites.load import load_suite

SUITE = """\
name: formats
driver: replay
dataset:
  rows:
    - id: a
      messages: [{role: user, content: Hi}, {role: assistant, content: "1"}]
      expect: {json_schema: {type: string, format: ROW}}
graders:
  fits: {kind: function, function: json_schema, config: {schema: GRADER}}
  rows: {kind: function, function: expect}
"""


def notes(tmp_path: Path, row: str, grader: str) -> list[str]:
    (tmp_path / "suite.yaml").write_text(SUITE.replace("ROW", row).replace("GRADER", grader))
    return [note for note in run_checks(load_suite(tmp_path / "suite.yaml")).prepared.suite.notes if "format" in note]


def test_the_formats_that_are_not_checked_are_named_in_rows_and_graders(tmp_path: Path) -> None:
    assert notes(tmp_path, "date", "{type: string, format: uuid}") == []
    (note,) = notes(tmp_path, "iri", "{type: object, properties: {a: {format: duration}}}")
    assert note.startswith("JSON schemas: the formats 'duration', 'iri' are not checked and accept any text; ")
    assert "checked: date, date-time" in note


def test_a_grader_whose_schema_is_not_valid_is_refused_at_its_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"suite\.yaml:9.*the JSON schema is not valid at"):
        notes(tmp_path, "date", "{type: nothing}")
