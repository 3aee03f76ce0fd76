"""Recorded successes of tau-bench in which something was changed, one of each task, shortest first.

    python bench/prompts/short.py > short.jsonl
    viva metrics test coherence --on short.jsonl --label success --max-samples 4 --judge openai:reader \\
        --export-requests requests.jsonl
"""

from __future__ import annotations

import json
from typing import Any

from sets import DATA, SETS

from vivavoce.metrics.ledger import may_change

Row = dict[str, Any]


def successes() -> list[Row]:
    """Return the shortest successful conversation with a change for each task."""
    rows = map(json.loads, (DATA / SETS["tau_bench"].file).read_text(encoding="utf-8").splitlines())
    good = [row for row in rows if row["labels"]["success"] and any(map(may_change, _list_calls(row)))]
    shortest: dict[str, Row] = {}
    for row in sorted(good, key=lambda row: len(json.dumps(row["messages"]))):
        shortest.setdefault(row["id"].rpartition("/")[0], row)
    return list(shortest.values())


def _list_calls(row: Row) -> list[str]:
    return [call["name"] for message in row["messages"] for call in message.get("tool_calls") or ()]


if __name__ == "__main__":
    for row in successes():
        print(json.dumps(row))
