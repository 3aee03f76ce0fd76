"""What a run says besides its scores, in lines for every reader of a summary: usage, agents, measurements, sampling."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from vivavoce.comparing.thresholds import score_text
from vivavoce.errors import UsageError
from vivavoce.extensions import answers_of
from vivavoce.records.details import (
    AgentSummary,
    CallsCovered,
    DifferenceKind,
    DifferentConversations,
    MeasurementSummary,
    PairedGrades,
    SkipSummary,
    VarianceSummary,
    by_role,
)
from vivavoce.records.details import RecordingSummary as Recorded
from vivavoce.records.run import Run
from vivavoce.records.score import conversation_label, turn_label
from vivavoce.report.text import count, listed, one_line
from vivavoce.run.summary import GraderSummary, Summary
from vivavoce.run.tallies import TargetDifference
from vivavoce.safe_text import safe

if TYPE_CHECKING:
    from vivavoce.report.comparison.comparison import Side
    from vivavoce.report.html.plots import Point
    from vivavoce.store.browse.listing import Headline


@dataclass(frozen=True, slots=True)
class Standing:
    """What one grader says of several targets: `scored` are those with a mean, the highest first.

    `best` is the one that is above each other target sample by sample, None if there is none: the paired interval of
    each difference lies above zero, as `compare` has it. `rivals` are the targets that may be as good as the highest,
    itself among them, and `unscored` those without a mean. `differences` are those of the highest from the others.
    """

    grader: str
    scored: tuple[GraderSummary, ...]
    best: str | None
    rivals: tuple[str, ...]
    unscored: tuple[str, ...]
    differences: tuple[TargetDifference, ...] = ()

    @property
    def finding(self) -> str:
        """Which target is best, in words, without the name of the grader."""
        if self.best is not None:
            first = self.scored[0]
            lost = f"; {count(first.errors, 'error')} left out" if first.errors else ""
            lost += f"; no score of {listed(self.unscored)}" if self.unscored else ""
            return f"{self.best} is best: {self._lead}{lost}"
        if len(self.scored) < 2:
            return f"no best target: {'only one target has' if self.scored else 'no target has'} scores"
        if not self.differences:
            return "no best target: the run does not say how targets differ sample by sample"
        rivals = self.rivals[1:]
        if all(difference.low is None for difference in self.differences if difference.other in rivals):
            return "no best target: a single common sample is not enough"
        are = "is" if len(rivals) == 1 else "are"
        return f"no best target: on the same samples {listed(rivals)} {are} not clearly below {self.rivals[0]}"

    @property
    def _lead(self) -> str:
        """How far the best target is above the others, sample by sample."""
        least = min(self.differences, key=lambda one: one.low or 0.0)
        interval = f"{100 * least.level:.4g}% interval {least.low:.3f} … {least.high:.3f}"
        least_of = "" if len(self.differences) == 1 else "at least "
        return f"on the same samples it is {least_of}{least.difference:.3f} above {least.other} ({interval})"


def sentences(summary: Summary) -> list[str]:
    """Return which target is best, in words; graders that find the same share a sentence."""
    found: dict[str, list[str]] = {}
    for one in standings(summary):
        found.setdefault(one.finding, []).append(one.grader)
    return [f"{listed(graders)}: {finding}" for finding, graders in found.items()]


def standings(summary: Summary) -> list[Standing]:
    """Return what each grader says of the targets of a run; nothing for a single target, or before the run ended."""
    if summary.stopped is not None or len(target_names(summary)) < 2:
        return []
    names = dict.fromkeys(grader.name for grader in summary.graders)
    return [_standing(name, summary) for name in names]


def target_names(summary: Summary) -> list[str]:
    """Return the targets of a run, in the order of its plan."""
    return list(dict.fromkeys(grader.target for grader in summary.graders))


def _standing(name: str, summary: Summary) -> Standing:
    graded = [grader for grader in summary.graders if grader.name == name]
    with_mean = [one for one in graded if one.mean is not None]
    scored = tuple(sorted(with_mean, key=lambda one: one.mean or 0.0, reverse=True))
    differences = tuple(difference for difference in summary.differences if difference.grader == name)
    below = {difference.other for difference in differences if difference.low is not None and difference.low > 0}
    rivals = tuple(one.target for one in scored if one.target not in below)
    best = rivals[0] if len(rivals) == 1 < len(scored) else None
    unscored = tuple(one.target for one in graded if one.mean is None)
    return Standing(name, scored, best, rivals, unscored, differences)


_WORDS: dict[DifferenceKind, str] = {
    "said": "different user message",
    "length": "more or fewer turns",
    "call": "different tool calls",
    "unrecorded": "a call that is not in the recording",
    "order": "the calls in another order",
    "result": "different tool results",
    "reply": "same calls, different reply",
}


def recorded_lines(summary: Summary) -> list[str]:
    """Return a line for each thing that is known, without markup; names in it are as the suite has them."""
    several = len(summary.recording) > 1
    return [
        f"{one.target}: {line}" if several and index == 0 else line
        for one in summary.recording
        for index, line in enumerate(lines_of(one))
    ]


def lines_of(one: Recorded) -> Iterator[str]:
    """Yield a line for each thing that is known of one target."""
    held = count(one.conversations, "conversation")
    rest = [f"{one.unrecorded:,} not in the recording"] if one.unrecorded else []
    rest += [f"{one.errors:,} ended with an error before a difference"] if one.errors else []
    yield "; ".join([f"as recorded: {one.same:,} of {held}", *rest])
    yield from map(_different, one.different)
    if calls := _calls(one.calls, one.ended):
        yield f"calls of tools: {calls}"
    yield from map(_paired, one.pairs)


def _different(one: DifferentConversations) -> str:
    where = f"{conversation_label(one.sample, one.trial)}, {turn_label(one.turn)}"
    first = "" if one.conversations == 1 else "the earliest: "
    return f"{_WORDS[one.kind]}: {one.conversations:,} ({first}{where}: {one_line(one.what, 300)})"


def _calls(calls: CallsCovered, ended: list[str]) -> str:
    """Return in words how calls are covered, empty where there are none."""
    parts = [
        (calls.answered, "answered from the recording"),
        (calls.live, "answered live"),
        (calls.missed, f"not in it ({'; '.join(ended)}{'; …' * (calls.missed > len(ended))})"),
    ]
    said = [f"{number:,} {words}" for number, words in parts if number]
    if calls.unused:
        more = calls.unused - len(calls.examples)
        named = ", ".join(calls.examples) + (f" and {more:,} more" if more > 0 else "")
        said.append(f"{calls.unused:,} recorded but not made: {named}")
    return ", ".join(said)


def _paired(one: PairedGrades) -> str:
    left = f", {one.left_out:,} without both scores" if one.left_out else ""
    alike = one.n - one.better - one.worse
    test = f", sign test p {one.p_value:.2g}" if one.better + one.worse else ""
    return (
        f"{one.grader}, {count(one.n, f'comparable {one.of}')}{left}: {one.better:,} better, {one.worse:,} worse, "
        f"{alike:,} the same; mean recorded {one.recorded:.3f}, now {one.new:.3f}{test}"
    )


NOTICEABLE = 0.1
"""Seconds of a 95th percentile below which replies are not worth a line."""


def detail_lines(summary: Summary) -> list[str]:
    """Return a line for each thing that is known, without markup; names in it are as the suite has them."""
    return [
        *skip_lines(summary),
        *recorded_lines(summary),
        *spent_lines(summary),
        *usage_lines(summary),
        *latency_lines(summary),
        *variance_lines(summary),
    ]


def tags_line(summary: Summary) -> str:
    """Return how many tags the table of tags leaves out, in words; empty for none."""
    tags = count(summary.more_tags, "more tag")
    return f"and {tags}, each with no more samples than these" if summary.more_tags else ""


def skip_lines(summary: Summary) -> list[str]:
    """Return for each grader that did not apply to every conversation how many it skipped, and why."""
    several = len({grader.target for grader in summary.graders}) > 1
    return [f"{skip.name}{f' of {skip.target}' if several else ''} skipped {skip_text(skip)}" for skip in summary.skips]


def skip_text(one: SkipSummary) -> str:
    """Return how many conversations a grader skipped, and why."""
    return f"{one.skipped:,} of {count(one.conversations, 'conversation')}: {_skip_reasons(one)}"


def _skip_reasons(one: SkipSummary) -> str:
    if len(one.reasons) == 1 and not one.other:
        return next(iter(one.reasons)) or "it does not apply"
    told = [f"{reason or 'it does not apply'} ({number:,})" for reason, number in one.reasons.items()]
    return "; ".join([*told, *([f"other reasons ({one.other:,})"] if one.other else [])])


def spent_lines(summary: Summary) -> list[str]:
    """Return how many trials were made where fewer than planned could be enough, and what the intervals are of."""
    found = summary.trials
    if found is None:
        return []
    of = "" if found.planned is None else f" of {found.planned:,}"
    spent = f"{found.spent:,}{of} conversation{'s' * ((found.planned or found.spent) != 1)}"
    if summary.stopped is not None:
        said = f"{spent} so far"
    elif found.half_width is None:
        said = f"{spent} {'were enough to decide' if found.met else 'did not decide'} the gate"
    else:
        aim = f"the {found.of} to ±{found.half_width:g}"
        said = f"{spent} {'were enough for' if found.met else 'were too few for'} {aim}"
    if found.by_sample:
        return [f"trials: {said}; samples differ in their number of trials, so means have no interval"]
    return [f"trials: {said}; intervals are valid at any time, for these samples only"]


def usage_lines(summary: Summary) -> list[str]:
    """Return what the run used, by role."""
    used = by_role(summary.usage)
    return [f"used: {used}"] if used else []


def latency_lines(summary: Summary) -> list[str]:
    """Return how long the replies of each target took."""
    several = len(summary.latency) > 1
    return [
        f"replies{f' of {one.target}' if several else ''}: {one.p50:.2f} s median, {one.p95:.2f} s 95th percentile "
        f"(n {one.replies:,})"
        for one in summary.latency
        if one.p95 >= NOTICEABLE
    ]


def variance_lines(summary: Summary) -> list[str]:
    """Return where the scores of each grader vary, in shares of their variance."""
    several = len({one.target for one in summary.variance}) > 1
    lines = [(one, variance_text(one)) for one in summary.variance]
    return [f"{one.name}{f' of {one.target}' if several else ''} varies: {text}" for one, text in lines if text]


def variance_text(one: VarianceSummary) -> str:
    """Return the shares of a variance, and what was not measured; empty where the scores do not vary.

    One sample has no shares, since nothing says how samples differ.
    """
    parts = [("samples", one.samples), ("target", one.trials), ("judge", one.judgements)]
    whole = sum(value or 0.0 for _, value in parts)
    if not whole:
        return ""
    if one.samples is None:
        return "shares cannot be estimated from one sample"
    shares = ", ".join(f"{value / whole:.0%} {name}" for name, value in parts if value is not None)
    missing = [
        *(["the target (one trial of each sample)"] if one.trials is None else []),
        *(["the judge (one judgement of each conversation)"] if one.judgements is None and one.judged else []),
    ]
    estimated = "" if one.counted is None else f" (estimated from {count(one.counted, 'sample')})"
    return f"{shares}{estimated}; not measured: {' and '.join(missing)}" if missing else shares + estimated


class Numbered(Protocol):
    """A score of any kind: `value` is from 0 to 1, `measured` the number of a measurement."""

    @property
    def value(self) -> float | None:
        """Its value."""
        ...

    @property
    def measured(self) -> float | None:
        """Its number."""
        ...


class Averaged(Protocol):
    """The scores of a grader: the `mean` of the values, and the measurements."""

    @property
    def mean(self) -> float | None:
        """Their mean."""
        ...

    @property
    def measured(self) -> MeasurementSummary | None:
        """Their summary."""
        ...


def measured_text(number: float) -> str:
    """Return the number of a measurement: `5`, `4.5`, `0.0123`, `12,345`."""
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"


def score_number(score: Numbered, digits: int = 2) -> str:
    """Return the value of a score, or the number of a measurement; empty without either."""
    if score.value is not None:
        return score_text(score.value, digits)
    return "" if score.measured is None else measured_text(score.measured)


def mean_text(grader: Averaged, digits: int = 3) -> str:
    """Return the mean of a grader: of its values, else of its measurements; a dash if there is neither."""
    if grader.mean is not None:
        return score_text(grader.mean, digits)
    return "–" if grader.measured is None else measured_text(grader.measured.mean)


def range_text(measured: MeasurementSummary) -> str:
    """Return the lowest and the highest measurement."""
    return f"{measured_text(measured.min)} to {measured_text(measured.max)}"


def measured_lines(summary: Summary) -> Iterator[str]:
    """Yield a sentence for each grader that measures: the mean, the lowest and the highest number."""
    several = len(target_names(summary)) > 1
    for grader in summary.graders:
        if grader.measured is not None:
            name = safe(f"{grader.name} of {grader.target}" if several else grader.name)
            yield (
                f"{name} measures: mean {measured_text(grader.measured.mean)}, from {range_text(grader.measured)}, "
                f"over {count(grader.measured.n, 'conversation')}; without a threshold, nothing passes or fails"
            )


HEADS = (
    *("agent", "turns", "calls", "tool errors", "handoffs"),
    *("found by", "failures", "failed turns", "share of turns", "95% interval"),
)
"""What is said of an agent; the last five also of each grader that found a fault of it."""
MOST = 20
"""Agents in a table."""
ANY = "any"
"""Who found a fault, in the row of an agent."""


def agent_rows(summary: Summary) -> list[list[str]]:
    """Return the cells below `HEADS`, without control characters; the row of a grader follows that of its agent."""
    shown = sorted(summary.agents, key=lambda one: (-one.failed_turns, -one.turns))[:MOST]
    return [row for one in shown for row in _rows(one, _name(one, summary.agents))]


def agents_line(summary: Summary) -> str:
    """Return what the table leaves out, as one sentence; empty if it leaves out nothing."""
    others = max(len(summary.agents) - MOST, 0) + summary.more_agents
    said = [f"and {count(others, 'more agent')} with no more failed turns"] if others else []
    if summary.unnamed_failures:
        failures = count(summary.unnamed_failures, "failure")
        said.append(f"{failures} {'is' if summary.unnamed_failures == 1 else 'are'} not attributed to an agent")
    return "; ".join(said)


def who_failed(summary: Summary) -> str:
    """Return whose most failed turns are, as one sentence; empty where no agent failed."""
    failed = [agent for agent in summary.agents if agent.failed_turns]
    if not failed:
        return ""
    worst = max(failed, key=lambda one: (one.failed_turns, one.share))
    whole = sum(one.failed_turns for one in failed)
    of = f"{worst.failed_turns:,} of {count(whole, 'failed turn')}"
    return f"{of} {'is' if worst.failed_turns == 1 else 'are'} of {_name(worst, summary.agents)}"


def _rows(one: AgentSummary, name: str) -> list[list[str]]:
    did = [f"{number:,}" for number in (one.turns, one.calls, one.tool_errors, one.handoffs)]
    failures = sum(each.failures for each in one.graders)
    found = [ANY, f"{failures:,}", f"{one.failed_turns:,}", f"{one.share:.1%}", _interval(one.low, one.high)]
    rows = [[name, *did, *found]]
    for each in one.graders:
        figures = [f"{each.failures:,}", f"{each.turns:,}", f"{each.share:.1%}", _interval(each.low, each.high)]
        rows.append(["", "", "", "", "", safe(each.grader), *figures])
    return rows


def _name(one: AgentSummary, among: Sequence[AgentSummary]) -> str:
    return safe(f"{one.agent} of {one.target}" if len({each.target for each in among}) > 1 else one.agent)


def _interval(low: float | None, high: float | None) -> str:
    return "–" if low is None or high is None else f"{low:.1%} to {high:.1%}"


def judged_text(one: GraderSummary | Headline | Point | Side) -> str:
    """Return how many conversations were judged of how many; empty where all were."""
    if one.population is None:
        return ""
    return f"{one.scored + one.errors + one.skipped:,} of {one.population:,} judged"


def estimate_text(one: GraderSummary) -> str:
    """Return how many of all conversations pass, with the interval; empty where all were judged."""
    if one.population is None:
        return ""
    judged = judged_text(one)
    if one.pass_rate is None:
        return f"no estimate: {judged}, and none has a score"
    found = "" if one.pass_low is None or one.pass_high is None else f" [{one.pass_low:.1%}, {one.pass_high:.1%}]"
    of = "conversations" if not one.skipped else "conversations that it applies to"
    return f"{one.pass_rate:.1%}{found} of all {of} pass, estimated: {judged}"


def sampled_lines(summary: Summary) -> Iterator[str]:
    """Yield what a plugin says about conversations that were drawn from more, or the estimates for all of them.

    Where all of a dataset run, there is nothing to say.
    """
    if summary.sampling is not None:
        lines = list(answers_of(str, "sampling_report", summary=summary)) or estimate_lines(summary)
        yield from map(safe, lines)


def estimate_lines(summary: Summary) -> Iterator[str]:
    """Yield what each grader says of all conversations that some were drawn from."""
    several = len(target_names(summary)) > 1
    for one in summary.graders:
        yield f"{f'{one.name} of {one.target}' if several else one.name}: {estimate_text(one)}"


def uneven_note(run: Run) -> str | None:
    """Return why conversations of a run do not represent all, None where they do."""
    if run.sampling is None or run.sampling.even:
        return None
    return f"run {run.id} judged a weighted or stratified sample of conversations"


def check_even(run: Run, what: str) -> None:
    """Refuse what would take the judged conversations of a run for all.

    Raises:
        UsageError: they were drawn with unequal probabilities.
    """
    if note := uneven_note(run):
        raise UsageError(f"{note}, so {what}; its summary has the estimates for all")
