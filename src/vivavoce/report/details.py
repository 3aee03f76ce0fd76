"""What a run used, how long replies took, and where scores vary: in lines for every reader of a summary."""

from __future__ import annotations

from vivavoce.records.details import SkipSummary, VarianceSummary, by_role
from vivavoce.report.as_recorded import recorded_lines
from vivavoce.report.text import count
from vivavoce.run.summary import Summary

NOTICEABLE = 0.1
"""Seconds of a 95th percentile below which replies are not worth a line."""


def detail_lines(summary: Summary) -> list[str]:
    """Return a line for each thing that is known, without markup; names in it are as the suite has them."""
    return [
        *skip_lines(summary),
        *recorded_lines(summary),
        *spent_lines(summary),
        *usage_lines(summary),
        *latency_lines(summary),
        *variance_lines(summary),
    ]


def tags_line(summary: Summary) -> str:
    """Return how many tags the table of tags leaves out, in words; empty for none."""
    return f"and {count(summary.more_tags, 'more tag')}, of no more samples than these" if summary.more_tags else ""


def skip_lines(summary: Summary) -> list[str]:
    """Return for each grader that did not apply to every conversation how many it skipped, and why."""
    several = len({one.target for one in summary.graders}) > 1
    return [f"{one.name}{f' of {one.target}' if several else ''} skipped {skip_text(one)}" for one in summary.skips]


def skip_text(one: SkipSummary) -> str:
    """Return how many conversations a grader skipped, and why."""
    return f"{one.skipped:,} of {count(one.conversations, 'conversation')}: {_skip_reasons(one)}"


def _skip_reasons(one: SkipSummary) -> str:
    if len(one.reasons) == 1 and not one.other:
        return next(iter(one.reasons)) or "it does not apply"
    told = [f"{reason or 'it does not apply'} ({number:,})" for reason, number in one.reasons.items()]
    return "; ".join([*told, *([f"other reasons ({one.other:,})"] if one.other else [])])


def spent_lines(summary: Summary) -> list[str]:
    """Return how many trials were made where fewer than planned could be enough, and what the intervals are of."""
    found = summary.trials
    if found is None:
        return []
    of = "" if found.planned is None else f" of {found.planned:,}"
    spent = f"{found.spent:,}{of} conversation{'s' * ((found.planned or found.spent) != 1)}"
    if summary.stopped is not None:
        said = f"{spent} so far"
    elif found.half_width is None:
        said = f"{spent} {'were enough to decide' if found.met else 'did not decide'} the gate"
    else:
        aim = f"the {found.of} to ±{found.half_width:g}"
        said = f"{spent} {'were enough to know' if found.met else 'were too few to know'} {aim}"
    if found.by_sample:
        return [f"trials: {said}; samples differ in their number of trials, so means have no interval"]
    return [f"trials: {said}; intervals hold at any time, and are of these samples, not of others like them"]


def usage_lines(summary: Summary) -> list[str]:
    """Return what the run used, by role."""
    used = by_role(summary.usage)
    return [f"used: {used}"] if used else []


def latency_lines(summary: Summary) -> list[str]:
    """Return how long the replies of each target took."""
    several = len(summary.latency) > 1
    return [
        f"replies{f' of {one.target}' if several else ''}: {one.p50:.2f} s median, {one.p95:.2f} s 95th percentile "
        f"(n {one.replies:,})"
        for one in summary.latency
        if one.p95 >= NOTICEABLE
    ]


def variance_lines(summary: Summary) -> list[str]:
    """Return where the scores of each grader vary, in shares of their variance."""
    several = len({one.target for one in summary.variance}) > 1
    lines = [(one, variance_text(one)) for one in summary.variance]
    return [f"{one.name}{f' of {one.target}' if several else ''} varies: {text}" for one, text in lines if text]


def variance_text(one: VarianceSummary) -> str:
    """Return the shares of a variance, and what was not measured; empty where the scores do not vary.

    One sample has no shares, since nothing says how samples differ.
    """
    parts = [("samples", one.samples), ("target", one.trials), ("judge", one.judgements)]
    whole = sum(value or 0.0 for _, value in parts)
    if not whole:
        return ""
    if one.samples is None:
        return "shares cannot be estimated from one sample"
    shares = ", ".join(f"{value / whole:.0%} {name}" for name, value in parts if value is not None)
    missing = [
        *(["the target (one trial of each sample)"] if one.trials is None else []),
        *(["the judge (one judgement of each conversation)"] if one.judgements is None and one.judged else []),
    ]
    estimated = "" if one.counted is None else f" (estimated from {count(one.counted, 'sample')})"
    return f"{shares}{estimated}; not measured: {' and '.join(missing)}" if missing else shares + estimated
