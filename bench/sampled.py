"""Rates from a sample of a log: how often the 95% interval holds the truth, and how narrow it is: `bench/sampled.py`.

The first table is of simulated logs, 2,000 for each case; from 93 to 97% is what is asked. The second is of real
conversations with labels (../shared/data): a quarter is drawn, 500 times, in each way that `viva judge --sample` knows,
and the width is beside that of as many that are drawn without groups or weights.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from vivavoce.features.sampling.sampler import Sampler
from vivavoce.samples.rows import read_samples
from vivavoce.samples.sample import Sample
from vivavoce.stats.sampled import Design, Units, allocation, inclusion, population_mean, systematic, with_floor

LOGS, DRAWS = 2000, 500
SIZE = 4000
SHARES = (0.5, 0.3, 0.17, 0.03)
"""Strata of these shares: harder ones are rarer."""
EXPECTED_SHARES = 0.93, 0.97
WAYS = {"simple": (False, False), "stratified": (True, False), "importance": (False, True), "both": (True, True)}
DATA = Path(__file__).resolve().parents[1] / ".." / "shared" / "data"

Case = tuple[str, int, float, float, float]
"""A way, how many are drawn, the rate, the share of errors, and the share that the metric does not apply to."""


def measure_case(case: Case) -> tuple[float, float]:
    """Return how often the interval holds the truth, and its mean width."""
    way, size, rate, errors, outside = case
    by_groups, weighted = WAYS[way]
    random = np.random.RandomState(7)
    hard = np.repeat(np.arange(4), [round(SIZE * share) for share in SHARES])
    odds = rate / (1 - rate) * np.exp(np.array([-0.6, 0.0, 0.6, 1.2]))[hard]
    rates = np.clip(odds / (1 + odds) * rate / (odds / (1 + odds)).mean(), 0, 0.999)
    strata = hard if by_groups else np.zeros(SIZE, dtype=np.intp)
    sizes = np.bincount(strata).tolist()
    design = Design(sizes, allocation(sizes, size))
    weights = with_floor(np.exp(0.5 * hard + 0.4 * random.normal(size=SIZE))) if weighted else np.ones(SIZE)
    chances = np.zeros(SIZE)
    for stratum, count in enumerate(design.sample_sizes):
        chances[strata == stratum] = inclusion(weights[strata == stratum], count)
    each = [np.flatnonzero(strata == stratum) for stratum in range(len(sizes))]
    held = width = 0.0
    for _ in range(LOGS):
        values = (random.random_sample(SIZE) < rates).astype(float)
        applies = random.random_sample(SIZE) >= outside
        places = np.concatenate([mine[systematic(chances[mine], random)] for mine in each])
        known = places[random.random_sample(len(places)) >= errors]
        inside, beyond = known[applies[known]], known[~applies[known]]
        units = [Units(strata[part].tolist(), chances[part].tolist()) for part in (inside, beyond)]
        mean = population_mean(values[inside], units[0], design, units[1])
        held += mean.low <= values[applies].mean() <= mean.high
        width += mean.high - mean.low
    return held / LOGS, width / LOGS


CASES: list[Case] = [
    *((way, size, rate, 0.0, 0.0) for way, size, rate in product(WAYS, (60, 300), (0.02, 0.1, 0.5, 0.9, 0.98))),
    *((way, 300, 0.2, 0.08, 0.3) for way in WAYS),
    *((way, 1500, rate, 0.0, 0.0) for way, rate in product(WAYS, (0.02, 0.5))),
]


def real(name: str, good: Callable[[Sample], bool], ways: Sequence[tuple[str, str | None]]) -> None:
    """Print how narrow the interval is on a file, by each way to draw."""
    samples = [sample for sample in read_samples(DATA / name) if sample.messages]
    values = np.array([float(good(sample)) for sample in samples])
    size, plain = len(samples) // 4, 0.0
    for by, weight_by in [("", None), *ways]:
        sampler = Sampler.of(size, [trait for trait in by.split(",") if trait], weight_by, Path())
        for one in samples:
            sampler.add(one)
        held = width = 0.0
        for number in range(DRAWS):
            draw = sampler.draw(str(number))
            sampled_rows, strata = [*draw.places.values()], draw.sampling.strata
            units = Units([place.stratum for place in sampled_rows], [place.probability for place in sampled_rows])
            design = Design([stratum.size for stratum in strata], [stratum.drawn for stratum in strata])
            mean = population_mean(values[[*draw.places]], units, design)
            held += mean.low <= values.mean() <= mean.high
            width += (mean.high - mean.low) / DRAWS
        plain = plain or width
        how = " ".join(filter(None, (f"--by {by}" if by else "", f"--weight-by {weight_by}" if weight_by else "")))
        row = f"{size} of {len(samples):,} | {how or 'at random'} | {held / DRAWS:.1%} | {width:.3f}"
        print(f"| {Path(name).parent} | {row} | {width / plain:.2f} | {(width / plain) ** -2:.2f} |", flush=True)


if __name__ == "__main__":
    print("| drawn | rate | errors | does not apply | holds the truth | mean width | |")
    print("|---|---:|---:|---:|---:|---:|---|")
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for case, (held, width) in zip(CASES, pool.map(measure_case, CASES), strict=True):
            way, size, rate, errors, outside = case
            verdict = (
                "too seldom"
                if held < EXPECTED_SHARES[0]
                else "wider than need be"
                if held > EXPECTED_SHARES[1]
                else "as asked"
            )
            row = f"{size} of {SIZE:,}, {way} | {rate:.0%} | {errors:.0%} | {outside:.0%} | {held:.1%} | {width:.3f}"
            print(f"| {row} | {verdict} |", flush=True)
    if DATA.exists():
        print("\n| log | judged | drawn | holds the truth | mean width | of that at random | worth as many times |")
        print("|---|---|---|---:|---:|---:|---:|")
        tau = "tau_bench_airline/sierra__gpt-4o__airline.jsonl"
        ways = [("turns", None), ("tool_errors", None), ("turns,tool_errors", None), ("message_count", None)]
        real(tau, lambda sample: sample.labels["reward"] >= 1, [*ways, ("", "turns"), ("", "tool_call_count")])
        xs, full = "xstest/xstest_completions.jsonl", "1_full_compliance"
        ways = [("refusal", None), ("refusal,response_length", None), ("", "refusal")]
        real(xs, lambda sample: sample.labels["final_label"] == full, ways)
        google = "taskmaster4_reward/tm4_reward.jsonl"
        ways = [("turns", None), ("tool_errors", None), ("turns,tool_call_count", None), ("", "turns")]
        real(google, lambda sample: bool(sample.labels["last_action_good"]), ways)
