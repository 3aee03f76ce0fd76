"""The addresses of comparisons."""

from __future__ import annotations

from collections.abc import Sequence

from vivavoce.server.pages.links import Value, address, number_query


def compare_page(**query: Value) -> str:
    """Return the address of the comparison of two runs, or of the page to choose them."""
    return address("compare", **query)


def compared_samples(*, trial: int | None = None, turn: int | None = None, **query: Value) -> str:
    """Return the address of two conversations side by side, or of their part that begins with a turn."""
    return address("compare", "samples", **query, **number_query(trial, turn))


def compared_suites(**query: Value) -> str:
    """Return the address of the suites of two runs, line by line where they differ."""
    return address("compare", "suites", **query)


def comparison_data(**query: Value) -> str:
    """Return the address of the comparison of two runs as JSON."""
    return address("api", "v1", "comparisons", **query)


def several_data(baseline: str, runs: Sequence[str]) -> str:
    """Return the address of the comparisons of several runs with a baseline run as JSON."""
    return address("api", "v1", "comparisons", "several", baseline=baseline, run=runs)
