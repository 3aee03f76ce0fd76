"""A run of which only some conversations of a file were judged, in words: what its rates are estimates of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from vivavoce.errors import UsageError
from vivavoce.plugins import lazy
from vivavoce.records.run import Run, Sampling
from vivavoce.report.best_target import target_names
from vivavoce.report.text import count, one_line
from vivavoce.run.summary import GraderSummary, Summary
from vivavoce.safe_text import safe

if TYPE_CHECKING:
    from vivavoce.report.comparison import Side
    from vivavoce.report.html.trend_plot import Point
    from vivavoce.store.browse.listing import Headline

_GROUPS_SHOWN = 5


def judged_text(one: GraderSummary | Headline | Point | Side) -> str:
    """Return how many conversations were judged of how many; empty where all were."""
    if one.population is None:
        return ""
    return f"{one.scored + one.errors + one.skipped:,} of {one.population:,} judged"


def estimate_text(one: GraderSummary) -> str:
    """Return how many of all conversations pass, with the interval; empty where all were judged."""
    if one.population is None:
        return ""
    judged = judged_text(one)
    if one.pass_rate is None:
        return f"no estimate: {judged}, and none has a score"
    found = "" if one.pass_low is None or one.pass_high is None else f" [{one.pass_low:.1%}, {one.pass_high:.1%}]"
    of = "conversations" if not one.skipped else "conversations that it applies to"
    return f"{one.pass_rate:.1%}{found} of all {of} pass, estimated: {judged}"


def sampled_lines(summary: Summary) -> Iterator[str]:
    """Yield how conversations were drawn, what each grader says of all of them, and what half the width takes."""
    sampling = summary.sampling
    if sampling is None:
        return
    yield safe(drawn_text(sampling))
    several = len(target_names(summary)) > 1
    for one in summary.graders:
        yield f"{safe(f'{one.name} of {one.target}' if several else one.name)}: {estimate_text(one)}"
    if summary.attempts < sampling.drawn:
        so_far = f"{summary.attempts:,} of the {sampling.drawn:,} drawn are judged, from the beginning of the file"
        yield f"{so_far}: it may not be like the rest"
    else:
        yield f"for half the width: {_half(sampling, summary.graders)}"


def drawn_text(sampling: Sampling) -> str:
    """Return how conversations were drawn; what strata are called may come from a file."""
    of = f"drawn: {sampling.drawn:,} of {count(sampling.population, 'conversation')}"
    if sampling.by:
        found = [f"{one_line(one.name, 60)} ({one.drawn:,} of {one.size:,})" for one in sampling.strata]
        more = len(found) - _GROUPS_SHOWN
        shown = "; ".join(found[:_GROUPS_SHOWN]) + (f"; and {more} more" if more > 0 else "")
        how = f", in proportion from {count(len(found), 'group')} by {', '.join(sampling.by)}: {shown}"
    else:
        how = ", at random"
    weight = "" if sampling.weight_by is None else f", more often where there is more {sampling.weight_by}"
    return of + (f"{weight}{how}" if sampling.by else f"{weight or how}")


def _half(sampling: Sampling, graders: Iterable[GraderSummary]) -> str:
    """Return how many conversations have to be judged, so that the interval of every grader has half the width."""
    rates = [grader.pass_rate for grader in graders if grader.pass_rate is not None] or [0.5]
    count_for = lazy("vivavoce.stats.sampled:drawn_for_half_width")
    size = max(count_for(sampling.drawn, sampling.population, rate) for rate in rates)
    if size >= sampling.population:
        return f"judge all {sampling.population:,}"
    return f"about {size - sampling.drawn:,} more, --sample {size}"


def uneven_note(run: Run) -> str | None:
    """Return why conversations of a run are no picture of all as they are, None where they are one."""
    if run.sampling is None or run.sampling.even:
        return None
    return f"run {run.id} judged conversations that were drawn with unequal probabilities, or by groups"


def check_even(run: Run, what: str) -> None:
    """Refuse what would take the judged conversations of a run for all.

    Raises:
        UsageError: they were drawn with unequal probabilities.
    """
    if note := uneven_note(run):
        raise UsageError(f"{note}, so {what}; its summary has the estimates for all")
