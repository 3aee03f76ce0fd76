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
from vivavoce.report.reading import measured_change
from vivavoce.report.text import count
from vivavoce.stats.paired import holm
from vivavoce.stats.planning import fewest_changes

FEWEST = fewest_changes()
"""Pairs below which even the loss of all is not significant: McNemar's exact test gives 5 of 5 a p of 0.06."""

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
    reasons = list(_reasons(found, tolerance, _Family.of(found)))
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


@dataclass(frozen=True, slots=True)
class _Family:
    """The p values of all comparisons that are decided together, by target and grader."""

    p_values: Mapping[tuple[str, str], float]

    @classmethod
    def of(cls, found: Comparison) -> _Family:
        """Return those of graders that are the same on both sides."""
        return cls(
            {
                (target.target_b, one.name): one.p_value
                for target in found.targets
                for one in target.graders
                if one.p_value is not None and one.note is None
            }
        )

    def adjusted(self, key: tuple[str, str], p_value: float) -> float:
        """Return the p value that a comparison has among all, if its own is `p_value`."""
        p_values = {**self.p_values, key: p_value}
        return dict(zip(p_values, holm(list(p_values.values())), strict=True))[key]


def _reasons(found: Comparison, tolerance: Tolerance, family: _Family) -> Iterator[RulingReason]:
    if (number := len(family.p_values)) > 1:
        text = f"{number} comparisons: p values are adjusted (Holm), so that all false alarms together stay at 5%"
        yield RulingReason(verdict=None, text=text)
    if not found.same_tester:
        yield _undecided("the tester changed between the two runs; part of the difference may come from it")
    for kind, names in (("target", found.targets_only_a), ("grader", found.graders_only_a)):
        if names:
            yield _undecided(f"{count(len(names), kind)} of the earlier run only: {_some(names)}")
    for kind, names in (("target", found.targets_only_b), ("grader", found.graders_only_b)):
        if names:
            yield _new(kind, names)
    if found.targets and all(one.measured and not one.n for target in found.targets for one in target.graders):
        yield _undecided("no grader has a threshold that says what is worse: {metric: …, threshold: …}")
    for target in found.targets:
        named = f"{target.target_b}: " if len(found.targets) > 1 else ""
        for reason in _of_target(target, tolerance, family):
            yield RulingReason(verdict=reason.verdict, text=f"{named}{reason.text}")


def _of_target(target: TargetComparison, tolerance: Tolerance, family: _Family) -> Iterator[RulingReason]:
    if target.unmatched_a:
        these = f"{count(len(target.unmatched_a), 'sample')} of the earlier run only"
        yield _undecided(f"the dataset differs: {these}: {_some(target.unmatched_a)}")
    if target.unmatched_b:
        yield _new("sample", target.unmatched_b)
    for one in target.graders:
        if one.measured is not None and not one.n:
            yield RulingReason(verdict=None, text=f"{measured_change(one)}, which decides nothing without a threshold")
            continue
        yield _of_grader(one, tolerance, family, target.target_b)
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


def _of_grader(one: GraderComparison, tolerance: Tolerance, family: _Family, target: str) -> RulingReason:
    if one.note is not None:
        return _undecided(f"{one.name}: {one.note}")

    def verdict_of(change: MeanDifference) -> Verdict:
        p_value = None if change.p_value is None else family.adjusted((target, one.name), change.p_value)
        return _verdict(change, p_value, tolerance, 1 - one.level)

    possible = {verdict_of(change) for change in (one.at_worst, one.at_best) if change is not None}
    verdict = verdict_of(one.change)
    if possible and possible != {verdict}:
        errors = count(one.a.errors + one.b.errors, "error")
        return _undecided(f"{one.name}: {_words(one)}; {errors} could change the result")
    if one.n < FEWEST and verdict == "inconclusive":
        pairs = count(one.n, "sample")
        return _undecided(f"{one.name}: {pairs} on both sides; a loss shows from {FEWEST} on")
    if verdict == "inconclusive":
        return _undecided(f"{one.name}: {_words(one)}; {count(one.n, 'sample')} cannot tell that from chance")
    note = ""
    if verdict == "pass" and one.high is not None and one.high < 0 and one.p_value is not None:
        adjusted = family.adjusted((target, one.name), one.p_value)
        if adjusted > 1 - one.level:
            note = f"; not certain among {len(family.p_values)} comparisons (adjusted p {adjusted:.2g})"
    return RulingReason(verdict=verdict, text=f"{one.name}: {_words(one)}{note}")


def _verdict(change: MeanDifference, p_value: float | None, tolerance: Tolerance, alpha: float) -> Verdict:
    """Return the verdict of a change with its p value among all comparisons."""
    if change.difference is None or change.low is None or change.high is None:
        return "inconclusive"
    matters = tolerance.smallest_effect
    big = matters is None or compare(change.difference, "lte", -matters)
    certain = compare(change.high, "lt", 0) and p_value is not None and compare(p_value, "lte", alpha)
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
