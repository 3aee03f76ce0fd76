"""Two gradings compared: the same scenarios, paired, with what changed and how certain that is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from vivavoce.errors import NotFound, UsageError
from vivavoce.records.run import Grading
from vivavoce.records.score import Score
from vivavoce.report.changes import Change, changes_between, metric_change
from vivavoce.report.comparison import Comparison, Flip, GraderComparison, MeanDifference, Side, TargetComparison
from vivavoce.report.pairing import Pairing, pair
from vivavoce.report.sides import GradedSide, GradedTarget, Origin, side_of
from vivavoce.report.worst import why
from vivavoce.stats.paired import difference_of
from vivavoce.store.browse.scenarios import Scored
from vivavoce.store.browse.series import Graded
from vivavoce.store.store import Store


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
        UsageError: a named target does not exist, or no target is on both sides.
    """
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
        targets_only_a=[name for name in others_a if name not in {one for one, _ in pairs}],
        targets_only_b=[name for name in others_b if name not in {other for _, other in pairs}],
        graders_only_a=[name for name in a.graders if name not in b.graders],
        graders_only_b=[name for name in b.graders if name not in a.graders],
        same_tester=a.origin.tester == b.origin.tester,
        changes=_changes(store, grading_a, grading_b, pairs) if isinstance(grading_a, Grading) else [],
        notes=[*_suites(a.origin, b.origin), *_partial(store, grading_a, grading_b)],
    )


def _changes(store: Store, a: Grading, b: Grading, targets: Sequence[tuple[str, str]]) -> list[Change]:
    """Return what changed besides the graders, each change of several targets once."""
    before, after = (Graded(store.run(one.run_id), one) for one in (a, b))
    found: list[Change] = []
    for both in targets:
        found += [one for one in changes_between(before, after, both) if one not in found]
    return found


def _suites(a: Origin, b: Origin) -> Iterator[str]:
    if a.suite != b.suite:
        yield f"these are runs of two suites, {a.suite} and {b.suite}"


def _partial(store: Store, *sides: Grading | GradedSide) -> Iterator[str]:
    for run in (store.run(side.run_id) for side in sides if isinstance(side, Grading)):
        if run.partial_of is not None:
            yield f"{run.id} is partial: it repeats a part of {run.partial_of}"


def reasons_of(store: Store, grading: Grading, target: str, name: str, samples: Sequence[str]) -> dict[str, str]:
    """Return by sample the reason of a grader, or of the reward, for the lowest trial, in one line each."""
    lowest: dict[str, Score] = {}
    for sample, score in store.scenarios.lowest_scores(grading, target, name, samples):
        known = lowest.get(sample)
        if score.value is not None and (known is None or known.value is None or score.value < known.value):
            lowest[sample] = score
    return {sample: why(name, score) for sample, score in lowest.items()}


def _side(store: Store, grading: Grading) -> GradedSide:
    return side_of(Origin.of(store.run(grading.run_id), grading), store.scenarios.scores(grading), grading)


def _targets(a: GradedSide, b: GradedSide, target_a: str | None, target_b: str | None) -> list[tuple[str, str]]:
    ones, others = list(a.targets), list(b.targets)
    for name, known, origin in ((target_a, ones, a.origin), (target_b, others, b.origin)):
        if name is not None and name not in known:
            raise NotFound("target", name, within=f"run {origin.run}", known=known)
    if (named := target_a or target_b) is not None:
        return [(target_a or _counterpart(named, a), target_b or _counterpart(named, b))]
    if len(ones) == len(others) == 1:
        return [(ones[0], others[0])]
    both = [(name, name) for name in ones if name in others]
    if not both:
        known = f"{', '.join(ones) or 'none'} and {', '.join(others) or 'none'}"
        how = "name the two targets to compare: --target-a NAME --target-b NAME"
        raise UsageError(f"the runs have no common target (they have {known}); {how}")
    return both


def _counterpart(other: str, side: GradedSide) -> str:
    known = list(side.targets)
    if other in known or len(known) == 1:
        return other if other in known else known[0]
    raise NotFound("target", other, within=f"run {side.origin.run}", hint=f"; known: {', '.join(known) or 'none'}")


