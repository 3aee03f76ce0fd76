"""One goal judged in each conversation, stored: beside a bare loop and a peer, then its prompts, memory and faults.

The server, the bare loop and the peers are in `../shared/bench`, which is kept beside the project.
"""

from __future__ import annotations

import json
import random
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from fake_server import QUOTE, Goal

from vivavoce import RunResult, evaluate
from vivavoce.metrics import evaluate_conversation
from vivavoce.metrics.judged.goal import LEVELS, goal_reply
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.models.openai import OpenAIModel
from vivavoce.models.structured import class_schema
from vivavoce.wire.http import Limits

PEERS = Path(__file__).parents[2] / "shared" / "bench"
SERVER = PEERS / "scratch" / "venv-server" / "bin" / "python"
COUNT, AT_A_TIME = 2_000, 64
FEW, MANY = 10_000, 100_000
FAULTS = "rate429=0.1&rate500=0.05&garbage=0.05&drop=0.02"
FIVE = ("goal_achievement", "safety", "toxicity", "data_leakage", "user_frustration")
"""Metrics that the server's made-up answers satisfy, so that each takes one call."""
WORDS = ["refund", "order", "account", "policy", "please", "confirm", "address", "ticket", "thanks", "agent"]


@contextmanager
def server(settings: str = "latency_ms=0") -> Generator[str]:
    """Start the fake server, and give its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with subprocess.Popen(
        [str(SERVER), str(PEERS / "fake_llm.py"), "--port", str(port)], stdout=subprocess.DEVNULL
    ) as process:
        address = f"http://127.0.0.1:{port}"
        for _ in range(100):
            try:
                ask(f"{address}/config?{settings}")
                break
            except OSError:
                time.sleep(0.1)
        try:
            yield address
        finally:
            process.kill()


def ask(address: str) -> dict[str, Any]:
    """Return what the server says of itself."""
    with urlopen(address) as answer:
        return json.load(answer)


def judge(address: str) -> OpenAIModel:
    """Return the judge behind the server."""
    return OpenAIModel("gpt-4.1-mini", base_url=f"{address}/v1", api_key="sk-x", limits=Limits(concurrency=AT_A_TIME))


def conversations(count: int, turns: int = 3) -> Iterator[dict[str, Any]]:
    """Yield conversations whose messages have about 200 tokens each, none of them kept."""
    draw = random.Random(3)
    for i in range(count):
        texts = [" ".join(draw.choices(WORDS, k=110)) for _ in range(2 * turns)]
        texts[-1] += f" {QUOTE}"
        roles = ("user", "assistant")
        messages = [{"role": roles[k % 2], "content": text} for k, text in enumerate(texts)]
        yield {"id": f"c{i}", "goal": f"The user wants a refund for order {1000 + i}", "messages": messages}


def compare(latency: int, at_a_time: int, systems: Sequence[str], question: str) -> None:
    """Print the table of `../shared/bench/compare.py`."""
    options = ["--n", COUNT, "--conc", at_a_time, "--latency-ms", latency, "--reps", 3]
    ours = f"vivavoce={sys.executable}:{Path(__file__).with_name('drv_vivavoce.py')}"
    command = [sys.executable, str(PEERS / "compare.py"), *map(str, options), *systems, "--driver", ours]
    subprocess.run(command, check=True)
    print(f"asked: {question}", flush=True)


def store_rows(rows: Iterator[dict[str, Any]], address: str) -> tuple[RunResult, BaseMultiTurnMetric, Counter[str]]:
    """Judge rows into a store that is thrown away; return also how often each outcome came, by id and by cause."""
    metric = Goal(judge(address))
    with tempfile.TemporaryDirectory() as folder:
        result = evaluate(rows, [metric], max_concurrent=AT_A_TIME, store=f"{folder}/store.db")
        seen: Counter[str] = Counter()
        for outcome in result.outcomes():
            score = outcome.scores[metric.name]
            seen[f"id {outcome.attempt.key.sample_id}"] += 1
            seen[f"error: {score.failure.kind}" if score.failure else f"{score.state} {score.value}"] += 1
    return result, metric, seen


def prompts() -> None:
    """Print how long a prompt is beside what it has to hold, and how many calls a verdict takes."""
    with server() as address:
        with (PEERS / "scratch" / "convs200.jsonl").open(encoding="utf-8") as lines:
            result = [json.loads(line) for line in lines]
        for one in result:
            one["turns"][-1]["content"] += f" {QUOTE}"
        rows = [{"id": row["id"], "goal": row["goal"], "messages": row["turns"]} for row in result]
        store_rows(iter(rows), address)
        seen = ask(f"{address}/stats")
    schema = len(json.dumps(class_schema(goal_reply(LEVELS, 0, 0)), separators=(",", ":")))
    needed = sum(len(row["goal"]) + schema + sum(len(m["content"]) for m in row["messages"]) for row in rows) / 4
    ratio = seen["prompt_tokens"] / needed
    print(f"prompt tokens {ratio:.3f} × conversation, goal and schema (asked: ≤ 1.15)")
    print(f"calls a conversation {seen['requests'] / len(rows):.2f} (asked: 1)", flush=True)


def memory() -> None:
    """Print how much memory each further conversation takes, read from a stream and stored."""
    peaks = [float(subprocess.check_output([sys.executable, __file__, str(count)])) for count in (FEW, MANY)]
    grown = (peaks[1] - peaks[0]) * 1024 / (MANY - FEW)
    print(f"memory {peaks[0]:.0f} MB for {FEW:,}, {peaks[1]:.0f} MB for {MANY:,}: ", end="")
    print(f"{grown:.2f} KB for each further conversation (asked: ≤ 1)", flush=True)


def peak(count: int) -> None:
    """Judge so many conversations and print the peak memory in MB."""
    with server() as address, tempfile.TemporaryDirectory() as folder:
        metric = Goal(judge(address))
        evaluate(conversations(count), [metric], max_concurrent=AT_A_TIME, store=f"{folder}/store.db")
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def shared_prefix() -> None:
    """Print how much of the prompts of four more metrics a provider would have in its cache."""
    with server("cache=1") as address:
        row = next(conversations(1, turns=20))
        first = None
        for name in FIVE:
            evaluate_conversation(row["messages"], [name], row["goal"], model=judge(address))
            first = first or ask(f"{address}/stats")
        seen = ask(f"{address}/stats")
    assert first is not None
    share = seen["cached_tokens"] / (seen["prompt_tokens"] - first["prompt_tokens"])
    print(f"five metrics on one conversation of 20 turns, {seen['requests']} calls: {share:.0%} ", end="")
    print("of the prompt tokens of calls 2 to 5 cacheable (asked: ≥ 80 %)", flush=True)


def faults() -> None:
    """Print what came of conversations whose judge fails in many ways."""
    with server(f"latency_ms=0&{FAULTS}") as address:
        started = time.perf_counter()
        _, _, seen = store_rows(conversations(COUNT), address)
        seconds = time.perf_counter() - started
        fields = ask(f"{address}/stats")
    ids = [times for name, times in seen.items() if name.startswith("id ")]
    outcomes = {name: times for name, times in seen.items() if not name.startswith("id ")}
    sent = fields["requests"] + sum(times for kind, times in fields["faults"].items() if kind != "garbage")
    once = len(ids) == COUNT and set(ids) == {1}
    print(f"faults ({FAULTS}), {COUNT:,} conversations in {seconds:.1f} s: {outcomes}")
    print(f"each has exactly one outcome: {'yes' if once else 'NO'} (asked: yes); ", end="")
    print(f"requests a verdict {sent / COUNT:.2f} (asked: ≤ 1.5)", flush=True)


def main() -> None:
    """Measure all of it, or say what is missing."""
    if not SERVER.exists():
        print(f"skipped: the fake server is not set up ({SERVER.parents[2]}; setup_peers.sh there makes it)")
        return
    peers = ["openevals:openai"] if (PEERS / "scratch" / "venv-openevals").exists() else []
    compare(0, AT_A_TIME, ["floor", *peers, "vivavoce:cached"], "CPU ≤ 3.5 × floor, from kept answers ≤ 2.8 ×")
    compare(50, AT_A_TIME, ["floor"], f"wall/ideal ≤ 1.08, in flight {AT_A_TIME}, conns ≤ {AT_A_TIME + 2}")
    compare(500, 512, ["floor"], "wall/ideal ≤ 1.25, in flight 512, conns ≤ 514")
    prompts()
    shared_prefix()
    faults()
    memory()


if __name__ == "__main__":
    peak(int(sys.argv[1])) if len(sys.argv) > 1 else main()
