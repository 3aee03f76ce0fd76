from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Viva

SUITE = """
name: echo
dataset: {rows: [{id: mail, input: "I am ada@example.org", ground_truth: "no"}]}
target: {kind: function, function: "bot.py:reply"}
graders: {same: {kind: function, function: contains}}
"""


@pytest.fixture(autouse=True)
def _ran(viva: Viva, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bot.py").write_text("def reply(message: str) -> str:\n    return message\n")
    Path("suite.yaml").write_text(SUITE)
    assert viva("run", "suite.yaml").returncode in (0, 1)


def test_a_row_is_printed_and_what_was_cut_is_said_apart(viva: Viva) -> None:
    done = viva("capture", "latest/mail")
    assert done.returncode == 0
    assert json.loads(done.stdout)["input"] == "I am [email 1]"
    assert done.stderr.startswith("removed: 1 e-mail; names and addresses of people are not recognised")


def test_a_row_is_added_to_a_dataset_once_and_can_be_run(viva: Viva) -> None:
    assert viva("capture", "latest/mail", "--to", "rows.jsonl").stdout == "rows.jsonl: added as 'mail'\n"
    assert viva("capture", "latest/mail", "--to", "rows.jsonl").stdout == "rows.jsonl: is there already as 'mail'\n"
    rows = '{rows: [{id: mail, input: "I am ada@example.org", ground_truth: "no"}]}'
    Path("captured.yaml").write_text(SUITE.replace(rows, "rows.jsonl"))
    assert viva("validate", "captured.yaml").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["latest"], "write RUN/SAMPLE"),
        (["latest/post"], "no sample 'post'"),
        (["latest/mail", "--target", "other"], "no target 'other'"),
        (["latest/mail", "--region", "Xx"], "unknown region 'Xx'"),
        (["latest/mail", "--to", "rows.csv"], "a row can be added to JSONL only"),
        (["latest/mail", "--to", "half.jsonl"], "half.jsonl:1"),
    ],
)
def test_mistakes_are_one_line(viva: Viva, arguments: list[str], complaint: str) -> None:
    Path("half.jsonl").write_text('{"id": ')
    done = viva("capture", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr
