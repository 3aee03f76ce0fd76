"""A comparison of two runs in the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from vivavoce.features.compare.words import lines_of
from vivavoce.report.comparison.comparison import (
    STYLES,
    Comparison,
    Flip,
    GraderComparison,
    TargetComparison,
    p_text,
    remarks,
)
from vivavoce.report.comparison.regressions import ruling_lines
from vivavoce.report.terminal import interval, number
from vivavoce.report.tester import spoiled_sides
from vivavoce.report.text import Column, FittingTable, Labelled, count, one_line
from vivavoce.safe_text import safe

MAX_FLIPS = 10
"""Flips and unmatched samples that are shown at most."""

_GRADERS = (
    Column("grader"),
    Column("n", "right", rank=5),
    Column("mean a", "right", rank=4),
    Column("mean b", "right", rank=4),
    Column("b − a", "right"),
    Column("95% interval", rank=1),
    Column("p", "right", rank=2),
    Column("better", "right"),
    Column("worse", "right"),
    Column("errors a/b", "right", rank=3),
)


def comparison(result: Comparison) -> Group:
    """Return what changed from run a to run b, how certain that is, and the ruling if there is one."""
    parts: list[RenderableType] = [*_heads(result), Text()]
    ruling = list(ruling_lines(result.ruling)) if result.ruling is not None else []
    if result.same:
        same = Text("both sides are the same grading, so there is no difference", style="yellow")
        return Group(*parts, same, *ruling)
    for target in result.targets:
        parts += _target(target, with_title=len(result.targets) > 1)
    parts += [Text(safe(change.sentence)) for change in result.changes]
    parts += [Text(safe(note), style="yellow") for note in result.notes]
    only = [("a", result.graders_only_a), ("b", result.graders_only_b)]
    parts += [Text(f"only in {side}: {', '.join(map(safe, names))}", style="yellow") for side, names in only if names]
    targets = [("a", result.targets_only_a), ("b", result.targets_only_b)]
    parts += [Text(f"target only in {side}: {', '.join(map(safe, names))}") for side, names in targets if names]
    return Group(*parts, *ruling)


def _heads(comparison: Comparison) -> Iterator[Labelled]:
    """Yield a line for each side: its scores, its suite, and the compared targets."""
    targets_a = dict.fromkeys(safe(target.target_a) for target in comparison.targets)
    targets_b = dict.fromkeys(safe(target.target_b) for target in comparison.targets)
    for side, grading, suite, targets in (
        ("a", comparison.grading_a, comparison.suite_a, targets_a),
        ("b", comparison.grading_b, comparison.suite_b, targets_b),
    ):
        text = f"{grading} · {safe(suite)} · {', '.join(targets)}"
        yield Labelled(Text(f"{side}  ", style="bold"), Text(text, style="bold"))


def _target(comparison: TargetComparison, with_title: bool) -> Iterator[RenderableType]:
    if with_title:
        yield Text(f"{safe(comparison.target_a)} → {safe(comparison.target_b)}", style="bold")
    yield _table(comparison)
    for remark in remarks(comparison.graders):
        yield Text(remark, style="dim")
    for grader in comparison.graders:
        if grader.note:
            yield Text(f"{safe(grader.name)}: {grader.note}", style="yellow")
    for line in spoiled_sides(comparison, ("a", "b")):
        yield Text(line, style="yellow")
    for grader in comparison.graders:
        yield from _flips(grader)
    yield Text()
    unmatched = [("a", comparison.unmatched_a), ("b", comparison.unmatched_b)]
    lacks = "".join(f"; only in {side}: {_some(ids)}" for side, ids in unmatched if ids)
    yield Text(f"{count(comparison.matched, 'matched sample')}{lacks}", style="dim")


def _table(comparison: TargetComparison) -> FittingTable:
    return FittingTable(_GRADERS, [_cells(grader) for grader in comparison.graders])


def _cells(grader: GraderComparison) -> list[Text]:
    difference = Text("–")
    if grader.difference is not None:
        difference = Text(f"{grader.difference:+.3f}", style=STYLES.get(grader.reading, ""))
    before = [safe(grader.name), str(grader.n), number(grader.mean_a), number(grader.mean_b)]
    counts = [str(grader.wins), str(grader.losses), f"{grader.a.errors}/{grader.b.errors}"]
    after = [interval(grader.low, grader.high), p_text(grader.p_value), *counts]
    return [*map(Text, before), difference, *map(Text, after)]


def _flips(grader: GraderComparison) -> Iterator[RenderableType]:
    for title, style, flips in (
        ("pass on a, fail on b", "red", grader.worsened),
        ("fail on a, pass on b", "green", grader.improved),
    ):
        if flips:
            yield Text(f"\n{safe(grader.name)}: {title} ({len(flips)})", style=style)
            for flip in flips[:MAX_FLIPS]:
                yield _flip(flip)
                yield from (Labelled(Text(f"    {name}: "), Text(safe(text))) for name, text in lines_of(flip))
            if len(flips) > MAX_FLIPS:
                yield Text(f"  and {len(flips) - MAX_FLIPS:,} more")
    for title, ids in (("scored on a, an error on b", grader.broke), ("an error on a, scored on b", grader.fixed)):
        if ids:
            yield Text(f"\n{safe(grader.name)}: {title} ({len(ids)}): {_some(ids)}", style="yellow")


def _flip(flip: Flip) -> Labelled:
    name = safe(flip.sample_a) if flip.sample_a == flip.sample_b else f"{safe(flip.sample_a)} / {safe(flip.sample_b)}"
    label = Text(f"  {name}  {flip.score_a:.2f} → {flip.score_b:.2f}  ")
    return Labelled(label, Text(one_line(flip.why, 120)))


def _some(ids: list[str]) -> str:
    more = f" and {len(ids) - MAX_FLIPS} more" if len(ids) > MAX_FLIPS else ""
    return ", ".join(map(safe, ids[:MAX_FLIPS])) + more
