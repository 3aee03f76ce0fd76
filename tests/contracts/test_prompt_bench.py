"""The bench for prompts: labelled sets as rows, requests, the answers of readers, tables."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from recordings import needs_recordings
from vivavoce.samples.sample import Sample

BENCH = Path(__file__).parents[2] / "bench" / "prompts"
ITEMS = ("answers", "transitions", "consistency", "clarity")
SETS = {"tau_bench": 200, "usr": 360, "diasafety": 2192, "xstest": 2250, "taskmaster": 1614}
LABELS = {"tau_bench": "reached", "usr": "overall", "diasafety": "safe", "xstest": "answered", "taskmaster": "good"}


def bench(script: str, *arguments: object) -> str:
    command = [sys.executable, str(BENCH / script), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def read(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@needs_recordings
@pytest.mark.parametrize("name", SETS)
def test_a_set_becomes_labelled_rows_in_two_halves_that_share_no_task(name: str) -> None:
    rows = read(bench("sets.py", name))
    assert len(rows) == SETS[name]
    assert all(LABELS[name] in row["labels"] for row in rows)
    samples = [Sample.model_validate(row) for row in rows]
    assert len({(sample.id, sample.trial) for sample in samples}) == len(rows)
    halves = [{sample.id for sample in samples if sample.tags == [half]} for half in ("choose", "report")]
    assert halves[0] & halves[1] == set()
    assert abs(len(halves[0]) - len(halves[1])) <= 1


@needs_recordings
def test_the_same_seed_chooses_the_same_rows_and_more_of_them_include_these() -> None:
    ten, again, twenty = (bench("sets.py", "usr", "--n", n).splitlines() for n in (10, 10, 20))
    assert ten == again == twenty[:10]
    assert set(ten) != set(bench("sets.py", "usr", "--n", 10, "--seed", 1).splitlines())
    assert [row["tags"] for row in read("\n".join(ten))] == [["choose"], ["report"]] * 5


@needs_recordings
def test_answers_of_readers_become_a_table_on_all_rows_and_on_each_half(tmp_path: Path) -> None:
    told = bench("run.py", "export", "coherence", tmp_path, "--n", 24)
    assert "requests.jsonl: 24 requests; tokens of one: mean" in told
    asked = read((tmp_path / "requests.jsonl").read_text())
    ratings = {row["id"]: row["labels"]["overall"] for row in read((tmp_path / "rows.jsonl").read_text())}
    plain = [{"custom_id": one["custom_id"], "answer": answer(ratings[one["sample"]])} for one in asked[:-2]]
    plain.append({"custom_id": asked[-2]["custom_id"], "answer": "It is quite coherent."})
    (tmp_path / "plain.jsonl").write_text("".join(json.dumps(line) + "\n" for line in plain))
    (tmp_path / "answers.jsonl").write_text(bench("answers.py", tmp_path / "plain.jsonl"))
    tables = bench("run.py", "table", "coherence", tmp_path, tmp_path / "answers.jsonl")
    assert tables.count("### coherence, usr, overall, ") == 3
    assert "**`coherence` beside `labels.overall`**: 22 conversations compared; 2 errors (2 `not_recorded`)" in tables
    assert re.search(r"\| Spearman \| 22 \| 0\.9\d\d \| 0\.\d+ … ", tables)
    assert "| `clarity` | 22 |" in tables
    assert "requests-round-2.jsonl: 2 requests" in bench("run.py", "export", "coherence", tmp_path, "--n", 24)


def answer(ratings: list[int]) -> dict[str, Any]:
    """Answer as a judge whose score follows ratings of 1 to 5: of the eight halves of four items, so many hold."""
    total = round((sum(ratings) / len(ratings) - 1) * 2)
    halves = [min(2, max(0, total - 2 * place)) for place in range(len(ITEMS))]
    checks: list[dict[str, Any]] = [
        {"item": item, "evidence": [], "answer": ("no", "partly", "yes")[half]}
        for item, half in zip(ITEMS, halves, strict=True)
    ]
    return {"checks": checks, "reasoning": "So it is.", "confidence": 0.8}


def test_a_line_of_a_batch_service_is_passed_on(tmp_path: Path) -> None:
    line = {"custom_id": "a" * 32, "response": None, "error": {"message": "expired"}}
    (tmp_path / "x.jsonl").write_text(json.dumps(line) + "\n")
    assert read(bench("answers.py", tmp_path / "x.jsonl")) == [line]
