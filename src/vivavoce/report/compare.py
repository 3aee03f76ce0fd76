"""Two gradings side by side: the same scenarios, paired, with what changed and how sure that is."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict

from vivavoce.errors import UsageError, did_you_mean
from vivavoce.records.run import AttemptKey, Grading, ScoreRow
from vivavoce.records.score import PASSED
from vivavoce.report.pairing import Pairing, pair, scenarios_of
from vivavoce.report.worst import outcome_of, why
from vivavoce.stats.paired import paired_difference
from vivavoce.store.store import Store


class Compared(BaseModel):
    """Immutable."""

    model_config = ConfigDict(frozen=True)


class Flip(Compared):
    """A scenario that passed on one side and not on the other; `why` is what the side that failed says.

    Scores are the means of the trials; the two ids may differ.
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

    `difference` is b - a with its 95 % interval; `p_value` is that of the sign test on wins and losses, counted from
    b's view. What cannot be told is None. `worsened` passed on a only, `improved` on b only; a scenario passes when
    the mean of its trials reaches the threshold. `broke` names the samples that only a could score, because
    of errors on b, and `mended` those that only b could. `note` says why the two may not measure the same.
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
    worsened: list[Flip] = []
    improved: list[Flip] = []
    broke: list[str] = []
    mended: list[str] = []
    same_fingerprint: bool
    note: str | None = None


class TargetComparison(Compared):
    """Two targets: how many scenarios both were asked, the ids that only one was, and each grader."""

    target_a: str
    target_b: str
    matched: int
    unmatched_a: list[str]
    unmatched_b: list[str]
    graders: list[GraderComparison]


class Comparison(Compared):
    """Two gradings; targets and graders that only one side has are listed by name, unless targets were chosen."""

    suite_a: str
    run_a: str
    grading_a: str
    suite_b: str
    run_b: str
    grading_b: str
    threshold: float
    targets: list[TargetComparison]
    targets_only_a: list[str]
    targets_only_b: list[str]
    graders_only_a: list[str]
    graders_only_b: list[str]

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
    threshold: float = PASSED,
) -> Comparison:
    """Compare two gradings, scenario by scenario.

    Samples are paired by what they ask and know (see `pair`), and the trials of one are averaged first. Targets are
    compared by name; a single one on each side is compared whatever the names, and so are those that are named here.
    Of each attempt only its scores are kept.

    Raises:
        UsageError: a named target does not exist, or no target is on both sides.
    """
    a, b = _read(store, grading_a), _read(store, grading_b)
    pairs = _targets(a, b, target_a, target_b)
    others_a, others_b = ([], []) if target_a or target_b else (list(a.samples), list(b.samples))
    names_a, names_b = a.graders(), b.graders()
    return Comparison(
        suite_a=store.run(grading_a.run_id).suite,
        run_a=grading_a.run_id,
        grading_a=grading_a.id,
        suite_b=store.run(grading_b.run_id).suite,
        run_b=grading_b.run_id,
        grading_b=grading_b.id,
        threshold=threshold,
        targets=[_Both(store, a, b, *both, threshold).compare() for both in pairs],
        targets_only_a=[name for name in others_a if name not in {one for one, _ in pairs}],
        targets_only_b=[name for name in others_b if name not in {other for _, other in pairs}],
        graders_only_a=[name for name in names_a if name not in names_b],
        graders_only_b=[name for name in names_b if name not in names_a],
    )


@dataclass(slots=True)
class _Scores:
    """What one grader says of one target: the scores of each sample's trials, and how many there are not."""

    trials: dict[str, list[tuple[int, float]]] = field(default_factory=lambda: defaultdict(list))
    broken: set[str] = field(default_factory=set[str])
    states: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("scored", "error", "skipped"), 0))

    def add(self, row: ScoreRow) -> None:
        self.states[row.state] += 1
        if row.state == "error":
            self.broken.add(row.key.sample_id)
        if row.value is not None:
            self.trials[row.key.sample_id].append((row.key.trial, row.value))

    @property
    def side(self) -> Side:
        return Side(scored=self.states["scored"], errors=self.states["error"], skipped=self.states["skipped"])

    def of(self, ids: Iterable[str]) -> dict[str, list[float]]:
        """Return the scores of the pairs, each called by its place."""
        return {str(i): [score for _, score in self.trials.get(one, ())] for i, one in enumerate(ids)}


@dataclass(frozen=True, slots=True)
class _SideScores:
    """One grading: the scenarios of its samples by target, and its scores by target and grader."""

    grading: Grading
    samples: Mapping[str, Mapping[str, frozenset[str]]]
    scores: Mapping[tuple[str, str], _Scores]

    def graders(self) -> list[str]:
        return list(dict.fromkeys(name for _, name in self.scores))

    def of(self, target: str, grader: str) -> _Scores:
        return self.scores.get((target, grader)) or _Scores()

    def print_of(self, grader: str) -> object:
        """Return what decides a grader's scores, or those of the reward; None when that is unknown."""
        prints = self.grading.fingerprints
        return (self.grading.spec.get("reward"), prints) if grader == "reward" else prints.get(grader)


