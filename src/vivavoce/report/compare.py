"""Two gradings compared: the same scenarios, paired, with what changed and how certain that is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar, TypeAlias, cast

from pydantic import BaseModel, ConfigDict

from vivavoce.errors import NotFound, UsageError
from vivavoce.plugins import lazy
from vivavoce.records.run import Grading
from vivavoce.records.score import Score
from vivavoce.report.pairing import Pairing, Scenarios, pair, scenarios_of
from vivavoce.report.worst import why
from vivavoce.samples.table import Tabular
from vivavoce.stats.paired import difference_of
from vivavoce.store.browse.scenarios import ScenarioScores, Scored
from vivavoce.store.store import Store


class Compared(BaseModel):
    """Immutable."""

    model_config = ConfigDict(frozen=True)


class Flip(Compared):
    """A scenario that passed on one side and not on the other; `why` is the reason on the failing side.

    Scores are the means of the trials; the two ids may differ. `why` is empty if reasons were not requested.
    """

    sample_a: str
    sample_b: str
    score_a: float
    score_b: float
    why: str


class Side(Compared):
    """How many attempts one side scored, could not score, and skipped; only scores are compared."""

    scored: int
    errors: int
    skipped: int


class GraderComparison(Compared):
    """One grader (or the reward) on both sides, over the `n` scenarios that both have scored.

    `difference` is b - a with its 95% interval; `p_value` is that of the sign test on wins and losses, from b's view.
    Unknown values are None. `passed` passed on both, `worsened` on a only, `improved` on b only; a scenario passes when
    every trial with a score does. `broke` names the samples that only a could score, because of errors on b, and
    `fixed` those that only b could. `note` says why the two sides may not be comparable.
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
    broke: list[str] = []
    fixed: list[str] = []
    same_fingerprint: bool
    note: str | None = None


class TargetComparison(Compared):
    """Two targets: how many scenarios both have, the ids that only one has, and each grader."""

    target_a: str
    target_b: str
    matched: int
    unmatched_a: list[str]
    unmatched_b: list[str]
    graders: list[GraderComparison]


class Comparison(Tabular, Compared):
    """Two gradings; targets and graders that only one side has are listed by name, unless targets were chosen."""

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

    def _repr_html_(self) -> str:
        """Return what changed for a notebook, in which every text is escaped."""
        return cast("str", lazy("vivavoce.report.html.cards:comparison_html")(self))

    @property
    def same(self) -> bool:
        """Whether both sides are the same scores."""
        return self.grading_a == self.grading_b and all(one.target_a == one.target_b for one in self.targets)


def compare(
    store: Store,
    grading_a: Grading,
    grading_b: Grading,
    target_a: str | None = None,
    target_b: str | None = None,
    *,
    reasons: bool = True,
) -> Comparison:
    """Compare two gradings, scenario by scenario.

    Samples are paired by their content (see `pair`), and the trials of one are averaged first. Targets are compared by
    name; a single target on each side is compared whatever the names, and so are the targets named here. Conversations
    are not read. Without `reasons` no flip has a `why`; see `reasons_of`.

    Raises:
        UsageError: a named target does not exist, or no target is on both sides.
    """
    a, b = _side(store, grading_a), _side(store, grading_b)
    pairs = _targets(a, b, target_a, target_b)
    others_a, others_b = ([], []) if target_a or target_b else (list(a.targets), list(b.targets))
    return Comparison(
        suite_a=store.run(grading_a.run_id).suite,
        run_a=grading_a.run_id,
        grading_a=grading_a.id,
        suite_b=store.run(grading_b.run_id).suite,
        run_b=grading_b.run_id,
        grading_b=grading_b.id,
        targets=[_Both(a, b, *both).compare(store if reasons else None) for both in pairs],
        targets_only_a=[name for name in others_a if name not in {one for one, _ in pairs}],
        targets_only_b=[name for name in others_b if name not in {other for _, other in pairs}],
        graders_only_a=[name for name in a.graders if name not in b.graders],
        graders_only_b=[name for name in b.graders if name not in a.graders],
    )


def reasons_of(store: Store, grading: Grading, target: str, name: str, samples: Sequence[str]) -> dict[str, str]:
    """Return by sample the reason of a grader, or of the reward, for the lowest trial, in one line each."""
    lowest: dict[str, Score] = {}
    for sample, score in store.scenarios.lowest_scores(grading, target, name, samples):
        known = lowest.get(sample)
        if score.value is not None and (known is None or known.value is None or score.value < known.value):
            lowest[sample] = score
    return {sample: why(name, score) for sample, score in lowest.items()}


