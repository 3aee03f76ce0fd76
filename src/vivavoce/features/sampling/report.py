"""What a report says about conversations that were drawn from more: how, what holds for all, and how to know more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from vivavoce.records.run import Sampling
from vivavoce.report.details import estimate_lines
from vivavoce.report.text import count, one_line
from vivavoce.run.summary import GraderSummary, Summary
from vivavoce.stats.sampled import size_for_half_width

_GROUPS_SHOWN = 5


def sampling_lines(summary: Summary) -> Iterator[str]:
    """Yield how conversations were drawn, what each grader says of all of them, and what half the width takes."""
    sampling = summary.sampling
    if sampling is None:
        return
    yield drawn_text(sampling)
    yield from estimate_lines(summary)
    if summary.attempts < sampling.drawn_count:
        so_far = (
            f"{summary.attempts:,} of the {sampling.drawn_count:,} drawn are judged, from the beginning of the file"
        )
        yield f"{so_far}; the rest may differ"
    else:
        yield f"for half the width: {_half(sampling, summary.graders)}"


def drawn_text(sampling: Sampling) -> str:
    """Return how conversations were drawn; what strata are called may come from a file."""
    of = f"drawn: {sampling.drawn_count:,} of {count(sampling.population, 'conversation')}"
    if sampling.by:
        groups = [
            f"{one_line(stratum.name, 60)} ({stratum.drawn:,} of {stratum.size:,})" for stratum in sampling.strata
        ]
        more = len(groups) - _GROUPS_SHOWN
        first_groups = "; ".join(groups[:_GROUPS_SHOWN]) + (f"; and {more} more" if more > 0 else "")
        how = f", in proportion from {count(len(groups), 'group')} by {', '.join(sampling.by)}: {first_groups}"
    else:
        how = ", at random"
    weight = "" if sampling.weight_by is None else f", weighted by {sampling.weight_by}"
    return of + (f"{weight}{how}" if sampling.by else f"{weight or how}")


def _half(sampling: Sampling, graders: Iterable[GraderSummary]) -> str:
    """Return how many conversations have to be judged, so that the interval of every grader has half the width."""
    rates = [grader.pass_rate for grader in graders if grader.pass_rate is not None] or [0.5]
    size = max(size_for_half_width(sampling.drawn_count, sampling.population, rate) for rate in rates)
    if size >= sampling.population:
        return f"judge all {sampling.population:,}"
    return f"about {size - sampling.drawn_count:,} more, --sample {size}"
