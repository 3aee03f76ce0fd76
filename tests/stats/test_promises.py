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


@pytest.mark.parametrize("promise", PROMISES, ids=lambda one: f"{one.what}: {one.data}")
def test_it_is_kept(promise: Any) -> None:
    """Fixed seeds draw the sets; of so few, two standard errors are added to the bounds."""
    rate = promise.measured(SETS)
    assert rate >= promise.low - 2 * math.sqrt(promise.low * (1 - promise.low) / SETS)
    assert rate <= promise.high + 2 * math.sqrt(promise.high * (1 - promise.high) / SETS)


@pytest.mark.parametrize("samples", [6, 7, 8, 15, 50, 150])
def test_a_comparison_of_passes_is_falsely_worse_in_at_most_2_5_percent(samples: int) -> None:
    assert 0 < BENCH.highest_false_change(samples)[0] <= 0.025


@pytest.mark.parametrize("samples", [5, 10, 20, 100])
def test_the_exact_rates_of_a_gate_fall_with_samples_and_with_the_limit(samples: int) -> None:
    near_1, near_half, near_0 = (BENCH.highest_false_pass(samples, *limits)[0] for limits in BENCH.RANGES)
    assert near_1 <= near_half <= near_0 <= 0.18
    assert near_1 <= 0.025 + 0.08 / math.sqrt(samples)
    rate, limit = BENCH.highest_false_pass(samples, 0.5, 1.0)
    assert BENCH.coverage(samples, limit - 1e-6) <= 1 - rate + 1e-4
    assert BENCH.lowest_coverage(samples, 0.1, 0.9)[0] > 0.89
