"""A comparison of two runs as Markdown, for a pull request: the change of each grader, and the samples behind it.

What models, targets and suites wrote is in code spans, as in the summary of a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vivavoce.features.compare.words import lines_of
from vivavoce.report.comparison.comparison import (
    Comparison,
    Flip,
    GraderComparison,
    TargetComparison,
    in_markdown,
    remarks,
)
from vivavoce.report.comparison.regressions import reason_lines
from vivavoce.report.markdown import code, fold, interval, number, table
from vivavoce.report.tester import spoiled_sides
from vivavoce.report.text import count

MAX_ROWS = 10
"""Samples of one kind that are shown of a target."""

MAX_CHARS = 400
"""Characters of a reason of a ruling."""

_HEADS = ["grader", "n", "before", "after", "difference", "95% interval", "change", "errors before", "errors after"]


def markdown_comparison(comparison: Comparison) -> str:
    """Return what changed from run a, the earlier one, to run b; an empty line ends it, so that more can follow."""
    return "\n".join([*_lines(comparison), "", ""])


def _lines(comparison: Comparison) -> Iterator[str]:
    yield f"**{code(comparison.suite_b)}: run {code(comparison.run_b)} after run {code(comparison.run_a)}**"
    if comparison.ruling is not None:
        yield from ("", f"**{comparison.ruling.sentence.capitalize()}**", "")
        yield from (f"- {code(line, MAX_CHARS)}" for line in reason_lines(comparison.ruling))
    if comparison.same:
        yield from ("", "Both sides are the same grading, so there is no difference.")
        return
    for target in comparison.targets:
        yield from _target(target)
    yield ""
    yield from (f"- {code(change.sentence, MAX_CHARS)}" for change in comparison.changes)
    yield from (f"- {code(note, MAX_CHARS)}" for note in comparison.notes)
    for side, graders, targets in (
        ("before", comparison.graders_only_a, comparison.targets_only_a),
        ("after", comparison.graders_only_b, comparison.targets_only_b),
    ):
        for kind, names in (("grader", graders), ("target", targets)):
            if names:
                yield f"- only {side}: {count(len(names), kind)}: {_some(names)}"


def _target(comparison: TargetComparison) -> Iterator[str]:
    heading = (
        code(comparison.target_b)
        if comparison.target_a == comparison.target_b
        else f"{code(comparison.target_a)} → {code(comparison.target_b)}"
    )
    lacks = [(comparison.unmatched_a, "before"), (comparison.unmatched_b, "after")]
    apart = "".join(f", {len(ids):,} only {side}" for ids, side in lacks if ids)
    yield from ("", f"{heading}: {count(comparison.matched, 'matched sample')}{apart}", "")
    yield from table(_HEADS, "lrrrrrlrr", (_grader(grader) for grader in comparison.graders))
    for remark in remarks(comparison.graders):
        yield from ("", code(remark, MAX_CHARS))
    notes = [f"- {code(grader.name)}: {grader.note}" for grader in comparison.graders if grader.note]
    notes += [f"- {code(line, MAX_CHARS)}" for line in spoiled_sides(comparison, ("before", "after"))]
    yield from (["", *notes] if notes else [])
    worse = [(grader.name, flip) for grader in comparison.graders for flip in grader.worsened]
    better = [(grader.name, flip) for grader in comparison.graders for flip in grader.improved]
    for title, flips in (("passed before and fail now", worse), ("failed before and pass now", better)):
        if flips:
            yield from fold(f"{count(len(flips), 'score')} {title}", _flips(flips))
    broke = dict.fromkeys(name for grader in comparison.graders for name in grader.broke)
    fixed = dict.fromkeys(name for grader in comparison.graders for name in grader.fixed)
    for title, samples in (("Scored before, an error now", broke), ("An error before, scored now", fixed)):
        yield from (["", f"{title}: {_some(list(samples))}"] if samples else [])


def _grader(comparison: GraderComparison) -> list[str]:
    difference = "–" if comparison.difference is None else f"{comparison.difference:+.3f}"
    before = [
        code(comparison.name),
        str(comparison.n),
        number(comparison.mean_a),
        number(comparison.mean_b),
        difference,
    ]
    return [
        *before,
        interval(comparison.low, comparison.high),
        in_markdown(comparison.reading),
        str(comparison.a.errors),
        str(comparison.b.errors),
    ]


def _flips(flips: Sequence[tuple[str, Flip]]) -> Iterator[str]:
    rows = (
        [code(name), _sample(flip), number(flip.score_a), number(flip.score_b), _why(flip)]
        for name, flip in flips[:MAX_ROWS]
    )
    yield from table(["grader", "sample", "before", "after", "why"], "llrrl", rows)
    if len(flips) > MAX_ROWS:
        yield from ("", f"and {len(flips) - MAX_ROWS:,} more")
    yield ""


def _why(flip: Flip) -> str:
    return "<br>".join([code(flip.why), *(f"{name}: {code(text)}" for name, text in lines_of(flip))])


def _sample(flip: Flip) -> str:
    return code(flip.sample_b) if flip.sample_a == flip.sample_b else f"{code(flip.sample_a)} / {code(flip.sample_b)}"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_ROWS:,} more" if len(names) > MAX_ROWS else ""
    return ", ".join(map(code, names[:MAX_ROWS])) + more
