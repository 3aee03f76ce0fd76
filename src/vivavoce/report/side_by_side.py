"""A comparison of two runs in the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from vivavoce.report.compare import Comparison, Flip, GraderComparison, TargetComparison
from vivavoce.report.terminal import interval, number
from vivavoce.report.text import one_line, safe

SHOWN = 10
"""Flips and unmatched samples that are shown at most."""


def comparison(found: Comparison) -> Group:
    """Return what changed from run a to run b, and how sure that is."""
    parts: list[RenderableType] = [Text(f"a  {found.grading_a}\nb  {found.grading_b}", style="bold"), Text()]
    for target in found.targets:
        parts += _target(target, named=len(found.targets) > 1 or target.target_a != target.target_b)
    only = [("a", found.graders_only_a), ("b", found.graders_only_b)]
    parts += [Text(f"only in {side}: {', '.join(map(safe, names))}", style="yellow") for side, names in only if names]
    targets = [("a", found.targets_only_a), ("b", found.targets_only_b)]
    parts += [Text(f"target only in {side}: {', '.join(map(safe, names))}") for side, names in targets if names]
    return Group(*parts)


def _target(found: TargetComparison, named: bool) -> Iterator[RenderableType]:
    if named:
        yield Text(f"{safe(found.target_a)} → {safe(found.target_b)}", style="bold")
    yield _table(found)
    for grader in found.graders:
        if grader.note:
            yield Text(f"{safe(grader.name)}: {grader.note}", style="yellow")
    for grader in found.graders:
        yield from _flips(grader)
    yield Text()
    unmatched = [("a", found.unmatched_a), ("b", found.unmatched_b)]
    lacks = "".join(f"; only in {side}: {_some(ids)}" for side, ids in unmatched if ids)
    yield Text(f"{found.matched} samples asked the same on both sides{lacks}", style="dim")


def _table(found: TargetComparison) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for head in ("grader", "n", "mean a", "mean b", "b − a", "95 % interval", "p", "better", "worse", "errors a/b"):
        table.add_column(head, justify="left" if head in ("grader", "95 % interval") else "right")
    for grader in found.graders:
        table.add_row(*_cells(grader))
    return table


def _cells(grader: GraderComparison) -> list[RenderableType]:
    difference = Text("–")
    if grader.difference is not None:
        sure = grader.low is not None and grader.high is not None and (grader.low > 0 or grader.high < 0)
        style = ("red" if grader.difference < 0 else "green") if sure else ""
        difference = Text(f"{grader.difference:+.3f}", style=style)
    means: list[RenderableType] = [number(grader.mean_a), number(grader.mean_b)]
    counts = [str(grader.wins), str(grader.losses), f"{grader.a.errors}/{grader.b.errors}"]
    return [
        safe(grader.name),
        str(grader.n),
        *means,
        difference,
        interval(grader.low, grader.high),
        number(grader.p_value),
        *counts,
    ]


def _flips(grader: GraderComparison) -> Iterator[Text]:
    for title, style, flips in (
        ("passed on a, not on b", "red", grader.worsened),
        ("passed on b, not on a", "green", grader.improved),
    ):
        if flips:
            yield Text(f"\n{safe(grader.name)}: {title} ({len(flips)})", style=style)
            yield from (_flip(flip) for flip in flips[:SHOWN])
    for title, ids in (("scored on a, an error on b", grader.broke), ("an error on a, scored on b", grader.mended)):
        if ids:
            yield Text(f"\n{safe(grader.name)}: {title} ({len(ids)}): {_some(ids)}", style="yellow")


def _flip(flip: Flip) -> Text:
    name = safe(flip.sample_a) if flip.sample_a == flip.sample_b else f"{safe(flip.sample_a)} / {safe(flip.sample_b)}"
    return Text(f"  {name}  {flip.score_a:.2f} → {flip.score_b:.2f}  {one_line(flip.why, 120)}")


def _some(ids: list[str]) -> str:
    more = f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
    return ", ".join(map(safe, ids[:SHOWN])) + more
