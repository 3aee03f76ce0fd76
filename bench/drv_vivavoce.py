"""The same work as every driver of `../shared/bench`: judge N conversations, CONC at a time, and keep what came out.

`compare.py` there starts it with N, CONC and MODE, and says in the environment where the server and the conversations
are. In the mode `cached` every answer has been kept before. Whatever is loaded once is loaded before the meter starts,
as it is for the others.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

from fake_server import QUOTE, Goal

from vivavoce import evaluate
from vivavoce.models.openai import OpenAIModel
from vivavoce.wire.http import Limits

CONVERSATIONS = Path(os.environ["BENCH_CONVERSATIONS"])
sys.path.insert(0, str(CONVERSATIONS.parent.parent))
meter = import_module("h")
if find_spec("uvloop"):
    import_module("uvloop")
for lazy in ("aiohttp", "sqlalchemy.dialects.sqlite.pysqlite"):
    import_module(lazy)


def main() -> None:
    """Judge them, and let the meter print what that took."""
    with CONVERSATIONS.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in islice(lines, meter.N)]
    metric = Goal(OpenAIModel(meter.MODEL, base_url=meter.BASE, api_key="sk-x", limits=Limits(concurrency=meter.CONC)))
    for row in rows:
        row["turns"][-1]["content"] += f" {QUOTE}"
    arguments = [{"id": row["id"], "goal": row["goal"], "messages": row["turns"]} for row in rows]
    with tempfile.TemporaryDirectory() as folder:
        store = f"{folder}/store.db"
        if meter.MODE == "cached":
            evaluate(arguments, [metric], max_concurrent=meter.CONC, store=store)
        with meter.M("vivavoce") as measured:
            result = evaluate(arguments, [metric], max_concurrent=meter.CONC, store=store)
            measured.ok = result.summary.grader(metric.name).scored


if __name__ == "__main__":
    main()
