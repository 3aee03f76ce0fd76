"""The bench for prompts: labelled sets as rows, requests, the answers of readers, tables."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from forked import program
from recordings import needs_recordings
from vivavoce.samples.sample import Sample
from vivavoce.testing.call_defects import CALL_DEFECTS

BENCH = Path(__file__).parents[2] / "bench" / "prompts"
ITEMS = ("answers", "transitions", "consistency", "clarity")
SETS = {"tau_bench": 200, "usr": 360, "diasafety": 2192, "xstest": 2250, "taskmaster": 1614}
LABELS = {"tau_bench": "reached", "usr": "overall", "diasafety": "safe", "xstest": "answered", "taskmaster": "good"}


def bench(script: str, *arguments: object) -> str:
    command = [program("python"), str(BENCH / script), *map(str, arguments)]
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
def test_rows_with_defects_come_in_turn_and_nothing_in_a_request_tells_which() -> None:
    rows = read(bench("sets.py", "tau_defects", "--n", 40))
    for half in ("choose", "report"):
        tagged = [row for row in rows if row["tags"] == [half]]
        counts = Counter(row["metadata"]["operator"] for row in tagged)
        assert set(counts) == {"as_recorded", *CALL_DEFECTS}
        assert max(counts.values()) - min(counts.values()) <= 1
        assert all(row["labels"]["sound"] == ("root" not in row["metadata"]) for row in tagged)
    tasks = [{row["id"].rpartition("/")[0] for row in rows if row["tags"] == [half]} for half in ("choose", "report")]
    assert tasks[0] & tasks[1] == set()
    assert not any(operator in row["id"] for row in rows for operator in counts)


def cited(row: dict[str, Any], step: str) -> dict[str, Any] | None:
    """Return what a judge that is right says of a step, None where the row has no defect."""
    mistake = row["metadata"].get(step)
    if mistake is None:
        return None
    before = row["messages"][: mistake["message"] + 1]
    calls = sum(len(message.get("tool_calls") or ()) for message in before)
    words = before[-1]["content"] if before[-1]["role"] in ("user", "assistant") else ""
    labels = {"whose": mistake["whose"], "kind": mistake["kind"]}
    return {"evidence": words or f"c{calls - 1}", "what": "It goes wrong.", **labels}


@needs_recordings
def test_a_table_says_how_often_the_planted_step_is_named(tmp_path: Path) -> None:
    bench("run.py", "export", "failure", tmp_path, "--n", 24)
    rows = {f"{row['id']}#{row['trial'] + 1}": row for row in read((tmp_path / "rows.jsonl").read_text())}
    plain: list[dict[str, Any]] = []
    for number, one in enumerate(read((tmp_path / "requests.jsonl").read_text())):
        row = rows.get(one["sample"]) or rows[f"{one['sample']}#1"]
        root, last = (cited(row, step) for step in ("root", "no_return"))
        if number % 2 and root and last:  # half of the time it is sure of the first words of the user
            root = last = {"evidence": row["messages"][1]["content"], "what": "?", "whose": "user", "kind": "other"}
        answer = {"reasoning": "So it is.", "root": root, "no_return": last, "confidence": 0.7}
        plain.append({"custom_id": one["custom_id"], "answer": answer})
    (tmp_path / "plain.jsonl").write_text("".join(json.dumps(line) + "\n" for line in plain))
    (tmp_path / "answers.jsonl").write_text(bench("answers.py", tmp_path / "plain.jsonl"))
    tables = bench("run.py", "table", "failure", tmp_path, tmp_path / "answers.jsonl")
    planted = sum("root" in row["metadata"] for row in rows.values())
    wrong = sum(line["answer"]["root"] is not None and line["answer"]["root"]["what"] == "?" for line in plain)
    share = f"{(planted - wrong) / planted:.2f}"
    assert f"{planted} of {planted} conversations with a defect have a score" in tables
    assert f"| a failure is seen | {planted} | 1.00 |" in tables
    assert f"| root: exact message | {planted} | {share} | 0." in tables
    assert f"| point of no return: exact message | {planted} | {share} | 0." in tables
    assert f"| root: kind | {planted} | {share} | 0." in tables
    assert f"| as recorded: no failure is seen | {24 - planted} | 1.00 |" in tables
    assert "### first_failure, tau_defects, sound, half report" in tables
    assert all(f"| `{operator}` |" in tables for operator in CALL_DEFECTS)


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
    assert (
        "**`coherence` compared with `labels.overall`**: 22 conversations compared; 2 errors (2 `not_recorded`)"
        in tables
    )
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
