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


PROMISES = bench("promises").PROMISES


@pytest.mark.parametrize("promise", PROMISES, ids=lambda one: f"{one.what}: {one.data}")
def test_it_is_kept(promise: Any) -> None:
    """Fixed seeds draw the sets; of so few, two standard errors are added to the bounds."""
    rate = promise.measured(SETS)
    assert rate >= promise.low - 2 * math.sqrt(promise.low * (1 - promise.low) / SETS)
    assert rate <= promise.high + 2 * math.sqrt(promise.high * (1 - promise.high) / SETS)
