"""The addresses of comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vivavoce.errors import UsageError
from vivavoce.extensions import Page
from vivavoce.records.run import Run
from vivavoce.server.pages.links import Value, address, number_query
from vivavoce.store.browse.filter import encode_cursor
from vivavoce.store.browse.listing import RunEntry
from vivavoce.store.store import Store


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


MAX_OFFERED = 60
"""Runs that the form offers and that pairs are taken from."""
PAIRS = 8
"""Pairs of runs that are offered."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two consecutive runs of one suite."""

    suite: str
    a: RunEntry
    b: RunEntry
    link: str


def choice(store: Store, a: str, b: str, problem: str = "", targets: tuple[str, str] = ("", "")) -> dict[str, object]:
    """Return the values for the form; runs of the suite of a chosen run come first."""
    newest = store.browse.runs(limit=MAX_OFFERED).runs
    known = _find_run(store, a or b)
    mine = store.browse.runs(limit=MAX_OFFERED // 2, suite=known.suite).runs if known else []
    offered = {run.id: run for run in [*mine, *newest]}
    pairs = _pairs([run for run in newest if run.grading is not None and run.partial_of is None])
    return {
        "section": "compare",
        "a": a,
        "b": b,
        "problem": problem,
        "targets": targets if problem else None,
        "offered": list(offered.values()),
        "pairs": pairs[:PAIRS],
    }


def links_of_run(store: Store, run: Run) -> list[Page]:
    """Return the link to the comparison with the previous whole run of the same suite, if there is one."""
    earlier = store.browse.runs(encode_cursor((run.started_at, run.id)), 1, suite=run.suite, whole=True).runs
    links = (compare_page(a=previous.id, b=run.id) for previous in earlier if previous.grading is not None)
    return [Page("Compare with the previous run", link, place="second") for link in links]


def comparison_link(a: str, b: str, target: str | None) -> str:
    """Return the address of the comparison of two runs, of one target where it is named."""
    return compare_page(a=a, b=b, target_a=target, target_b=target)


def _find_run(store: Store, name: str) -> Run | None:
    try:
        return store.run(name) if name else None
    except UsageError:  # an invalid name is reported next to the form
        return None


def _pairs(runs: Sequence[RunEntry]) -> list[Pair]:
    """Return the two newest runs of each suite, the most recent suite first."""
    suites: dict[str, list[RunEntry]] = {}
    for run in runs:
        suites.setdefault(run.suite, []).append(run)
    return [
        Pair(suite, known[1], known[0], compare_page(a=known[1].id, b=known[0].id))
        for suite, known in suites.items()
        if len(known) > 1
    ]
