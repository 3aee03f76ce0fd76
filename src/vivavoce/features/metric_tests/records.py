"""What a test of metrics shows: which defects each sees and where, and what moves it that should not."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from pydantic import BaseModel, ConfigDict, Field

from vivavoce.features.metric_tests.versions import KEY, Kind, Version
from vivavoce.records.run import Outcome
from vivavoce.records.score import Finding, Score, Usage, total
from vivavoce.stats.groups import Cell, Sample, group_differences
from vivavoce.stats.intervals import mean_interval
from vivavoce.stats.two_means import Group, mean_difference
from vivavoce.testing.defects import DEFECTS, SEEN_BY


class Rate(BaseModel):
    """How often something happened in `n` versions: a share with its 95% interval, by conversation.

    All are None where there is nothing to count, the interval also where all is of one conversation.
    """

    model_config = ConfigDict(frozen=True)

    times: int
    n: int
    share: float | None = None
    low: float | None = None
    high: float | None = None


class Seen(BaseModel):
    """What became of one edit: `moved` counts the versions whose verdict it changed, of those that could be compared.

    `wanted` says that the metric is there to see it. Of a defect, `placed` counts the seen ones with a failing finding
    in the turn of the defect, `named` those with a turn at all. `drop` is by how much the value falls, on average.
    """

    model_config = ConfigDict(frozen=True)

    edit: str
    kind: Kind
    wanted: bool
    moved: Rate
    named: int = 0
    placed: int = 0
    drop: float | None = None
    errors: int = 0


class Difference(BaseModel):
    """The share in one part less that in another, with its 95% interval; None where a part has too few."""

    model_config = ConfigDict(frozen=True)

    name: str
    one: Rate
    other: Rate
    difference: float | None = None
    low: float | None = None
    high: float | None = None


class MetricFigures(BaseModel):
    """One metric under one judge.

    `detection` is of the defects that it is there to see, `false_alarms` of harmless edits. `rescued` says how often a
    defect that it saw is passed once the reply is longer, more polite, or asks for a high score. `position` compares
    defects of the later half of a conversation with those of the earlier one. `failed_as_is` counts the conversations
    that it fails as they are, which are not compared. Neither are `errors`, and what was `skipped`. `verdicts` counts
    the scores; each took one call of a judge that was not asked before.
    """

    model_config = ConfigDict(frozen=True)

    metric: str
    judge: str | None
    run: str
    compared: int
    failed_as_is: int
    errors: int
    skipped: int
    detection: Rate
    false_alarms: Rate
    edits: list[Seen]
    rescued: list[Seen]
    position: Difference | None = None
    verdicts: int
    usage: Usage = Field(default_factory=Usage)

    @property
    def title(self) -> str:
        """The metric, with its judge."""
        return self.metric if self.judge is None else f"{self.metric} by {self.judge}"


class SelfPreference(BaseModel):
    """By how much more a judge passes what a model of its own name said than other judges do, compared with the rest.

    A difference of differences: `own` and `others` are its share of passes less that of the other judges, over the
    conversations of that model and over all others; `difference` is the one less the other, with its 95% interval,
    which is None where one side has a single conversation.
    """

    model_config = ConfigDict(frozen=True)

    metric: str
    judge: str
    own: float
    others: float
    difference: float
    low: float | None = None
    high: float | None = None
    conversations: int


class MetricTest(BaseModel):
    """Tests of metrics: one entry for each metric and judge; `conversations` were changed, `left_out` were not.

    Of those left out, `unscored` have an error instead of a score. `no_place` are the defects for which no conversation
    has a place, such as a wrong argument where no tool is called.
    """

    model_config = ConfigDict(frozen=True)

    conversations: int
    left_out: int = 0
    unscored: int = 0
    no_place: list[str] = Field(default_factory=list[str])
    metrics: list[MetricFigures]
    self_preference: list[SelfPreference] = Field(default_factory=list[SelfPreference])


@dataclass(frozen=True, slots=True)
class MetricScores:
    """The scores of one metric under one judge, by conversation."""

    metric: str
    judge: str | None
    run: str
    scores: Sequence[tuple[Version, Score]]

    def whole(self) -> dict[str, Score]:
        """Return the scores of the conversations as they are."""
        return {version.of: score for version, score in self.scores if version.kind == "as_it_is"}


def collect_scores(outcomes: Iterable[Outcome], run: str, judges: Mapping[str, str | None]) -> list[MetricScores]:
    """Return the scores of a run, by metric; `judges` says who judged for each."""
    scores: dict[str, list[tuple[Version, Score]]] = {metric: [] for metric in judges}
    for outcome in outcomes:
        version = version_of(outcome)
        for metric, pairs in scores.items():
            if (score := outcome.scores.get(metric)) is not None:
                pairs.append((version, score))
    return [MetricScores(metric, judges[metric], run, pairs) for metric, pairs in scores.items()]


@dataclass(frozen=True, slots=True)
class Planned:
    """What was to be tested: the metric behind each name of scores, and the defects to plant.

    Where the user chose the defects (`by_name`), every metric is there to see all of them.
    """

    kinds: Mapping[str, str]
    defects: Sequence[str] = ()
    by_name: bool = False

    def expected_defects(self, metric: str) -> Sequence[str]:
        """Return the defects that the scores of a name are there to see."""
        return self.defects if self.by_name else SEEN_BY.get(self.kinds.get(metric, metric), tuple(DEFECTS))


def figures_of(
    results: Sequence[MetricScores], planned: Planned, *, conversations: int, left_out: int = 0, unscored: int = 0
) -> MetricTest:
    """Return what a test shows of every metric under every judge."""
    planted = {version.edit for result in results for version, _ in result.scores if version.kind == "defect"}
    return MetricTest(
        conversations=conversations,
        left_out=left_out,
        unscored=unscored,
        no_place=[name for name in planned.defects if name not in planted],
        metrics=[_figures(result, planned.expected_defects(result.metric)) for result in results],
        self_preference=_self_preferences(results),
    )


def version_of(outcome: Outcome) -> Version:
    """Return which version of a conversation an outcome is about."""
    return Version.model_validate(json.loads(outcome.attempt.sample)["metadata"][KEY])


def _figures(result: MetricScores, expected: Sequence[str]) -> MetricFigures:
    whole = result.whole()
    base = {name: score for name, score in whole.items() if score.state == "scored" and score.passed is not False}
    edits = _Edits(base)
    for version, score in result.scores:
        if version.kind != "as_it_is" and version.of in base:
            edits.add(version, score)
    seen = [edits.summarize_edit(kind, name, expected) for kind, name in edits.moves if kind != "persuasion"]
    defects = [
        move for kind, name in edits.moves if kind == "defect" and name in expected for move in edits.moves[kind, name]
    ]
    harmless = [move for kind, name in edits.moves if kind == "harmless" for move in edits.moves[kind, name]]
    return MetricFigures(
        metric=result.metric,
        judge=result.judge,
        run=result.run,
        compared=len(base),
        failed_as_is=sum(score.state == "scored" and score.passed is False for score in whole.values()),
        errors=sum(score.state == "error" for _, score in result.scores),
        skipped=sum(score.state == "skipped" for _, score in result.scores),
        detection=_rate(defects),
        false_alarms=_rate(harmless),
        edits=sorted(seen, key=lambda edit: (edit.kind != "defect", not edit.wanted)),
        rescued=edits.summarize_rescues(),
        position=_position(defects),
        verdicts=sum(score.state == "scored" for _, score in result.scores),
        usage=total(score.usage for _, score in result.scores) or Usage(),
    )


@dataclass(frozen=True, slots=True)
class _Move:
    """Whether a version moved the metric away from the verdict on the conversation as it is, and where it says so."""

    version: Version
    moved: bool
    drop: float | None
    is_named: bool
    placed: bool


@dataclass(slots=True)
class _Edits:
    """What the edits did to the scores of conversations, which as they are have the scores `base`."""

    base: Mapping[str, Score]
    moves: dict[tuple[Kind, str], list[_Move]] = field(default_factory=lambda: defaultdict(list))
    errors: dict[tuple[Kind, str], int] = field(default_factory=lambda: defaultdict(int))

    def add(self, version: Version, score: Score) -> None:
        place = (version.kind, version.edits[-1])
        if score.state != "scored":
            self.errors[place] += score.state == "error"
            self.moves[place] += []
            return
        self.moves[place].append(_move(version, self.base[version.of], score))

    def summarize_edit(self, kind: Kind, name: str, expected: Sequence[str]) -> Seen:
        moves = self.moves[kind, name]
        drops = [move.drop for move in moves if move.drop is not None]
        return Seen(
            edit=name,
            kind=kind,
            wanted=kind == "defect" and name in expected,
            moved=_rate(moves),
            named=sum(move.moved and move.is_named for move in moves),
            placed=sum(move.moved and move.placed for move in moves),
            drop=sum(drops) / len(drops) if drops else None,
            errors=self.errors[kind, name],
        )

    def summarize_rescues(self) -> list[Seen]:
        """Return for each persuasive edit how often a defect that was seen without it is passed with it."""
        caught = {
            (move.version.of, move.version.edit)
            for (kind, _), moves in self.moves.items()
            if kind == "defect"
            for move in moves
            if move.moved
        }
        seens: list[Seen] = []
        for (kind, name), moves in self.moves.items():
            if kind == "persuasion":
                both = [move for move in moves if (move.version.of, move.version.edit) in caught]
                passed = [_Move(move.version, not move.moved, None, is_named=False, placed=False) for move in both]
                seens.append(
                    Seen(edit=name, kind=kind, wanted=False, moved=_rate(passed), errors=self.errors[kind, name])
                )
        return seens


def _move(version: Version, before: Score, after: Score) -> _Move:
    moved = before.passed != after.passed if before.passed is not None else before.raw != after.raw
    drop = None if before.value is None or after.value is None else before.value - after.value
    turns = _failing_turns(after)
    return _Move(version, moved, drop, bool(turns), version.turn in turns)


def _failing_turns(score: Score) -> set[int]:
    """Return the turns that a score finds fault with.

    They are those of failing findings with their evidence, and of failing turns; where a score has no findings, those
    of its evidence.
    """
    failing_turns = {
        turn for finding in score.findings if finding.state in ("fail", "partial") for turn in _turns(finding)
    }
    failing_turns |= {turn.turn for turn in score.turns or () if turn.turn is not None and turn.passed is False}
    return (
        failing_turns
        if score.findings
        else failing_turns | {evidence.turn for evidence in score.other_evidence if evidence.turn is not None}
    )


def _turns(finding: Finding) -> Iterator[int]:
    if finding.turn is not None:
        yield finding.turn
    yield from (evidence.turn for evidence in finding.evidence if evidence.turn is not None)


def _rate(moves: Sequence[_Move]) -> Rate:
    values = [float(move.moved) for move in moves]
    interval = mean_interval(values, [move.version.of for move in moves], bounds=(0.0, 1.0))
    if interval is None:
        return Rate(times=0, n=0)
    return Rate(times=int(sum(values)), n=len(values), share=interval.mean, low=interval.low, high=interval.high)


def _position(moves: Sequence[_Move]) -> Difference | None:
    """Compare the defects of the later half of conversations with those of the earlier half."""
    placed = [move for move in moves if move.version.turn is not None and move.version.turns > 1]
    late = [move for move in placed if 2 * (move.version.turn or 0) >= move.version.turns]
    early = [move for move in placed if 2 * (move.version.turn or 0) < move.version.turns]
    if not late or not early:
        return None
    difference = group_differences(_by_conversation(late, early))["late"]
    ends = (
        {}
        if difference is None
        else {"difference": difference.difference, "low": difference.low, "high": difference.high}
    )
    return Difference(name="later half less earlier half", one=_rate(late), other=_rate(early), **ends)


def _by_conversation(late: Sequence[_Move], early: Sequence[_Move]) -> Counter[Sample]:
    """Return how many conversations have given cells: their defects in the later half, and in the earlier one."""
    moves: defaultdict[str, dict[str, list[bool]]] = defaultdict(lambda: {"late": [], "early": []})
    for half, those in (("late", late), ("early", early)):
        for move in those:
            moves[move.version.of][half].append(move.moved)
    return Counter(
        tuple(Cell(frozenset({half}), sum(moved), len(moved)) for half, moved in halves.items() if moved)
        for halves in moves.values()
    )


def _self_preferences(results: Sequence[MetricScores]) -> list[SelfPreference]:
    """Return by how much each judge prefers what a model of its own name said, where others judged it as well."""
    passes = {(result.metric, result.judge or ""): _passes(result) for result in results}
    speakers = {version.of: version.speaker for result in results for version, _ in result.scores if version.speaker}
    preferences: list[SelfPreference] = []
    for (metric, judge), mine in passes.items():
        others = [verdicts for (name, by), verdicts in passes.items() if name == metric and by != judge]
        leads: dict[bool, list[float]] = {True: [], False: []}
        for name, passed in mine.items():
            theirs = [other[name] for other in others if name in other]
            if theirs and name in speakers:
                leads[_model(speakers[name]) == _model(judge)].append(passed - sum(theirs) / len(theirs))
        own, rest = (Group(leads[side], range(len(leads[side]))) for side in (True, False))
        if (difference := mean_difference(own, rest, bounds=(-1.0, 1.0))) is not None:
            preferences.append(
                SelfPreference(
                    metric=metric,
                    judge=judge,
                    own=fmean(own.values),
                    others=fmean(rest.values),
                    difference=difference.difference,
                    low=difference.low,
                    high=difference.high,
                    conversations=len(own.values),
                )
            )
    return preferences


def _passes(result: MetricScores) -> dict[str, bool]:
    return {name: score.passed for name, score in result.whole().items() if score.passed is not None}


def _model(name: str) -> str:
    """Return the name of a model without that of its provider."""
    return name.rpartition(":")[2].rpartition("/")[2]
