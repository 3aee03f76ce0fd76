"""Three-turn conversations with five assertions in each row, recorded ones and with a function, beside a bare loop."""

from __future__ import annotations

import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from replay import WORDS

COUNT = 10_000
SUITE = "name: expect\ndriver: replay\ndataset: rows.jsonl\n"
ASKING = "name: asking\ntarget: {kind: function, function: bot.py:reply}\ndataset: asked.jsonl\n"
BOT = """def reply(message):
    order = message.rsplit(maxsplit=1)[1]
    return f"answer to order {order}, EUR {int(order) % 100}.50 {order}"
"""


def write(folder: Path) -> Path:
    """Write a dataset in which no two rows expect the same, and suites that replay and that ask; return the first."""
    draw = random.Random(3)
    with (folder / "rows.jsonl").open("w") as out, (folder / "asked.jsonl").open("w") as request:
        for i in range(COUNT):
            talk: list[dict[str, str]] = []
            for turn in range(3):
                talk.append({"role": "user", "content": " ".join(draw.choices(WORDS, k=15))})
                text = f"answer {turn} to order {i}, EUR {i % 100}.50 " + " ".join(draw.choices(WORDS, k=25))
                talk.append({"role": "assistant", "content": f"{text} {i}"})
            expect = [
                [{"contains": f"order {i}"}, {"not_contains": "voucher"}],
                [{"regex": r"EUR \d+\.\d\d"}, {"numeric": i, "tolerance": 0.01}],
                {"no_call": True},
            ]
            out.write(json.dumps({"id": f"c{i}", "messages": talk, "expect": expect}) + "\n")
            questions = [f"{message['content']} {i}" for message in talk[::2]]
            request.write(json.dumps({"id": f"c{i}", "input": questions, "expect": expect}) + "\n")
    (folder / "bot.py").write_text(BOT)
    (folder / "asking.yaml").write_text(ASKING)
    suite = folder / "suite.yaml"
    suite.write_text(SUITE)
    return suite


def bare_loop(file: Path) -> float:
    """Do the same without the package: read, check each turn, write; return seconds of the processor."""
    started = time.process_time()
    with file.open() as rows, file.with_suffix(".out").open("w") as out:
        for line in rows:
            row = json.loads(line)
            answers = [m["content"] for m in row["messages"] if m["role"] == "assistant"]
            first, second, third = row["expect"]
            conversations = [
                first[0]["contains"].lower() in answers[0].lower(),
                first[1]["not_contains"].lower() not in answers[0].lower(),
                re.search(second[0]["regex"], answers[1]) is not None,
                abs(float(re.findall(r"\d+(?:\.\d+)?", answers[1])[-1]) - second[1]["numeric"]) <= 0.01,
                third["no_call"] and not any("tool_calls" in m for m in row["messages"][4:]),
            ]
            out.write(
                json.dumps({"id": row["id"], "messages": row["messages"], "score": sum(conversations) / 5}) + "\n"
            )
    return time.process_time() - started


def measure_seconds(what: str, suite: Path) -> float:
    """Check or run a suite in a process of its own; return seconds of the processor, start included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, __file__, what, str(suite)], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def child(what: str, suite: str) -> None:
    """Check or run the suite."""
    from vivavoce import run_suite
    from vivavoce.cli.main import app

    if what == "run":
        assert run_suite(suite).exit_code == 0
    else:
        app(["validate", suite], standalone_mode=False)


def main() -> None:
    """Measure the run and the check; seconds of the processor, so that a busy machine changes less."""
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        suite = write(Path(name))
        bare = bare_loop(suite.with_name("rows.jsonl"))
        running, checking = measure_seconds("run", suite), measure_seconds("validate", suite)
        asking = measure_seconds("run", suite.with_name("asking.yaml"))
        print(f"{COUNT:,} rows with five assertions: bare loop {COUNT / bare:,.0f}/s")
        print(f"  run in {running:.2f} s = {COUNT / running:,.0f}/s (asked: ≥ 3,000/s), × {running / bare:.1f}")
        print(f"  run, asking a function, in {asking:.2f} s = {COUNT / asking:,.0f}/s, × {asking / bare:.1f}")
        print(f"  viva validate in {checking:.2f} s (asked: < 2 s), × {checking / bare:.1f}")


if __name__ == "__main__":
    child(*sys.argv[1:]) if len(sys.argv) > 1 else main()
