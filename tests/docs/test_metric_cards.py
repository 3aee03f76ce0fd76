"""Every metric that can be named has a card that tells all of it."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from vivavoce.grading.metrics import FunctionGrader
from vivavoce.metrics.factory import metrics

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
NAMES = [name for name in metrics.names() if not issubclass(metrics.get(name), FunctionGrader)]
ROWS = ("class", "method", "needs", "range", "direction", "passes", "options")


def card(name: str) -> str:
    return PAGE.read_text(encoding="utf-8").partition(f"\n## {name}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("name", NAMES)
def test_a_metric_has_a_card_with_its_method_range_and_version(name: str) -> None:
    kind = metrics.get(name)
    assert all(f"| {row} | " in card(name) for row in ROWS)
    assert inspect.cleandoc(kind.__doc__ or "").splitlines()[0] in card(name)
    assert f"`{kind.__name__}`, version {getattr(kind, 'version', '?')}" in card(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_card_says_where_the_metric_fails(name: str) -> None:
    assert "Known failure" in card(name)
