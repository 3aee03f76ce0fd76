"""What a comparison of two graded runs says: the figures of each grader, the samples that flipped, and a ruling."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Literal, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Field

from vivavoce.plugins import lazy
from vivavoce.records.run import Verdict
from vivavoce.report.comparison.changes import Change
from vivavoce.report.details import measured_text
from vivavoce.report.text import count, join_phrases
from vivavoce.safe_text import safe
from vivavoce.samples.table import Table, Tabular, table_of
from vivavoce.stats.paired import POWER
from vivavoce.stats.planning import fewest_changes

Reading: TypeAlias = Literal["worse", "better", "same", "unknown", "incomparable", "measured", "nothing"]
"""What a difference says: `same` if its interval includes zero, `unknown` without an interval, `incomparable` if the
grader changed, `measured` if it only measures, and `nothing` if no sample has a score on both sides."""


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
    """How many attempts one side scored, could not score, and skipped; only scores are compared.

    Of the errors, `tester_errors` were made by the tester that led the conversations; the rates are those of the
    summary, which says what they are. `population` is how many conversations there are where only some were judged. A
    baseline does not know them.
    """

    scored: int
    errors: int
    skipped: int
    tester_errors: int = 0
    pass_rate: float | None = None
    raw_pass_rate: float | None = None
    highest_pass_rate: float | None = None
    population: int | None = None


class Loss(Compared):
    """The one-sided tests of whether b is worse than a; unknown values are None.

    `p_value` is that of the mean: it is at most 1 - level exactly where `bound`, the one-sided upper limit of the
    difference, is below 0. `least_p_value` is the lowest that as many flips could have, 0 for graded scores.
    `sign_flip_p_value` asks of a lower mean that is not certain whether the two sides answer differently at all.

    `passes_p_value` is that of McNemar's test of the flips: `passes_lost` scenarios pass on a only, `passes_gained` on
    b only. It is None where the scores are passes and failures themselves, and where a grader has no threshold.
    """

    p_value: float
    bound: float
    least_p_value: float = 0.0
    sign_flip_p_value: float | None = None
    passes_p_value: float | None = None
    passes_lost: int = 0
    passes_gained: int = 0


class MeanDifference(Compared):
    """What b - a comes to over `n` scenarios, with its interval and p value; unknown values are None."""

    n: int = 0
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    loss: Loss | None = None


class MeasuredChange(Compared):
    """The means of the measurements of the `n` scenarios that both sides measured, in the metric's own unit."""

    n: int
    mean_a: float
    mean_b: float
    difference: float


