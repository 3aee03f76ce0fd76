"""The statistical promises, in the simulations that `make bench` prints in full: each rate is within its bounds."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SETS = 150


def bench(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[2] / "bench" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


BENCH = bench("promises")
PROMISES = BENCH.PROMISES


@pytest.mark.parametrize("promise", PROMISES, ids=lambda item: f"{item.what}: {item.data}")
def test_it_is_kept(promise: Any) -> None:
    """Fixed seeds draw the sets; of so few, two standard errors are added to the bounds."""
    rate = promise.measured(SETS)
    assert rate >= promise.low - 2 * math.sqrt(promise.low * (1 - promise.low) / SETS)
    assert rate <= promise.high + 2 * math.sqrt(promise.high * (1 - promise.high) / SETS)


@pytest.mark.parametrize("samples", [6, 7, 8, 15, 50, 150])
def test_a_comparison_of_passes_is_falsely_worse_in_at_most_2_5_percent(samples: int) -> None:
    assert 0 < BENCH.highest_false_change(samples)[0] <= 0.025


@pytest.mark.parametrize("samples", [5, 6, 8, 15, 50, 150])
def test_the_gate_falsely_fails_passes_in_at_most_5_percent(samples: int) -> None:
    assert 0 < BENCH.highest_false_change(samples, 0.05)[0] <= 0.05


@pytest.mark.parametrize(("samples", "share"), [(20, 0.05), (59, 0.05), (72, 0.05), (93, 0.05), (183, 0.02), (25, 0.2)])
def test_a_rare_gain_is_a_false_alarm_in_at_most_the_nominal_rate(samples: int, share: float) -> None:
    fails, excludes = BENCH.rare_gain_false_alarm(samples, share)
    assert excludes <= 0.025
    assert excludes <= fails <= 0.0501


def test_the_worst_rates_of_scores_with_two_values_are_those_of_the_page() -> None:
    covered, near_the_ends, passed = BENCH.worst_of_two(100, 0.9)
    assert (round(covered, 3), round(near_the_ends, 3), round(passed, 3)) == (0.934, 0.845, 0.049)


def test_the_coverage_of_kappa_is_that_of_the_page() -> None:
    assert [round(BENCH.kappa_coverage(10, right), 2) for right in (0.8, 0.9, 0.95)] == [0.96, 0.94, 0.91]


@pytest.mark.parametrize("samples", [5, 10, 20, 100])
def test_the_exact_rates_of_a_gate_fall_with_samples_and_with_the_limit(samples: int) -> None:
    near_1, near_half, near_0 = (BENCH.highest_false_pass(samples, *limits)[0] for limits in BENCH.RANGES)
    assert near_1 <= near_half <= near_0 <= 0.18
    assert near_1 <= 0.025 + 0.08 / math.sqrt(samples)
    rate, limit = BENCH.highest_false_pass(samples, 0.5, 1.0)
    assert BENCH.coverage(samples, limit - 1e-6) <= 1 - rate + 1e-4
    assert BENCH.lowest_coverage(samples, 0.1, 0.9)[0] > 0.89