def _read(store: Store, grading: Grading) -> _SideScores:
    scores: dict[tuple[str, str], _Scores] = defaultdict(_Scores)
    for row in store.scores(grading.id):
        scores[row.key.target, row.name].add(row)
    return _SideScores(grading, scenarios_of(store.attempts(grading.run_id)), dict(scores))


def _targets(a: _SideScores, b: _SideScores, target_a: str | None, target_b: str | None) -> list[tuple[str, str]]:
    ones, others = list(a.samples), list(b.samples)
    for name, known, grading in ((target_a, ones, a.grading), (target_b, others, b.grading)):
        if name is not None and name not in known:
            raise UsageError(f"run {grading.run_id} has no target '{name}'{did_you_mean(name, known)}")
    if (named := target_a or target_b) is not None:
        return [(target_a or _counterpart(named, a), target_b or _counterpart(named, b))]
    if len(ones) == len(others) == 1:
        return [(ones[0], others[0])]
    both = [(name, name) for name in ones if name in others]
    if not both:
        known = f"{', '.join(ones) or 'none'} and {', '.join(others) or 'none'}"
        raise UsageError(f"the runs share no target (they have {known}); name the two to compare")
    return both


def _counterpart(other: str, side: _SideScores) -> str:
    known = list(side.samples)
    if other in known or len(known) == 1:
        return other if other in known else known[0]
    raise UsageError(f"run {side.grading.run_id} has no target '{other}'; name one of {', '.join(known) or 'none'}")


@dataclass(frozen=True, slots=True)
class _Both:
    """Two targets that are compared."""

    store: Store
    a: _SideScores
    b: _SideScores
    target_a: str
    target_b: str
    threshold: float

    def compare(self) -> TargetComparison:
        pairing = pair(self.a.samples[self.target_a], self.b.samples[self.target_b])
        names = [name for name in self.a.graders() if name in self.b.graders()]
        return TargetComparison(
            target_a=self.target_a,
            target_b=self.target_b,
            matched=len(pairing.pairs),
            unmatched_a=list(pairing.only_a),
            unmatched_b=list(pairing.only_b),
            graders=[self._grader(name, pairing) for name in names],
        )

    def _grader(self, name: str, pairing: Pairing) -> GraderComparison:
        a, b = self.a.of(self.target_a, name), self.b.of(self.target_b, name)
        trials_a, trials_b = a.of(one for one, _ in pairing.pairs), b.of(other for _, other in pairing.pairs)
        means_a, means_b = _means(trials_a), _means(trials_b)
        found = paired_difference(trials_a, trials_b)
        note = self._note(name)
        plain = GraderComparison(
            name=name,
            a=a.side,
            b=b.side,
            n=0,
            broke=[other for one, other in pairing.pairs if one in a.trials and other in b.broken - b.trials.keys()],
            mended=[other for one, other in pairing.pairs if one in a.broken - a.trials.keys() and other in b.trials],
            same_fingerprint=note is None,
            note=note,
        )
        if found is None:
            return plain
        return plain.model_copy(
            update={
                "n": found.n,
                "mean_a": math.fsum(mean for place, mean in means_a.items() if place in means_b) / found.n,
                "mean_b": math.fsum(mean for place, mean in means_b.items() if place in means_a) / found.n,
                "difference": found.mean,
                "low": found.low,
                "high": found.high,
                "p_value": found.p_value,
                "wins": found.wins,
                "losses": found.losses,
                "ties": found.ties,
                **self._flips(name, pairing, means_a, means_b),
            }
        )

    def _flips(
        self, name: str, pairing: Pairing, means_a: Mapping[str, float], means_b: Mapping[str, float]
    ) -> dict[str, list[Flip]]:
        flips: dict[str, list[Flip]] = {"worsened": [], "improved": []}
        for i, ids in enumerate(pairing.pairs):
            one, other = means_a.get(str(i)), means_b.get(str(i))
            if one is None or other is None or (one >= self.threshold) == (other >= self.threshold):
                continue
            worse = other < self.threshold
            why = (
                self._why(self.b, self.target_b, name, ids[1])
                if worse
                else self._why(self.a, self.target_a, name, ids[0])
            )
            flip = Flip(sample_a=ids[0], sample_b=ids[1], score_a=one, score_b=other, why=why)
            flips["worsened" if worse else "improved"].append(flip)
        return flips

    def _why(self, side: _SideScores, target: str, name: str, sample_id: str) -> str:
        """Return what a side says of its lowest trial."""
        trial, _ = min(side.of(target, name).trials[sample_id], key=lambda one: one[1])
        outcome = outcome_of(self.store, side.grading, AttemptKey(sample_id, target, trial))
        said = outcome.reward if name == "reward" else outcome.grades[name]
        return "" if said is None else why(name, said)

    def _note(self, name: str) -> str | None:
        one, other = self.a.print_of(name), self.b.print_of(name)
        if one is None or other is None:
            return "nothing tells whether it measured the same on both sides"
        if one != other:
            return "changed between the two gradings; part of the difference may be the grader's"
        return None


def _means(trials: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {place: math.fsum(scores) / len(scores) for place, scores in trials.items() if scores}