class GraderComparison(Compared):
    """One grader (or the reward) on both sides, over the `n` scenarios that both have scored.

    `difference` is b - a with its interval of the `level`, and `p_value` is that of this difference: it is at most
    1 - `level` where the interval excludes zero. `loss` has the one-sided tests of whether b is worse. A true
    difference of `detectable`, up or down, shows in 80 of 100 such comparisons. Where scores are `graded`, so some
    means over trials are neither 0 nor 1, it is an upper limit: a smaller difference may show as often. `sign_p_value`
    asks of wins and losses, from b's view, whether they are equally likely, however large they are. Unknown values are
    None.

    `passed` passed on both, `worsened` on a only, `improved` on b only; a scenario passes when every trial with a score
    does. `breaks` names the samples that passed in every trial on a and pass in none on b, `lost` those that passed
    so on a and have only errors on b. `broke` names those that only a could score, because of errors on b, `fixed`
    those that only b could, and `dropped` those that b skips. `note` says why the two sides may not be comparable,
    and `comparable` is False where the grader is known to have changed. `at_worst` and `at_best` are the change if
    the scores that are missing because of errors had been the worst and the best for b, None where there are no
    errors. `measured` is the change of a grader that measures: its scores are neither better nor worse, and count in
    none of the other figures.
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
    detectable: float | None = None
    p_value: float | None = None
    loss: Loss | None = None
    graded: bool = False
    sign_p_value: float | None = None
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
    comparable: bool = True
    level: float = 0.95
    note: str | None = None
    at_worst: MeanDifference | None = None
    at_best: MeanDifference | None = None
    measured: MeasuredChange | None = None

    @property
    def reading(self) -> Reading:
        """What the difference says."""
        if not self.n:
            return "nothing" if self.measured is None else "measured"
        if not self.comparable:
            return "incomparable"
        if self.low is None or self.high is None:
            return "unknown"
        return "worse" if self.high < 0 else "better" if self.low > 0 else "same"

    @property
    def change(self) -> MeanDifference:
        """What b - a comes to."""
        ends = {"difference": self.difference, "low": self.low, "high": self.high, "p_value": self.p_value}
        return MeanDifference(n=self.n, loss=self.loss, **ends)


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
    """Whether side b may take the place of side a: `fail` if it is worse, `inconclusive` if that cannot be said.

    `sentence` is the verdict in words, the same for all readers.
    """

    verdict: Verdict
    sentence: str
    reasons: list[RulingReason]


class Comparison(Tabular, Compared):
    """Two gradings; targets and graders that only one side has are listed by name, unless targets were chosen.

    `changes` are what changed from run a to run b besides the graders, empty for a baseline. `notes` are what a reader
    should know of the two sides. `ruling` is None unless somebody asked whether b is worse.
    """

    TABLES: ClassVar = ("graders", "changes")
    TABLES_FROM: ClassVar = "vivavoce.report.comparison.comparison:comparison_table"

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
    changes: list[Change] = Field(default_factory=lambda: list[Change]())
    notes: list[str] = Field(default_factory=list[str])
    ruling: Ruling | None = None

    def _repr_html_(self) -> str:
        """Return what changed for a notebook, in which every text is escaped."""
        return cast("str", lazy("vivavoce.report.html.notebook:comparison_html")(self))

    @property
    def same(self) -> bool:
        """Whether both sides are the same scores."""
        return self.grading_a == self.grading_b and all(target.target_a == target.target_b for target in self.targets)


_TARGETS = {"run_a": "string", "run_b": "string", "target_a": "string", "target_b": "string", "grader": "string"}
_NUMBERS = ("mean_a", "mean_b", "difference", "low", "high", "p_value", "sign_p_value")
_COUNTS = ("wins", "losses", "ties", "passed")
_GRADERS = {
    **_TARGETS,
    "n": "int32",
    **dict.fromkeys(_NUMBERS, "double"),
    **dict.fromkeys(_COUNTS, "int32"),
    **dict.fromkeys(("errors_a", "errors_b", "skipped_a", "skipped_b"), "int32"),
    "same_fingerprint": "bool",
    "note": "string",
    "measured_a": "double",
    "measured_b": "double",
}
_CHANGES = {
    **_TARGETS,
    "change": "string",
    "sample_a": "string",
    "sample_b": "string",
    "score_a": "double",
    "score_b": "double",
    "why": "string",
}


def comparison_table(comparison: Comparison, name: str) -> Table:
    """Return a table of a comparison: `graders` or `changes`."""
    make, types = (_grader, _GRADERS) if name == "graders" else (_changes, _CHANGES)
    rows = (
        {**_runs(comparison, target), "grader": grader.name, **row}
        for target in comparison.targets
        for grader in target.graders
        for row in make(grader)
    )
    return table_of(rows, types)


def _runs(comparison: Comparison, target: TargetComparison) -> dict[str, object]:
    runs = {"run_a": comparison.run_a, "run_b": comparison.run_b}
    return {**runs, "target_a": target.target_a, "target_b": target.target_b}


def _grader(grader: GraderComparison) -> Iterator[dict[str, object]]:
    yield {
        **grader.model_dump(include={"n", *_NUMBERS, *_COUNTS, "same_fingerprint", "note"}),
        "errors_a": grader.a.errors,
        "errors_b": grader.b.errors,
        "skipped_a": grader.a.skipped,
        "skipped_b": grader.b.skipped,
        "measured_a": grader.measured and grader.measured.mean_a,
        "measured_b": grader.measured and grader.measured.mean_b,
    }


def _changes(grader: GraderComparison) -> Iterator[dict[str, object]]:
    for change, flips in (("worsened", grader.worsened), ("improved", grader.improved)):
        yield from ({"change": change, **_flip(flip)} for flip in flips)
    for sample in grader.broke:
        yield {"change": "broke", "sample_a": sample}
    for sample in grader.fixed:
        yield {"change": "fixed", "sample_b": sample}


def _flip(flip: Flip) -> dict[str, object]:
    return {**flip.model_dump(), "why": flip.why or None}


WORDS: Mapping[Reading, str] = {
    "worse": "worse",
    "better": "better",
    "same": "no clear change",
    "unknown": "too few pairs",
    "incomparable": "not comparable",
    "measured": "only measured",
    "nothing": "nothing to compare",
}
STYLES: Mapping[Reading, str] = {"worse": "red", "better": "green"}
"""The colour in the terminal; what is not certain has none."""


def in_markdown(reading: Reading) -> str:
    """Return the word as Markdown."""
    return f"**{WORDS[reading]}**" if reading == "worse" else WORDS[reading]


def remarks(graders: Sequence[GraderComparison]) -> list[str]:
    """Return what a reader should know of the figures of some graders, a sentence each."""
    sign = _sign_note(graders)
    return [*measured_remarks(graders), *_detectable(graders), *([] if sign is None else [sign])]


def measured_change(grader: GraderComparison) -> str:
    """Return in a sentence how a grader that measures changed; empty for any other."""
    measurement = grader.measured
    if measurement is None:
        return ""
    before, after = measured_text(measurement.mean_a), measured_text(measurement.mean_b)
    sign = "+" if measurement.difference >= 0 else "−"
    change = f"{sign}{measured_text(abs(measurement.difference))}"
    return f"{safe(grader.name)} measures: mean {before} before, {after} after ({change}, n {measurement.n:,})"


def measured_remarks(graders: Sequence[GraderComparison]) -> Iterator[str]:
    """Yield how each grader that measures changed."""
    yield from (
        f"{sentence}; without a threshold, that is neither better nor worse."
        for sentence in map(measured_change, graders)
        if sentence
    )


def p_text(p_value: float | None) -> str:
    """Return a p value with three decimals, `< 0.001` for a smaller one, or a dash if there is none."""
    return "–" if p_value is None else "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


def _detectable(graders: Sequence[GraderComparison]) -> Iterator[str]:
    """Yield how large a change had to be to show, of the graders without a clear one, or that none could.

    For graded scores it is an upper limit, for changes of whole samples from one end of the scale to the other.
    """
    same = [grader for grader in graders if grader.reading == "same"]
    by = [
        (grader.graded, f"{safe(grader.name)} by {grader.detectable:.2g}")
        for grader in same
        if grader.detectable is not None
    ]
    for graded, share in ((False, f"{POWER:.0%}"), (True, f"at least {POWER:.0%}")):
        if changes := [text for each, text in by if each == graded]:
            some, each = ("A change", "") if len(changes) == 1 else ("Changes", "each ")
            less = "; smaller changes may be detected, too" if graded else ""
            yield f"{some} of {join_phrases(changes)} would {each}be detected in {share} of such comparisons{less}."
    for grader in same:
        if grader.n < (fewest := fewest_changes(grader.level)):
            few = f"{count(grader.n, 'sample')} cannot show a change of {safe(grader.name)}"
            yield f"{few}: at least {fewest} are needed."


def _sign_note(graders: Sequence[GraderComparison]) -> str | None:
    """Return in a sentence where counts of samples alone say otherwise than the means; None where they never do."""
    by = [
        f"{safe(grader.name)} has {grader.wins:,} better and {grader.losses:,} worse "
        f"(sign test: p {p_text(grader.sign_p_value)})"
        for grader in graders
        if grader.p_value is not None
        and grader.sign_p_value is not None
        and (grader.p_value <= 1 - grader.level) != (grader.sign_p_value <= 1 - grader.level)
    ]
    if not by:
        return None
    about = "p and the interval describe the mean; counts of better and worse samples disagree"
    return f"{about}: {join_phrases(by)}."