@dataclass(frozen=True, slots=True)
class _GradedTarget:
    """A target of one grading: the scenarios of its samples, and the numbers of their attempts."""

    scores: ScenarioScores
    samples: Scenarios
    attempts: Mapping[str, Sequence[int]]
    numbers: frozenset[int]

    def side(self, grader: str) -> Side:
        """Return how many of its attempts have a score, and how many have none."""
        unscored = self.scores.unscored.get(grader, {})
        states = Counter(unscored[number] for number in self.numbers.intersection(unscored))
        scored = len(self.numbers.intersection(self.scores.scores.get(grader, {})))
        return Side(scored=scored, errors=states["error"], skipped=states["skipped"])

    def means(self, grader: str) -> dict[str, Scored]:
        """Return the mean over the trials of each sample that has a score, and whether all of these pass."""
        scores = self.scores.scores.get(grader, {})
        found: dict[str, Scored] = {}
        for sample, numbers in self.attempts.items():
            if len(numbers) > 1:
                of = [scores[number] for number in numbers if number in scores]
                if of:
                    found[sample] = math.fsum(value for value, _ in of) / len(of), all(passed for _, passed in of)
            elif numbers[0] in scores:
                found[sample] = scores[numbers[0]]
        return found

    def broken(self, grader: str) -> set[str]:
        """Return the samples of which an attempt could not be scored."""
        lost = {number for number, state in self.scores.unscored.get(grader, {}).items() if state == "error"}
        if not lost:
            return set()
        return {sample for sample, numbers in self.attempts.items() if not lost.isdisjoint(numbers)}


@dataclass(frozen=True, slots=True)
class _GradedSide:
    """One grading, by target."""

    grading: Grading
    graders: Sequence[str]
    targets: Mapping[str, _GradedTarget]

    def print_of(self, grader: str) -> object:
        """Return the fingerprint of a grader or of the reward; None if it is unknown."""
        prints = self.grading.fingerprints
        return (self.grading.spec.get("reward"), prints) if grader == "reward" else prints.get(grader)


def _side(store: Store, grading: Grading) -> _GradedSide:
    found = store.scenarios.scores(grading)
    samples = scenarios_of(found.attempts.values())
    numbers: dict[str, dict[str, tuple[int, ...]]] = {target: {} for target in samples}
    for number, (sample, target, _) in found.attempts.items():
        numbers[target][sample] = (*numbers[target].get(sample, ()), number)
    targets = {
        target: _GradedTarget(found, samples[target], mine, frozenset(chain.from_iterable(mine.values())))
        for target, mine in numbers.items()
    }
    return _GradedSide(grading, found.graders, targets)


def _targets(a: _GradedSide, b: _GradedSide, target_a: str | None, target_b: str | None) -> list[tuple[str, str]]:
    ones, others = list(a.targets), list(b.targets)
    for name, known, grading in ((target_a, ones, a.grading), (target_b, others, b.grading)):
        if name is not None and name not in known:
            raise NotFound("target", name, within=f"run {grading.run_id}", known=known)
    if (named := target_a or target_b) is not None:
        return [(target_a or _counterpart(named, a), target_b or _counterpart(named, b))]
    if len(ones) == len(others) == 1:
        return [(ones[0], others[0])]
    both = [(name, name) for name in ones if name in others]
    if not both:
        known = f"{', '.join(ones) or 'none'} and {', '.join(others) or 'none'}"
        raise UsageError(f"the runs have no common target (they have {known}); name the two targets to compare")
    return both


def _counterpart(other: str, side: _GradedSide) -> str:
    known = list(side.targets)
    if other in known or len(known) == 1:
        return other if other in known else known[0]
    raise NotFound("target", other, within=f"run {side.grading.run_id}", hint=f"; known: {', '.join(known) or 'none'}")


_Pair: TypeAlias = tuple[str, str, Scored, Scored]
"""A scenario that both sides have scored: its sample, then the mean of its trials and whether it passes, on each."""


@dataclass(frozen=True, slots=True)
class _Both:
    """Two targets that are compared."""

    a: _GradedSide
    b: _GradedSide
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
        note = self._note(name)
        plain = GraderComparison(
            name=name,
            a=a.side(name),
            b=b.side(name),
            n=len(shared),
            broke=[other for one, other in pairing.pairs if other in lost_b and one in means_a],
            fixed=[other for one, other in pairing.pairs if one in lost_a and other in means_b],
            same_fingerprint=note is None,
            note=note,
        )
        return plain.model_copy(update={**_difference(shared), **self._flips(name, shared, store)})

    def _flips(self, name: str, shared: Sequence[_Pair], store: Store | None) -> dict[str, object]:
        passed = sum(before and after for _, _, (_, before), (_, after) in shared)
        worsened = [(one, other, a, b) for one, other, (a, before), (b, after) in shared if before and not after]
        improved = [(one, other, a, b) for one, other, (a, before), (b, after) in shared if after and not before]
        why_b = why_a = dict[str, str]()
        if store is not None:
            why_b = reasons_of(store, self.b.grading, self.target_b, name, [other for _, other, *_ in worsened])
            why_a = reasons_of(store, self.a.grading, self.target_a, name, [one for one, *_ in improved])
        return {
            "passed": passed,
            "worsened": [_flip(both, why_b.get(both[1], "")) for both in worsened],
            "improved": [_flip(both, why_a.get(both[0], "")) for both in improved],
        }

    def _note(self, name: str) -> str | None:
        one, other = self.a.print_of(name), self.b.print_of(name)
        if one is None or other is None:
            return "it is unknown whether the grader was the same on both sides"
        if one != other:
            return "changed between the two gradings; part of the difference may come from the grader"
        return None


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