_Pair: TypeAlias = tuple[str, str, Scored, Scored]
"""A scenario that both sides have scored: its sample, then the mean of its trials and whether it passes, on each."""


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
        pairing = pair(self.a.targets[self.target_a].samples, self.b.targets[self.target_b].samples)
        return TargetComparison(
            target_a=self.target_a,
            target_b=self.target_b,
            matched=len(pairing.pairs),
            unmatched_a=list(pairing.only_a),
            unmatched_b=list(pairing.only_b),
            graders=[self._grader(name, pairing, store) for name in self.a.graders if name in self.b.graders],
        )

    def _grader(self, name: str, pairing: Pairing, store: Store | None) -> GraderComparison:
        a, b = self.a.targets[self.target_a], self.b.targets[self.target_b]
        means_a, means_b = a.means(name), b.means(name)
        lost_a, lost_b = a.broken(name) - means_a.keys(), b.broken(name) - means_b.keys()
        shared = [
            (one, other, means_a[one], means_b[other])
            for one, other in pairing.pairs
            if one in means_a and other in means_b
        ]
        fallen = [other for _, other, (_, before), (_, after) in shared if before and not after]
        note = self._note(name)
        plain = GraderComparison(
            name=name,
            a=_counts(a, name),
            b=_counts(b, name),
            n=len(shared),
            breaks=b.never(name, fallen),
            lost=[other for one, other in pairing.pairs if other in lost_b and one in means_a and means_a[one][1]],
            broke=[other for one, other in pairing.pairs if other in lost_b and one in means_a],
            fixed=[other for one, other in pairing.pairs if one in lost_a and other in means_b],
            dropped=[o for one, o in pairing.pairs if one in means_a and o not in means_b and o not in lost_b],
            same_fingerprint=note is None,
            comparable=self._comparable(name),
            level=self.level,
            note=note,
            at_worst=self._with_errors(name, pairing, 1.0, 0.0),
            at_best=self._with_errors(name, pairing, 0.0, 1.0),
        )
        return plain.model_copy(update={**_difference(shared, self.level), **self._flips(name, shared, store)})

    def _with_errors(self, name: str, pairing: Pairing, missing_a: float, missing_b: float) -> MeanDifference | None:
        """Return the change with scores in place of those that errors left out, None where there are no errors."""
        a, b = self.a.targets[self.target_a], self.b.targets[self.target_b]
        if not (a.broken(name) or b.broken(name)):
            return None
        ones, others = a.means_with(name, missing_a), b.means_with(name, missing_b)
        pairs = [(ones[one][0], others[other][0]) for one, other in pairing.pairs if one in ones and other in others]
        found = difference_of([after - before for before, after in pairs], self.level)
        return found and MeanDifference(n=found.n, difference=found.mean, low=found.low, high=found.high)

    def _flips(self, name: str, shared: Sequence[_Pair], store: Store | None) -> dict[str, object]:
        passed = sum(before and after for _, _, (_, before), (_, after) in shared)
        worsened = [(one, other, a, b) for one, other, (a, before), (b, after) in shared if before and not after]
        improved = [(one, other, a, b) for one, other, (a, before), (b, after) in shared if after and not before]
        why_b = why_a = dict[str, str]()
        if store is not None and self.b.grading is not None:
            why_b = reasons_of(store, self.b.grading, self.target_b, name, [other for _, other, *_ in worsened])
        if store is not None and self.a.grading is not None:
            why_a = reasons_of(store, self.a.grading, self.target_a, name, [one for one, *_ in improved])
        return {
            "passed": passed,
            "worsened": [_flip(both, why_b.get(both[1], "")) for both in worsened],
            "improved": [_flip(both, why_a.get(both[0], "")) for both in improved],
        }

    def _comparable(self, name: str) -> bool:
        one, other = self.a.origin.print_of(name), self.b.origin.print_of(name)
        return one == other or None in (one, other)

    def _note(self, name: str) -> str | None:
        one, other = self.a.origin.print_of(name), self.b.origin.print_of(name)
        if one is None or other is None:
            return "it is unknown whether the grader was the same on both sides"
        if one == other:
            return None
        change = metric_change(self.a.grading, self.b.grading, name)
        what = f" ({change.phrases})" if change is not None and change.phrases else ""
        return f"changed between the two gradings{what}; part of the difference may come from the grader"


def _counts(target: GradedTarget, grader: str) -> Side:
    """Return how many attempts of a target have a score, and how many have none."""
    states = target.states(grader)
    return Side(scored=states["scored"], errors=states["error"], skipped=states["skipped"])


def _flip(both: tuple[str, str, float, float], reason: str) -> Flip:
    one, other, score_a, score_b = both
    return Flip.model_construct(
        sample_a=one, sample_b=other, score_a=score_a, score_b=score_b, why=reason, asked="", said_a="", said_b=""
    )


def _difference(shared: Sequence[_Pair], level: float) -> dict[str, float | int | None]:
    """Return the means over some pairs, and how much they differ."""
    ones, others = [value for _, _, (value, _), _ in shared], [value for _, _, _, (value, _) in shared]
    found = difference_of([after - before for before, after in zip(ones, others, strict=True)], level)
    if found is None:
        return {}
    return {
        "mean_a": math.fsum(ones) / found.n,
        "mean_b": math.fsum(others) / found.n,
        "difference": found.mean,
        "low": found.low,
        "high": found.high,
        "p_value": found.p_value,
        "wins": found.wins,
        "losses": found.losses,
        "ties": found.ties,
    }
