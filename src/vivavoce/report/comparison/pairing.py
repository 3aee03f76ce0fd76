"""Two gradings compared: the same scenarios, paired, with what changed and how certain that is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from vivavoce.errors import NotFound, UsageError
from vivavoce.extensions import description
from vivavoce.records.run import Grading
from vivavoce.report.comparison.changes import Change, changes_between, metric_change
from vivavoce.report.comparison.comparison import (
    Comparison,
    Flip,
    GraderComparison,
    Loss,
    MeanDifference,
    MeasuredChange,
    Side,
    TargetComparison,
)
from vivavoce.report.comparison.sides import GradedSide, Origin, Pairing, SampleScores, Scenarios, pair, side_of
from vivavoce.report.details import check_even
from vivavoce.report.worst_samples import why
from vivavoce.run.summary import Summary
from vivavoce.stats.paired import PairedDifference, difference_of, worse_sign_test
from vivavoce.stats.resampling import sign_flip_p_value
from vivavoce.store.browse.scenarios import ScoreText
from vivavoce.store.browse.series import Graded
from vivavoce.store.store import Store

_FLIPS = TypeAdapter(list[Flip])


def compare(
    store: Store,
    grading_a: Grading | GradedSide,
    grading_b: Grading,
    target_a: str | None = None,
    target_b: str | None = None,
    *,
    reasons: bool = True,
    level: float = 0.95,
) -> Comparison:
    """Compare two gradings, or a grading with a side that is not in the store, such as a baseline.

    Samples are paired by their content (see `pair`), and the trials of one are averaged first. Targets are compared by
    name; a single target on each side is compared whatever the names, and so are the targets named here. Conversations
    are not read. Without `reasons` no flip has a `why`; see `reasons_of`. `level` is that of the intervals.

    Raises:
        UsageError: a named target does not exist, no target is on both sides, or the conversations of a side were
        drawn with unequal probabilities.
    """
    for side in (grading_a, grading_b):
        if isinstance(side, Grading):
            check_even(store.run(side.run_id), "their scores cannot be compared one by one")
    a = grading_a if isinstance(grading_a, GradedSide) else _side(store, grading_a)
    b = _side(store, grading_b)
    pairs = _targets(a, b, target_a, target_b)
    others_a, others_b = ([], []) if target_a or target_b else (list(a.targets), list(b.targets))
    return Comparison(
        suite_a=a.origin.suite,
        run_a=a.origin.run,
        grading_a=a.origin.grading,
        suite_b=b.origin.suite,
        run_b=b.origin.run,
        grading_b=b.origin.grading,
        targets=[_Both(a, b, *both, level).compare(store if reasons else None) for both in pairs],
        targets_only_a=[name for name in others_a if name not in {first for first, _ in pairs}],
        targets_only_b=[name for name in others_b if name not in {other for _, other in pairs}],
        graders_only_a=[name for name in a.graders if name not in b.graders],
        graders_only_b=[name for name in b.graders if name not in a.graders],
        same_tester=a.origin.tester == b.origin.tester,
        changes=_changes(store, grading_a, grading_b, pairs) if isinstance(grading_a, Grading) else [],
        notes=[*_suites(a.origin, b.origin), *_partial(store, grading_a, grading_b)],
    )


def _changes(store: Store, a: Grading, b: Grading, targets: Sequence[tuple[str, str]]) -> list[Change]:
    """Return what changed besides the graders, each change of several targets once."""
    before, after = (Graded(store.run(grading.run_id), grading) for grading in (a, b))
    changes: list[Change] = []
    for both in targets:
        changes += [change for change in changes_between(before, after, both) if change not in changes]
    return changes


def _suites(a: Origin, b: Origin) -> Iterator[str]:
    if a.suite != b.suite:
        yield f"these are runs of two suites, {a.suite} and {b.suite}"


def _partial(store: Store, *sides: Grading | GradedSide) -> Iterator[str]:
    for run in (store.run(side.run_id) for side in sides if isinstance(side, Grading)):
        if run.partial_of is not None:
            special, part = description(run), f"is partial: reruns part of {run.partial_of}"
            yield f"{run.id} {part if special is None else f'is a {special.words}'}"
        if (sampling := run.sampling) is not None:
            yield f"{run.id} judged {sampling.drawn_count:,} of {sampling.population:,} conversations, drawn at random"


def reasons_of(store: Store, grading: Grading, name: str, attempts: Sequence[tuple[int, str]]) -> dict[str, str]:
    """Return by sample the reason of a grader, or of the reward, for the lowest trial, in one line each.

    `attempts` are the numbers of the attempts of some samples, each with its sample; of equal trials the first counts.
    """
    scores = store.scenarios.lowest_scores(grading, name, [number for number, _ in attempts])
    lowest: dict[str, ScoreText] = {}
    for number, sample in attempts:
        score = scores.get(number)
        if score is None or score.value is None:
            continue
        known = lowest.get(sample)
        if known is None or known.value is None or score.value < known.value:
            lowest[sample] = score
    return {sample: why(name, score) for sample, score in lowest.items()}


def _side(store: Store, grading: Grading) -> GradedSide:
    return side_of(Origin.of(store.run(grading.run_id), grading), store.scenarios.scores(grading), grading)


def _targets(a: GradedSide, b: GradedSide, target_a: str | None, target_b: str | None) -> list[tuple[str, str]]:
    firsts, others = list(a.targets), list(b.targets)
    for name, known, origin in ((target_a, firsts, a.origin), (target_b, others, b.origin)):
        if name is not None and name not in known:
            raise NotFound("target", name, within=f"run {origin.run}", known=known)
    if (target := target_a or target_b) is not None:
        return [(target_a or _counterpart(target, a), target_b or _counterpart(target, b))]
    if len(firsts) == len(others) == 1:
        return [(firsts[0], others[0])]
    both = [(name, name) for name in firsts if name in others]
    if not both:
        known = f"{', '.join(firsts) or 'none'} and {', '.join(others) or 'none'}"
        how = "name the two targets to compare: --target-a NAME --target-b NAME"
        raise UsageError(f"the runs have no common target (they have {known}); {how}")
    return both


def _counterpart(other: str, side: GradedSide) -> str:
    known = list(side.targets)
    if other in known or len(known) == 1:
        return other if other in known else known[0]
    raise NotFound("target", other, within=f"run {side.origin.run}", hint=f"; known: {', '.join(known) or 'none'}")


@dataclass(frozen=True, slots=True)
class _Pairs:
    """The pairs of two targets: the names of their samples, and the places of these among all samples of each side."""

    firsts: Sequence[str]
    others: Sequence[str]
    places_a: NDArray[np.intp]
    places_b: NDArray[np.intp]

    @classmethod
    def of(cls, pairing: Pairing, a: Scenarios, b: Scenarios) -> _Pairs:
        """Return the pairs of the samples of two targets."""
        firsts, others = [first for first, _ in pairing.pairs], [other for _, other in pairing.pairs]
        return cls(firsts, others, _places(firsts, a), _places(others, b))

    def select(self, mask: NDArray[np.bool_]) -> list[str]:
        """Return the samples of side b in the chosen pairs."""
        return list(compress(self.others, mask.tolist()))


def _places(samples: Sequence[str], among: Iterable[str]) -> NDArray[np.intp]:
    known = {sample: place for place, sample in enumerate(among)}
    return np.fromiter(map(known.__getitem__, samples), dtype=np.intp, count=len(samples))


@dataclass(frozen=True, slots=True)
class _Both:
    """Two targets that are compared."""

    a: GradedSide
    b: GradedSide
    target_a: str
    target_b: str
    level: float

    def compare(self, store: Store | None) -> TargetComparison:
        """Compare them; the reasons are read from a store."""
        a, b = self.a.targets[self.target_a], self.b.targets[self.target_b]
        pairing = pair(a.samples, b.samples)
        pairs = _Pairs.of(pairing, a.samples, b.samples)
        return TargetComparison(
            target_a=self.target_a,
            target_b=self.target_b,
            matched=len(pairing.pairs),
            unmatched_a=list(pairing.only_a),
            unmatched_b=list(pairing.only_b),
            graders=[self._grader(name, pairs, store) for name in self.a.graders if name in self.b.graders],
        )

    def _grader(self, name: str, pairs: _Pairs, store: Store | None) -> GraderComparison:
        target_a, target_b = self.a.targets[self.target_a], self.b.targets[self.target_b]
        a, b = target_a.means(name).at(pairs.places_a), target_b.means(name).at(pairs.places_b)
        shared = a.scored & b.scored
        fell, rose = shared & a.passes & ~b.passes, shared & b.passes & ~a.passes
        note = self._note(name)
        comparison = GraderComparison(
            name=name,
            a=_counts(self.a, self.target_a, name),
            b=_counts(self.b, self.target_b, name),
            n=int(np.count_nonzero(shared)),
            passed=int(np.count_nonzero(shared & a.passes & b.passes)),
            breaks=pairs.select(fell & b.never),
            lost=pairs.select(b.lost & a.passes),
            broke=pairs.select(b.lost & a.scored),
            fixed=pairs.select(a.lost & b.scored),
            dropped=pairs.select(a.scored & ~b.scored & ~b.lost),
            worsened=self._flips(name, pairs, (a, b), fell, store, worse=True),
            improved=self._flips(name, pairs, (a, b), rose, store, worse=False),
            same_fingerprint=note is None,
            comparable=self._comparable(name),
            level=self.level,
            note=note,
            at_worst=self._with_errors(name, pairs, 1.0, 0.0),
            at_best=self._with_errors(name, pairs, 0.0, 1.0),
            measured=_measured_change(
                target_a.measurements(name)[pairs.places_a], target_b.measurements(name)[pairs.places_b]
            ),
        )
        return comparison.model_copy(update=self._difference(name, a, b))

    def _with_errors(self, name: str, pairs: _Pairs, missing_a: float, missing_b: float) -> MeanDifference | None:
        """Return the change with scores in place of those that errors left out, None where there are no errors."""
        a, b = self.a.targets[self.target_a], self.b.targets[self.target_b]
        if not (a.has_errors(name) or b.has_errors(name)):
            return None
        difference = self._difference(
            name, a.means_with(name, missing_a).at(pairs.places_a), b.means_with(name, missing_b).at(pairs.places_b)
        )
        return (
            MeanDifference.model_validate({key: difference[key] for key in MeanDifference.model_fields})
            if difference
            else None
        )

    def _difference(self, name: str, a: SampleScores, b: SampleScores) -> dict[str, Any]:
        """Return the fields of a grader's comparison that are about its means, none if no pair has both scores."""
        shared = a.scored & b.scored
        before, after = a.values[shared], b.values[shared]
        differences: list[float] = (after - before).tolist()
        difference = difference_of(differences, self.level)
        if difference is None:
            return {}
        flips = None
        if self._is_graded(name) and self._has_threshold(name):
            lost, gained = shared & a.passes & ~b.passes, shared & b.passes & ~a.passes
            flips = int(np.count_nonzero(lost)), int(np.count_nonzero(gained))
        return {
            "n": difference.n,
            "mean_a": math.fsum(before.tolist()) / difference.n,
            "mean_b": math.fsum(after.tolist()) / difference.n,
            "difference": difference.mean,
            "low": difference.low,
            "high": difference.high,
            "detectable": difference.detectable,
            "p_value": difference.p_value,
            "loss": loss_of(difference, differences, flips, self.level),
            "graded": any(bool(((means > 0) & (means < 1)).any()) for means in (before, after)),
            "sign_p_value": difference.sign_p_value,
            "wins": difference.wins,
            "losses": difference.losses,
            "ties": difference.ties,
        }

    def _is_graded(self, name: str) -> bool:
        """Say whether a score of either side is neither 0 nor 1."""
        return any(bool(((values > 0) & (values < 1)).any()) for values, _ in self._scores(name))

    def _has_threshold(self, name: str) -> bool:
        """Say whether something else than a score of 1 passes: the suite says so, or a score shows it."""
        spec: dict[str, Any] = {} if self.b.grading is None else self.b.grading.spec
        graders: dict[str, Any] = spec.get("graders") or {}
        part: object = spec.get("reward") if name == "reward" else graders.get(name)
        if isinstance(part, Mapping) and cast("Mapping[str, object]", part).get("threshold") is not None:
            return True
        return any(bool((passes != (values >= 1)).any()) for values, passes in self._scores(name))

    def _scores(self, name: str) -> Iterator[tuple[NDArray[np.float64], NDArray[np.bool_]]]:
        """Yield the scores of each side, and which of them pass."""
        for target in (self.a.targets[self.target_a], self.b.targets[self.target_b]):
            scores = target.scores.graders[name]
            values, passes = scores.values[target.attempts], scores.passes[target.attempts]
            scored = ~np.isnan(values)
            yield values[scored], passes[scored]

    def _flips(
        self,
        name: str,
        pairs: _Pairs,
        scores: tuple[SampleScores, SampleScores],
        mask: NDArray[np.bool_],
        store: Store | None,
        *,
        worse: bool,
    ) -> list[Flip]:
        """Return the chosen pairs as flips, with the reasons on the failing side."""
        firsts, others = (list(compress(side, mask.tolist())) for side in (pairs.firsts, pairs.others))
        before, after = (side.values[mask].tolist() for side in scores)
        names, side = (others, self.b) if worse else (firsts, self.a)
        why = dict[str, str]()
        if store is not None and side.grading is not None:
            failing = side.targets[self.target_b if worse else self.target_a]
            places = (pairs.places_b if worse else pairs.places_a)[mask]
            why = reasons_of(store, side.grading, name, failing.attempts_of(places))
        return _FLIPS.validate_python(
            [
                {
                    "sample_a": first,
                    "sample_b": other,
                    "score_a": score_a,
                    "score_b": score_b,
                    "why": why.get(failed_sample, ""),
                }
                for first, other, score_a, score_b, failed_sample in zip(
                    firsts, others, before, after, names, strict=True
                )
            ]
        )

    def _comparable(self, name: str) -> bool:
        first, other = self.a.origin.print_of(name), self.b.origin.print_of(name)
        return first == other or None in (first, other)

    def _note(self, name: str) -> str | None:
        first, other = self.a.origin.print_of(name), self.b.origin.print_of(name)
        if first is None or other is None:
            return "it is unknown whether the grader was the same on both sides"
        if first == other:
            return None
        change = metric_change(self.a.grading, self.b.grading, name)
        what = f" ({change.phrases})" if change is not None and change.phrases else ""
        return f"changed between the two gradings{what}; part of the difference may come from the grader"


