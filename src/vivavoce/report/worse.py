"""Whether a run is worse than the one before it: the one place where that is decided, and put into words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from vivavoce.comparing.thresholds import compare
from vivavoce.errors import UsageError
from vivavoce.records.reason import Verdict
from vivavoce.report.comparison import (
    Comparison,
    GraderComparison,
    MeanDifference,
    Ruling,
    RulingReason,
    TargetComparison,
)
from vivavoce.report.text import count
from vivavoce.stats.paired import holm_factors

FEWEST = 6
"""Pairs below which even the loss of all is no significant one: the exact sign test gives 5 of 5 a p of 0.06."""

SHOWN = 10
"""Samples that a reason names at most."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What counts as worse: the smallest loss of a mean score that matters, 0 to 1, and whether any break does.

    A sample breaks if it passed in every trial before and passes in none now.
    """

    smallest_effect: float | None = None
    no_breaks: bool = False


_SENTENCES: dict[Verdict, str] = {
    "pass": "not worse than before",
    "fail": "worse than before",
    "inconclusive": "undecided whether it is worse than before",
}


def sentence(ruling: Ruling) -> str:
    """Return the verdict of a ruling in words."""
    return _SENTENCES[ruling.verdict]


def reason_lines(ruling: Ruling) -> list[str]:
    """Return the reasons of a ruling in words, a line for each."""
    return [f"{one.verdict or 'note'} · {one.text}" for one in ruling.reasons]


def ruled(found: Comparison, tolerance: Tolerance) -> Comparison:
    """Return a comparison with the ruling whether its side b is worse than side a.

    A grader is worse if the interval of its difference lies below 0 and the loss is at least the smallest effect; a
    loss of that size that is not certain is undecided. Of several graders or targets the p value of each is adjusted by
    the method of Holm, so that a build in which none changed fails in at most 5% of cases, as with one.

    Undecided are a grader, a tester or samples that are not the same on both sides, fewer than `FEWEST` pairs, and
    errors that could change the verdict. What is worse for certain fails, whatever else is undecided.
    """
    reasons = list(_reasons(found, tolerance, _factors(found)))
    verdicts = {reason.verdict for reason in reasons}
    verdict: Verdict = "fail" if "fail" in verdicts else "inconclusive" if "inconclusive" in verdicts else "pass"
    return found.model_copy(update={"ruling": Ruling(verdict=verdict, reasons=reasons)})


def check_two_runs(found: Comparison) -> None:
    """Refuse to decide whether some scores are worse than themselves.

    Raises:
        UsageError: both sides are the same scores.
    """
    if found.same:
        raise UsageError(
            f"both sides are the scores {found.grading_b}, so neither can be worse; name two runs, the earlier one "
            "first: viva compare latest~1 latest"
        )


Factors = Mapping[tuple[str, str], int]
"""By target and grader, by how much the p value of each has to be multiplied."""


def _factors(found: Comparison) -> Factors:
    p_values = {
        (target.target_b, one.name): one.p_value
        for target in found.targets
        for one in target.graders
        if one.p_value is not None and one.note is None
    }
    level = min((one.level for target in found.targets for one in target.graders), default=0.95)
    return dict(zip(p_values, holm_factors(list(p_values.values()), 1 - level), strict=True))


def _reasons(found: Comparison, tolerance: Tolerance, factors: Factors) -> Iterator[RulingReason]:
    if len(factors) > 1:
        text = f"{len(factors)} comparisons: p values are adjusted (Holm), so that all false alarms together stay at 5%"
        yield RulingReason(verdict=None, text=text)
    if not found.same_tester:
        yield _undecided("the tester changed between the two runs; part of the difference may come from it")
    for kind, names in (("target", found.targets_only_a), ("grader", found.graders_only_a)):
        if names:
            yield _undecided(f"{count(len(names), kind)} of the earlier run only: {_some(names)}")
    for kind, names in (("target", found.targets_only_b), ("grader", found.graders_only_b)):
        if names:
            yield _new(kind, names)
    for target in found.targets:
        named = f"{target.target_b}: " if len(found.targets) > 1 else ""
        for reason in _of_target(target, tolerance, factors):
            yield RulingReason(verdict=reason.verdict, text=f"{named}{reason.text}")


def _of_target(target: TargetComparison, tolerance: Tolerance, factors: Factors) -> Iterator[RulingReason]:
    if target.unmatched_a:
        these = f"{count(len(target.unmatched_a), 'sample')} of the earlier run only"
        yield _undecided(f"the dataset differs: {these}: {_some(target.unmatched_a)}")
    if target.unmatched_b:
        yield _new("sample", target.unmatched_b)
    for one in target.graders:
        yield _of_grader(one, tolerance, factors.get((target.target_b, one.name), 1))
        yield from _of_samples(one, tolerance.no_breaks and one.note is None)


def _of_samples(one: GraderComparison, no_breaks: bool) -> Iterator[RulingReason]:
    kinds: list[tuple[list[str], Verdict | None, str]] = [
        (one.breaks, "fail" if no_breaks else None, "passed in every trial before and in none now"),
        (one.lost if no_breaks else [], "inconclusive", "passed in every trial before and had only errors now"),
        (one.dropped, None, "scored before and skipped now, not compared"),
    ]
    for samples, verdict, what in kinds:
        if samples:
            text = f"{one.name}: {count(len(samples), 'sample')} {what}: {_some(samples)}"
            yield RulingReason(verdict=verdict, text=text)


def _of_grader(one: GraderComparison, tolerance: Tolerance, factor: int) -> RulingReason:
    if one.note is not None:
        return _undecided(f"{one.name}: {one.note}")
    alpha = (1 - one.level) / factor
    changes = (one.at_worst, one.at_best)
    possible = {_verdict(change, tolerance, alpha) for change in changes if change is not None}
    verdict = _verdict(one.change, tolerance, alpha)
    if possible and possible != {verdict}:
        errors = count(one.a.errors + one.b.errors, "error")
        return _undecided(f"{one.name}: {_words(one)}; {errors} could change the result")
    if one.n < FEWEST and verdict == "inconclusive":
        pairs = count(one.n, "sample")
        return _undecided(f"{one.name}: {pairs} on both sides; a loss shows from {FEWEST} on")
    if verdict == "inconclusive":
        return _undecided(f"{one.name}: {_words(one)}; {count(one.n, 'sample')} cannot tell that from chance")
    alone = verdict == "pass" and one.high is not None and one.high < 0 and factor > 1 and one.p_value is not None
    adjusted = f"; below 0 alone, not among all comparisons (adjusted p {factor * (one.p_value or 0):.2g})"
    return RulingReason(verdict=verdict, text=f"{one.name}: {_words(one)}{adjusted if alone else ''}")


def _verdict(change: MeanDifference, tolerance: Tolerance, alpha: float) -> Verdict:
    if change.difference is None or change.low is None or change.high is None:
        return "inconclusive"
    matters = tolerance.smallest_effect
    big = matters is None or compare(change.difference, "lte", -matters)
    certain = compare(change.high, "lt", 0) and change.p_value is not None and compare(change.p_value, "lte", alpha)
    if certain and big:
        return "fail"
    if change.n < FEWEST or (matters is not None and big and compare(change.difference, "lt", 0)):
        return "inconclusive"
    return "pass"


def _words(one: GraderComparison) -> str:
    if one.difference is None:
        return "nothing to compare"
    between = "" if one.low is None else f", {100 * one.level:.4g}% interval {one.low:+.3f} … {one.high:+.3f}"
    return f"{one.difference:+.3f}{between}, n {one.n:,}"


def _undecided(text: str) -> RulingReason:
    return RulingReason(verdict="inconclusive", text=text)


def _new(kind: str, names: list[str]) -> RulingReason:
    return RulingReason(verdict=None, text=f"{count(len(names), f'new {kind}')}, not compared: {_some(names)}")


def _some(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
