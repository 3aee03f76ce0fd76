"""Whether a run is worse than the one before it: the one place where that is decided, and put into words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rich.console import RenderableType
from rich.text import Text

from vivavoce.comparing.thresholds import compare
from vivavoce.errors import UsageError
from vivavoce.records.run import Verdict
from vivavoce.report.comparison.comparison import (
    Comparison,
    GraderComparison,
    MeanDifference,
    Ruling,
    RulingReason,
    TargetComparison,
    measured_change,
    p_text,
)
from vivavoce.report.terminal import STYLES
from vivavoce.report.text import Labelled, count
from vivavoce.safe_text import safe
from vivavoce.stats.paired import holm
from vivavoce.stats.planning import fewest_changes

MAX_SAMPLES = 10
"""Samples that a reason names at most."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What counts as worse: the smallest loss of a mean score that matters, 0 to 1, and whether any break does.

    A sample breaks if it passed in every trial before and passes in none now.
    """

    smallest_effect: float | None = None
    no_breaks: bool = False

    def matters(self, change: MeanDifference) -> bool:
        """Say whether a change is a loss that matters, if it is certain."""
        smallest = self.smallest_effect
        return smallest is None or (change.difference is not None and compare(change.difference, "lte", -smallest))


def reason_lines(ruling: Ruling) -> list[str]:
    """Return the reasons of a ruling in words, a line for each."""
    return [f"{reason.verdict or 'note'} · {reason.text}" for reason in ruling.reasons]


def add_ruling(comparison: Comparison, tolerance: Tolerance) -> Comparison:
    """Return a comparison with the ruling whether its side b is worse than side a.

    Each grader has a one-sided test of its mean, and a graded one with a threshold another of its passes. Of several
    tests the p values are adjusted by the method of Holm, so that a build in which nothing changed fails in at most 5%
    of cases, as with one. The verdict of a grader is

    - `fail` if an adjusted p value is at most 5%, and the mean falls by the smallest effect or more,
    - `inconclusive` if only a p value alone is, or if the mean is lower and the sign-flip test says with 2.5% that the
      answers differ. With a smallest effect: if the mean falls by as much, and the loss is not certain,
    - `pass` otherwise: no loss is shown, and one that the interval holds is not excluded.

    Undecided are also a grader, a tester or samples that are not the same on both sides, pairs too few to show any
    loss, and errors that could change the verdict. What is worse for certain fails, whatever else is undecided.
    """
    reasons = list(_reasons(comparison, tolerance, _Family.of(comparison)))
    verdicts = {reason.verdict for reason in reasons}
    verdict: Verdict = "fail" if "fail" in verdicts else "inconclusive" if "inconclusive" in verdicts else "pass"
    ruling = Ruling(verdict=verdict, sentence=_sentence(verdict, comparison, tolerance), reasons=reasons)
    return comparison.model_copy(update={"ruling": ruling})


def _sentence(verdict: Verdict, comparison: Comparison, tolerance: Tolerance) -> str:
    if verdict == "fail":
        return "worse than before"
    if verdict == "inconclusive":
        return "undecided whether it is worse than before"
    lows = [grader.low for target in comparison.targets for grader in target.graders if grader.low is not None]
    smallest = tolerance.smallest_effect
    text = "no loss shown" if smallest is None else f"no loss of {smallest:g} or more detected"
    return text + _not_excluded(min(lows, default=None))


def _not_excluded(low: float | None) -> str:
    """Return in words how large a loss may still be, if its interval ends at `low`."""
    return "" if low is None or low >= 0 else f"; a loss up to {-low:.3f} is not excluded"


def check_two_runs(comparison: Comparison) -> None:
    """Refuse to decide whether some scores are worse than themselves.

    Raises:
        UsageError: both sides are the same scores.
    """
    if comparison.same:
        raise UsageError(
            f"both sides are the grading {comparison.grading_b}, so neither can be worse; name two runs, the "
            "earlier one first: viva compare latest~1 latest"
        )


_Subject: TypeAlias = Literal["mean", "passes"]
_Key: TypeAlias = tuple[str, str, _Subject]
"""A target, a grader, and what of it is tested."""


@dataclass(frozen=True, slots=True)
class _Test:
    """A one-sided test for a loss, and the least p value that as many flips could have."""

    p_value: float
    least: float


def _tests(change: MeanDifference) -> Iterator[tuple[_Subject, _Test]]:
    """Yield the tests of a change."""
    if (loss := change.loss) is None:
        return
    yield "mean", _Test(loss.p_value, loss.least_p_value)
    if loss.passes_p_value is not None:
        yield "passes", _Test(loss.passes_p_value, 0.5 ** (loss.passes_lost + loss.passes_gained))


@dataclass(frozen=True, slots=True)
class _Family:
    """All tests that are decided together; `alpha` is the chance that any of them is a false alarm.

    A test that cannot be significant among the others, because too few samples flip, takes no part: it would only make
    them weaker.

    Source: S. Holm, see `holm`; R. E. Tarone, A Modified Bonferroni Method for Discrete Data, Biometrics 46 (1990).
    """

    tests: Mapping[_Key, _Test]
    alpha: float

    @classmethod
    def of(cls, comparison: Comparison) -> _Family:
        """Return those of graders that are the same on both sides."""
        graders = [(target.target_b, grader) for target in comparison.targets for grader in target.graders]
        tests: dict[_Key, _Test] = {
            (target, grader.name, subject): test
            for target, grader in graders
            if grader.note is None
            for subject, test in _tests(grader.change)
        }
        level = min((grader.level for _, grader in graders), default=0.95)
        return cls(tests, round(1 - level, 12))

    @property
    def reachable_tests(self) -> list[_Key]:
        """The tests that could be significant: those that reach alpha / k, for the least k that is not exceeded."""
        reachable: list[_Key] = []
        for number in range(1, len(self.tests) + 1):
            reachable = [key for key, test in self.tests.items() if test.least <= self.alpha / number]
            if len(reachable) <= number:
                break
        return reachable

    def with_change(self, target: str, grader: str, change: MeanDifference) -> _Family:
        """Return the family with other tests of a grader."""
        others = {key: test for key, test in self.tests.items() if key[:2] != (target, grader)}
        return _Family({**others, **{(target, grader, subject): test for subject, test in _tests(change)}}, self.alpha)

    def adjust_p_values(self, target: str, grader: str) -> dict[_Subject, float]:
        """Return the p values that the tests of a grader have among all."""
        reachable = self.reachable_tests
        adjusted = dict(zip(reachable, holm([self.tests[key].p_value for key in reachable]), strict=True))
        return {
            key[2]: adjusted.get(key, min(1.0, test.p_value * len(self.tests)))
            for key, test in self.tests.items()
            if key[:2] == (target, grader)
        }


def _reasons(comparison: Comparison, tolerance: Tolerance, family: _Family) -> Iterator[RulingReason]:
    if (number := len(family.tests)) > 1:
        left = number - len(family.reachable_tests)
        some = f"; too few flips to show a loss, so not counted: {left:,}"
        text = f"{number:,} tests: p values are adjusted (Holm), so that all false alarms together stay at 5%"
        yield RulingReason(verdict=None, text=text + (some if left else ""))
    if not comparison.same_tester:
        yield _inconclusive_reason("the tester changed between the two runs; part of the difference may come from it")
    for kind, names in (("target", comparison.targets_only_a), ("grader", comparison.graders_only_a)):
        if names:
            yield _inconclusive_reason(f"{count(len(names), kind)} only in the earlier run: {_some(names)}")
    for kind, names in (("target", comparison.targets_only_b), ("grader", comparison.graders_only_b)):
        if names:
            yield _new(kind, names)
    graders = [grader for target in comparison.targets for grader in target.graders]
    if graders and all(grader.measured and not grader.n for grader in graders):
        yield _inconclusive_reason("no grader has a threshold that says what is worse: {metric: …, threshold: …}")
    for target in comparison.targets:
        prefix = f"{target.target_b}: " if len(comparison.targets) > 1 else ""
        for reason in _of_target(target, tolerance, family):
            yield RulingReason(verdict=reason.verdict, text=f"{prefix}{reason.text}")


def _of_target(target: TargetComparison, tolerance: Tolerance, family: _Family) -> Iterator[RulingReason]:
    if target.unmatched_a:
        these = f"{count(len(target.unmatched_a), 'sample')} only in the earlier run"
        yield _inconclusive_reason(f"the dataset differs: {these}: {_some(target.unmatched_a)}")
    if target.unmatched_b:
        yield _new("sample", target.unmatched_b)
    for grader in target.graders:
        if grader.measured is not None and not grader.n:
            yield RulingReason(
                verdict=None, text=f"{measured_change(grader)}, which decides nothing without a threshold"
            )
            continue
        yield _of_grader(grader, tolerance, family, target.target_b)
        yield from _of_samples(grader, tolerance.no_breaks and grader.note is None)


def _of_samples(grader: GraderComparison, no_breaks: bool) -> Iterator[RulingReason]:
    kinds: list[tuple[list[str], Verdict | None, str]] = [
        (grader.breaks, "fail" if no_breaks else None, "passed all trials before and none now"),
        (grader.lost if no_breaks else [], "inconclusive", "passed all trials before and had only errors now"),
        (grader.dropped, None, "scored before and skipped now, not compared"),
    ]
    for samples, verdict, what in kinds:
        if samples:
            text = f"{grader.name}: {count(len(samples), 'sample')} {what}: {_some(samples)}"
            yield RulingReason(verdict=verdict, text=text)


def _of_grader(grader: GraderComparison, tolerance: Tolerance, family: _Family, target: str) -> RulingReason:
    if grader.note is not None:
        return _inconclusive_reason(f"{grader.name}: {grader.note}")

    def decide(change: MeanDifference) -> tuple[Verdict, str]:
        changed = family.with_change(target, grader.name, change)
        return _decide(change, changed.adjust_p_values(target, grader.name), tolerance, changed)

    possible = {decide(change)[0] for change in (grader.at_worst, grader.at_best) if change is not None}
    verdict, why = decide(grader.change)
    if possible and possible != {verdict}:
        verdict, why = "inconclusive", f"; {count(grader.a.errors + grader.b.errors, 'error')} could change the result"
    return RulingReason(verdict=verdict, text=f"{grader.name}: {_words(grader)}{why}")


def _decide(
    change: MeanDifference, adjusted: Mapping[_Subject, float], tolerance: Tolerance, family: _Family
) -> tuple[Verdict, str]:
    """Return the verdict of a change, and why, behind its figures; `adjusted` are its p values among all tests."""
    alpha, samples, loss = family.alpha, count(change.n, "sample"), change.loss
    among = f" among {len(family.tests):,} tests" if len(family.tests) > 1 else ""
    lowest = min(adjusted.values(), default=1.0)
    certain = lowest <= alpha
    if certain and tolerance.matters(change):
        return "fail", f"; adjusted p {p_text(lowest)}{among}" if among else ""
    fewest = fewest_changes(1 - 2 * alpha)
    if change.difference is None or loss is None or change.n < fewest:
        return "inconclusive", f"; {samples} cannot show a loss: it takes at least {fewest}"
    if (smallest := tolerance.smallest_effect) is not None:
        if tolerance.matters(change) and change.difference < 0:
            return "inconclusive", f"; with {samples} this may be chance"
        return "pass", f"; less than {smallest:g}, the smallest loss that matters" if change.difference < 0 else ""
    if any(test.p_value <= alpha for _, test in _tests(change)):
        return "inconclusive", f"; worse by itself, not significant{among} (adjusted p {p_text(lowest)})"
    flip = loss.sign_flip_p_value
    if change.difference < 0 and flip is not None and flip <= alpha / 2:
        why = f"scores are lower and the answers differ (sign-flip p {p_text(flip)})"
        return "inconclusive", f"; {why}, but {samples} cannot rule out a rare large gain"
    return "pass", f"; no loss shown{_not_excluded(change.low)}"


def _words(grader: GraderComparison) -> str:
    """Return the figures of a grader: the estimate with its interval, and the one-sided tests that decide."""
    if grader.difference is None:
        return "nothing to compare"
    level = f"{100 * grader.level:.4g}%"
    parts = [f"{grader.difference:+.3f}"]
    if grader.low is not None:
        parts.append(f"{level} interval {grader.low:+.3f} … {grader.high:+.3f}")
    if (loss := grader.loss) is not None:
        parts.append(f"one-sided {level} bound {loss.bound:+.3f}, p {p_text(loss.p_value)}")
        if loss.passes_p_value is not None:
            lost = f"{loss.passes_lost:,} lost, {loss.passes_gained:,} gained"
            parts.append(f"passes {lost}, p {p_text(loss.passes_p_value)}")
    return ", ".join([*parts, f"n {grader.n:,}"])


def _inconclusive_reason(text: str) -> RulingReason:
    return RulingReason(verdict="inconclusive", text=text)


def _new(kind: str, names: list[str]) -> RulingReason:
    return RulingReason(verdict=None, text=f"{count(len(names), f'new {kind}')}, not compared: {_some(names)}")


def _some(names: list[str]) -> str:
    more = f" and {len(names) - MAX_SAMPLES:,} more" if len(names) > MAX_SAMPLES else ""
    return ", ".join(names[:MAX_SAMPLES]) + more


def ruling_lines(ruling: Ruling) -> Iterator[RenderableType]:
    """Yield whether the later run is worse, and each reason."""
    yield Text()
    yield Text(f"{ruling.verdict.upper()}: {ruling.sentence}", style=STYLES[ruling.verdict])
    for line in reason_lines(ruling):
        yield Labelled(Text("  "), Text(safe(line)))