def _measured_change(before: NDArray[np.float64], after: NDArray[np.float64]) -> MeasuredChange | None:
    """Return how far the means of measurements are apart over the samples that both sides measured."""
    shared = ~(np.isnan(before) | np.isnan(after))
    n = int(np.count_nonzero(shared))
    if not n:
        return None
    mean_a, mean_b = (math.fsum(side[shared].tolist()) / n for side in (before, after))
    return MeasuredChange(n=n, mean_a=mean_a, mean_b=mean_b, difference=mean_b - mean_a)


_SPOILED = {"tester_errors", "pass_rate", "raw_pass_rate", "highest_pass_rate"}


def _counts(side: GradedSide, target: str, grader: str) -> Side:
    """Return how many attempts of a target have a score, how many have none, and what the tester spoiled."""
    states = side.targets[target].states(grader)
    stored = side.grading and side.grading.summary
    graders = Summary.model_validate(stored).graders if stored else []
    own = next(
        (
            grader_summary
            for grader_summary in graders
            if (grader_summary.name, grader_summary.target) == (grader, target)
        ),
        None,
    )
    rates = {} if own is None or not own.tester_errors else own.model_dump(include=_SPOILED)
    rates |= {} if own is None else {"population": own.population}
    return Side(scored=states["scored"], errors=states["error"], skipped=states["skipped"], **rates)


def loss_of(
    difference: PairedDifference, differences: Sequence[float], flips: tuple[int, int] | None, level: float
) -> Loss | None:
    """Return the one-sided tests of whether b is worse; `flips` are passes that were lost and gained, if they count."""
    if difference.worse_p_value is None or difference.worse_bound is None:
        return None
    are_flips = all(each in (-1.0, 0.0, 1.0) for each in differences)
    unsure = difference.mean < 0 and difference.worse_p_value > 1 - level
    lost, gained = flips or (0, 0)
    return Loss(
        p_value=difference.worse_p_value,
        bound=difference.worse_bound,
        least_p_value=0.5 ** (difference.wins + difference.losses) if are_flips else 0.0,
        sign_flip_p_value=sign_flip_p_value(differences) if unsure else None,
        passes_p_value=None if flips is None else worse_sign_test(gained, lost),
        passes_lost=lost,
        passes_gained=gained,
    )
