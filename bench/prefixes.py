"""What share of its prompts a self-hosted judge need not compute again, by the order in which it is asked.

Five metrics over real conversations, asked over HTTP from a server that keeps the beginnings of prompts as vLLM does,
in memories for so many tokens: in the order of a run, and in two others. The most there is: a memory for everything.
Then several replicas behind a load balancer that takes them in turns, and behind one that looks for the beginning.

The conversations are those of `../shared/data`, which is kept beside the project.
"""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from vivavoce.metrics.factory import create_metric
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.metrics.types import metric_input
from vivavoce.models.openai import OpenAIModel
from vivavoce.pacing.loops import run as run_loop
from vivavoce.run.options import RunOptions
from vivavoce.samples.rows import read_samples
from vivavoce.samples.sample import Sample
from vivavoce.store.store import Store
from vivavoce.suites.command_line import judging_suite
from vivavoce.suites.experiment import suite_run
from vivavoce.suites.metric_names import read_metrics
from vivavoce.testing import LoopbackServer, PrefixCache
from vivavoce.wire.http import Limits

DATA = Path(__file__).parents[2] / "shared" / "data"
SETS = {
    "an airline's agent with its policy and its calls (tau-bench)": "tau_bench_airline/sierra__gpt-4o__airline.jsonl",
    "chats without a system message (MT-Bench-101)": "mt_bench_101/mt_bench_101.jsonl",
}
METRICS = ("safety", "prompt_injection", "toxicity", "data_leakage", "user_frustration")
COUNT, AT_A_TIME, LATENCY = 200, 64, 0.02
MEMORIES = (25_000, 50_000, 100_000, 200_000, 400_000)
EVERYTHING = 1_000_000_000
UNEVEN = 8
"""By how many prompts one replica may be ahead of another before the other is preferred."""


class Replicas(PrefixCache):
    """Several servers behind a load balancer, which takes them in turns, or where most of a prompt is there."""

    def __init__(self, tokens: int, number: int, *, looks: bool) -> None:
        super().__init__(tokens)
        self._caches = [PrefixCache(tokens) for _ in range(number)]
        self._loads = [0] * number
        self._turns = itertools.cycle(range(number))
        self._looks = looks

    @asynccontextmanager
    async def holding(self, prompt: str) -> AsyncGenerator[tuple[int, int]]:
        at = self._best(prompt) if self._looks else next(self._turns)
        self._loads[at] += 1
        try:
            async with self._caches[at].holding(prompt) as (tokens, cached):
                self.prompt_tokens += tokens
                self.cached_tokens += cached
                yield tokens, cached
        finally:
            self._loads[at] -= 1

    def _best(self, prompt: str) -> int:
        least = min(self._loads)
        near = [at for at, load in enumerate(self._loads) if load <= least + UNEVEN]
        return max(near, key=lambda at: (self._caches[at].known(prompt), -self._loads[at]))


def answer(body: dict[str, Any]) -> dict[str, Any]:
    """Answer in the form that is asked for, and find nothing."""
    schema = body["response_format"]["json_schema"]["schema"]
    return {name: _value(part) for name, part in schema["properties"].items()}


def _value(schema: dict[str, Any]) -> object:
    kinds: dict[str, object] = {"array": [], "number": 1, "integer": 1, "boolean": True, "string": "Fine."}
    return schema["enum"][0] if "enum" in schema else kinds[schema["type"]]


def in_a_run(path: Path, server: LoopbackServer) -> None:
    """Ask as `viva judge` does."""
    with tempfile.TemporaryDirectory() as folder, Store.open(f"{folder}/bench.db") as store:
        judge = f"{server.base_url}#judge"
        suite = judging_suite(path, read_metrics(",".join(METRICS)), judge, name="bench", max_concurrent=AT_A_TIME)
        result = run_loop(suite_run(suite, RunOptions(), store=store).execute())
        assert all(result.summary.grader(name).scored == COUNT for name in METRICS)


def one_after_another(path: Path, server: LoopbackServer) -> None:
    """Ask one metric after the other about each conversation, with many conversations in work."""

    async def judge(metrics: Sequence[BaseMultiTurnMetric], sample: Sample) -> None:
        for metric in metrics:
            await _measure(metric, sample)

    run_loop(_at_a_time(path, server, judge))


def metric_by_metric(path: Path, server: LoopbackServer) -> None:
    """Ask about all conversations for one metric, then for the next one."""
    for number in range(len(METRICS)):

        async def judge(metrics: Sequence[BaseMultiTurnMetric], sample: Sample, number: int = number) -> None:
            await _measure(metrics[number], sample)

        run_loop(_at_a_time(path, server, judge))


async def _measure(metric: BaseMultiTurnMetric, sample: Sample) -> None:
    assert (await metric.measured(metric_input(sample, sample.messages or ()))).state != "error"


async def _at_a_time(
    path: Path, server: LoopbackServer, judge: Callable[[Sequence[BaseMultiTurnMetric], Sample], Awaitable[None]]
) -> None:
    model = OpenAIModel("judge", base_url=server.base_url, api_key="none", limits=Limits(concurrency=AT_A_TIME))
    metrics = [create_metric(name, model=model) for name in METRICS]
    places = asyncio.Semaphore(AT_A_TIME)

    async def run_sample(sample: Sample) -> None:
        async with places:
            await judge(metrics, sample)

    await asyncio.gather(*(run_sample(sample) for sample in read_samples(path)))
    await model.close()


def hit_rate(order: Callable[[Path, LoopbackServer], None], path: Path, memory: PrefixCache) -> str:
    with LoopbackServer(answer, delay=LATENCY, prefixes=memory) as server:
        order(path, server)
    return f"{memory.hit_rate:.1%}"


def compare(title: str, path: Path) -> None:
    everything = PrefixCache(EVERYTHING)
    most = hit_rate(in_a_run, path, everything)
    calls = COUNT * len(METRICS)
    print(f"{title}: {COUNT} conversations, {len(METRICS)} metrics, {AT_A_TIME} calls at a time")
    print(f"  {everything.prompt_tokens // calls:,} tokens a prompt; the most there is: {most}")
    print(f"  {'memory, tokens':>16}{'a run':>10}{'one after another':>20}{'metric by metric':>20}")
    for tokens in MEMORIES:
        orders = (in_a_run, one_after_another, metric_by_metric)
        run, after, by_metric = (hit_rate(order, path, PrefixCache(tokens)) for order in orders)
        print(f"  {tokens:>16,}{run:>10}{after:>20}{by_metric:>20}", flush=True)
    for number in (2, 4):
        shares = [hit_rate(in_a_run, path, Replicas(100_000, number, looks=looks)) for looks in (False, True)]
        print(f"  {number} replicas, each 100,000: {shares[0]} in turns, {shares[1]} by beginning", flush=True)


def main() -> None:
    for title, name in SETS.items():
        if not (DATA / name).exists():
            print(f"{title}: {DATA / name} is not there")
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "talks.jsonl"
            with (DATA / name).open(encoding="utf-8") as rows:
                path.write_text("".join(itertools.islice(rows, COUNT)), "utf-8")
            compare(title, path)


main()
