"""Recorded six-turn conversations through two exact graders, everything stored, beside a bare loop."""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORDS = [
    "please",
    "refund",
    "order",
    "the",
    "it",
    "was",
    "broken",
    "thanks",
    "sorry",
    "could",
    "you",
    "check",
    "that",
    "again",
    "number",
    "of",
    "delivery",
]
SUITE = """\
name: replay
driver: replay
dataset: {file}
graders:
  contains: {{kind: tool, function: contains}}
  ascii: {{kind: tool, function: ascii_printable_only}}
"""


def write(folder: Path, count: int, per_turn: bool) -> Path:
    """Write a dataset and a suite over it; return the suite."""
    draw = random.Random(3)
    file = folder / f"{count}-{per_turn}.jsonl"
    with file.open("w") as out:
        for i in range(count):
            talk: list[dict[str, str]] = []
            for turn in range(6):
                talk.append({"role": "user", "content": " ".join(draw.choices(WORDS, k=25))})
                talk.append({"role": "assistant", "content": f"answer {turn} " + " ".join(draw.choices(WORDS, k=40))})
            truth = [f"answer {turn}" for turn in range(6)] if per_turn else "answer 5"
            out.write(json.dumps({"id": f"c{i}", "messages": talk, "ground_truth": truth}) + "\n")
    suite = file.with_suffix(".yaml")
    suite.write_text(SUITE.format(file=file.name))
    return suite


def bare_loop(file: Path) -> float:
    """Do the same without the package: read, grade the last answer twice, write; return seconds."""
    started = time.perf_counter()
    with file.open() as rows, file.with_suffix(".out").open("w") as out:
        for line in rows:
            row = json.loads(line)
            answers = [m["content"] for m in row["messages"] if m["role"] == "assistant"]
            truth = row["ground_truth"]
            expected = truth if isinstance(truth, list) else [truth]
            graded = answers if isinstance(truth, list) else answers[-1:]
            results = [t.lower() in a.lower() for t, a in zip(expected, graded, strict=True)]
            plain = [all(" " <= c <= "~" for c in a) for a in graded]
            scores = {"contains": sum(results) / len(results), "ascii": sum(plain) / len(plain)}
            out.write(json.dumps({"id": row["id"], "messages": row["messages"], "scores": scores}) + "\n")
    return time.perf_counter() - started


def measure_suite(suite: Path) -> tuple[float, float]:
    """Run a suite in a process of its own; return seconds and the peak memory in MB."""
    done = subprocess.run([sys.executable, __file__, str(suite)], check=True, capture_output=True, text=True)
    seconds, memory = done.stdout.split()
    return float(seconds), float(memory)


def child(suite: str) -> None:
    """Run the suite and print seconds and megabytes."""
    from vivavoce import run_suite

    started = time.perf_counter()
    run_suite(suite)
    seconds = time.perf_counter() - started
    print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main() -> None:
    """Measure both kinds of truth; memory between two sizes that load the same libraries."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {0})
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        for per_turn, label in ((False, "one truth"), (True, "a truth for each turn")):
            small, middle, large = (write(Path(name), count, per_turn) for count in (2_000, 12_000, 20_000))
            bare = bare_loop(small.with_suffix(".jsonl"))
            (seconds, _), (_, memory), (seconds_large, memory_large) = map(measure_suite, (small, middle, large))
            print(f"{label}: 2,000 in {seconds:.2f} s = {2_000 / seconds:,.0f}/s, start included")
            print(
                f"  20,000 in {seconds_large:.2f} s = {20_000 / seconds_large:,.0f}/s; bare loop {2000 / bare:,.0f}/s"
            )
            print(f"  time over the bare loop × {seconds_large / 10 / bare:.1f} (asked: ≤ 7, as 5,000/s to 35,000/s)")
            print(f"  memory {(memory_large - memory) / 8:.2f} KB for each further conversation (asked: ≤ 1)")


if __name__ == "__main__":
    child(sys.argv[1]) if len(sys.argv) > 1 else main()
