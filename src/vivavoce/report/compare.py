"""Two gradings compared: the same scenarios, paired, with what changed and how certain that is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Field

from vivavoce.errors import NotFound, UsageError
from vivavoce.plugins import lazy
from vivavoce.records.reason import Verdict
from vivavoce.records.run import Grading
from vivavoce.records.score import Score
from vivavoce.report.pairing import Pairing, pair
from vivavoce.report.sides import GradedSide, GradedTarget, Origin, side_of
from vivavoce.report.worst import why
from vivavoce.samples.table import Tabular
from vivavoce.stats.paired import difference_of
from vivavoce.store.browse.scenarios import Scored
from vivavoce.store.store import Store


class Compared(BaseModel):
    """Immutable."""

    model_config = ConfigDict(frozen=True)


class Flip(Compared):
    """A scenario that passed on one side and not on the other; `why` is the reason on the failing side.

    Scores are the means of the trials; the two ids may differ. `why` is empty if reasons were not requested, and so are
    `asked`, `said_a` and `said_b`, the words of the trial that scored lowest on each side.
    """

    sample_a: str
    sample_b: str
    score_a: float
    score_b: float
    why: str
    asked: str = ""
    said_a: str = ""
    said_b: str = ""


class Side(Compared):
    """How many attempts one side scored, could not score, and skipped; only scores are compared."""

    scored: int
    errors: int
    skipped: int


class Change(Compared):
    """What b - a comes to over `n` scenarios, with its 95% interval; unknown values are None."""

    n: int = 0
    difference: float | None = None
    low: float | None = None
    high: float | None = None


class GraderComparison(Compared):
    """One grader (or the reward) on both sides, over the `n` scenarios that both have scored.

    `difference` is b - a with its 95% interval; `p_value` is that of the sign test on wins and losses, from b's view.
    Unknown values are None. `passed` passed on both, `worsened` on a only, `improved` on b only; a scenario passes when
    every trial with a score does. `breaks` names the samples that passed in every trial on a and pass in none on b,
    `lost` those that passed so on a and have only errors on b. `broke` names those that only a could score, because of
    errors on b, `fixed` those that only b could, and `dropped` those that b skips. `note` says why the two sides may
    not be comparable. `at_worst` and `at_best` are the change if the scores that are missing because of errors had been
    the worst and the best for b, None where there are no errors.
    """

    name: str
    a: Side
    b: Side
    n: int
    mean_a: float | None = None
    mean_b: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    wins: int = 0
    losses: int = 0
    ties: int = 0
    passed: int = 0
    worsened: list[Flip] = []
    improved: list[Flip] = []
    breaks: list[str] = []
    lost: list[str] = []
    broke: list[str] = []
    fixed: list[str] = []
    dropped: list[str] = []
    same_fingerprint: bool
    note: str | None = None
    at_worst: Change | None = None
    at_best: Change | None = None

    @property
    def change(self) -> Change:
        """What b - a comes to."""
        return Change(n=self.n, difference=self.difference, low=self.low, high=self.high)


class TargetComparison(Compared):
    """Two targets: how many scenarios both have, the ids that only one has, and each grader."""

    target_a: str
    target_b: str
    matched: int
    unmatched_a: list[str]
    unmatched_b: list[str]
    graders: list[GraderComparison]


class RulingReason(Compared):
    """One thing that a ruling rests on, in words; without a verdict it decides nothing."""

    verdict: Verdict | None
    text: str


class Ruling(Compared):
    """Whether side b may take the place of side a: `fail` if it is worse, `inconclusive` if that cannot be said."""

    verdict: Verdict
    reasons: list[RulingReason]


class Comparison(Tabular, Compared):
    """Two gradings; targets and graders that only one side has are listed by name, unless targets were chosen.

    `notes` are what a reader should know of the two sides. `ruling` is None unless somebody asked whether b is worse.
    """

    TABLES: ClassVar = ("graders", "changes")
    TABLES_FROM: ClassVar = "vivavoce.report.comparison_tables:comparison_table"

    suite_a: str
    run_a: str
    grading_a: str
    suite_b: str
    run_b: str
    grading_b: str
    targets: list[TargetComparison]
    targets_only_a: list[str]
    targets_only_b: list[str]
    graders_only_a: list[str]
    graders_only_b: list[str]
    same_tester: bool = True
    notes: list[str] = Field(default_factory=list[str])
    ruling: Ruling | None = None

    def _repr_html_(self) -> str:
        """Return what changed for a notebook, in which every text is escaped."""
        return cast("str", lazy("vivavoce.report.html.cards:comparison_html")(self))

    @property
    def same(self) -> bool:
        """Whether both sides are the same scores."""
        return self.grading_a == self.grading_b and all(one.target_a == one.target_b for one in self.targets)


def compare(
    store: Store,
    grading_a: Grading | GradedSide,
    grading_b: Grading,
    target_a: str | None = None,
    target_b: str | None = None,
    *,
    reasons: bool = True,
) -> Comparison:
    """Compare two gradings, or a grading with a side that is not in the store, such as a baseline.

    Samples are paired by their content (see `pair`), and the trials of one are averaged first. Targets are compared by
    name; a single target on each side is compared whatever the names, and so are the targets named here. Conversations
    are not read. Without `reasons` no flip has a `why`; see `reasons_of`.

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
        targets=[_Both(a, b, *both).compare(store if reasons else None) for both in pairs],
        targets_only_a=[name for name in others_a if name not in {one for one, _ in pairs}],
        targets_only_b=[name for name in others_b if name not in {other for _, other in pairs}],
        graders_only_a=[name for name in a.graders if name not in b.graders],
        graders_only_b=[name for name in b.graders if name not in a.graders],
        same_tester=a.origin.tester == b.origin.tester,
        notes=[*_suites(a.origin, b.origin), *_partial(store, grading_a, grading_b)],
    )


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
        never, note = b.never(name), self._note(name)
        plain = GraderComparison(
            name=name,
            a=_counts(a, name),
            b=_counts(b, name),
            n=len(shared),
            breaks=[other for _, other, (_, passed), _ in shared if passed and other in never],
            lost=[other for one, other in pairing.pairs if other in lost_b and one in means_a and means_a[one][1]],
            broke=[other for one, other in pairing.pairs if other in lost_b and one in means_a],
            fixed=[other for one, other in pairing.pairs if one in lost_a and other in means_b],
            dropped=[o for one, o in pairing.pairs if one in means_a and o not in means_b and o not in lost_b],
            same_fingerprint=note is None,
            note=note,
            at_worst=self._with_errors(name, pairing, 1.0, 0.0),
            at_best=self._with_errors(name, pairing, 0.0, 1.0),
        )
        return plain.model_copy(update={**_difference(shared), **self._flips(name, shared, store)})

    def _with_errors(self, name: str, pairing: Pairing, missing_a: float, missing_b: float) -> Change | None:
        """Return the change with scores in place of those that errors left out, None where there are no errors."""
        a, b = self.a.targets[self.target_a], self.b.targets[self.target_b]
        if not (a.broken(name) or b.broken(name)):
            return None
        ones, others = a.means_with(name, missing_a), b.means_with(name, missing_b)
        pairs = [(ones[one][0], others[other][0]) for one, other in pairing.pairs if one in ones and other in others]
        found = difference_of([after - before for before, after in pairs])
        return found and Change(n=found.n, difference=found.mean, low=found.low, high=found.high)

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

    def _note(self, name: str) -> str | None:
        one, other = self.a.origin.print_of(name), self.b.origin.print_of(name)
        if one is None or other is None:
            return "it is unknown whether the grader was the same on both sides"
        if one != other:
            return "changed between the two gradings; part of the difference may come from the grader"
        return None


def _counts(target: GradedTarget, grader: str) -> Side:
    """Return how many attempts of a target have a score, and how many have none."""
    states = target.states(grader)
    return Side(scored=states["scored"], errors=states["error"], skipped=states["skipped"])


def _flip(both: tuple[str, str, float, float], reason: str) -> Flip:
    one, other, score_a, score_b = both
    return Flip(sample_a=one, sample_b=other, score_a=score_a, score_b=score_b, why=reason)


def _difference(shared: Sequence[_Pair]) -> dict[str, float | int | None]:
    """Return the means over some pairs, and how much they differ."""
    ones, others = [value for _, _, (value, _), _ in shared], [value for _, _, _, (value, _) in shared]
    found = difference_of([after - before for before, after in zip(ones, others, strict=True)])
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
