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
from vivavoce.report.text import count, join_phrases, one_line
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
            lost += f"; no score of {join_phrases(self.unscored)}" if self.unscored else ""
            return f"{self.best} is best: {self._lead}{lost}"
        if len(self.scored) < 2:
            return f"no best target: {'only one target has' if self.scored else 'no target has'} scores"
        if not self.differences:
            return "no best target: the run does not say how targets differ sample by sample"
        rivals = self.rivals[1:]
        if all(difference.low is None for difference in self.differences if difference.other in rivals):
            return "no best target: a single common sample is not enough"
        are = "is" if len(rivals) == 1 else "are"
        return f"no best target: on the same samples {join_phrases(rivals)} {are} not clearly below {self.rivals[0]}"

    @property
    def _lead(self) -> str:
        """How far the best target is above the others, sample by sample."""
        least = min(self.differences, key=lambda difference: difference.low or 0.0)
        interval = f"{100 * least.level:.4g}% interval {least.low:.3f} … {least.high:.3f}"
        least_of = "" if len(self.differences) == 1 else "at least "
        return f"on the same samples it is {least_of}{least.difference:.3f} above {least.other} ({interval})"


def sentences(summary: Summary) -> list[str]:
    """Return which target is best, in words; graders that find the same share a sentence."""
    graders_by_finding: dict[str, list[str]] = {}
    for standing in standings(summary):
        graders_by_finding.setdefault(standing.finding, []).append(standing.grader)
    return [f"{join_phrases(graders)}: {finding}" for finding, graders in graders_by_finding.items()]


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
    with_mean = [grader for grader in graded if grader.mean is not None]
    scored = tuple(sorted(with_mean, key=lambda grader: grader.mean or 0.0, reverse=True))
    differences = tuple(difference for difference in summary.differences if difference.grader == name)
    below = {difference.other for difference in differences if difference.low is not None and difference.low > 0}
    rivals = tuple(grader.target for grader in scored if grader.target not in below)
    best = rivals[0] if len(rivals) == 1 < len(scored) else None
    unscored = tuple(grader.target for grader in graded if grader.mean is None)
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
        f"{recording.target}: {line}" if several and index == 0 else line
        for recording in summary.recording
        for index, line in enumerate(lines_of(recording))
    ]


def lines_of(recording: Recorded) -> Iterator[str]:
    """Yield a line for each thing that is known of one target."""
    conversations = count(recording.conversations, "conversation")
    rest = [f"{recording.unrecorded:,} not in the recording"] if recording.unrecorded else []
    rest += [f"{recording.errors:,} ended with an error before a difference"] if recording.errors else []
    yield "; ".join([f"as recorded: {recording.same:,} of {conversations}", *rest])
    yield from map(_different, recording.different)
    if calls := _calls(recording.calls, recording.ended):
        yield f"tool calls: {calls}"
    yield from map(_describe_pairs, recording.pairs)


def _different(difference: DifferentConversations) -> str:
    where = f"{conversation_label(difference.sample, difference.trial)}, {turn_label(difference.turn)}"
    first = "" if difference.conversations == 1 else "the earliest: "
    return f"{_WORDS[difference.kind]}: {difference.conversations:,} ({first}{where}: {one_line(difference.what, 300)})"


def _calls(calls: CallsCovered, ended: list[str]) -> str:
    """Return in words how calls are covered, empty where there are none."""
    parts = [
        (calls.answered, "answered from the recording"),
        (calls.live, "answered live"),
        (calls.missed, f"not in it ({'; '.join(ended)}{'; …' * (calls.missed > len(ended))})"),
    ]
    phrases = [f"{number:,} {words}" for number, words in parts if number]
    if calls.unused:
        more = calls.unused - len(calls.examples)
        examples = ", ".join(calls.examples) + (f" and {more:,} more" if more > 0 else "")
        phrases.append(f"{calls.unused:,} recorded but not made: {examples}")
    return ", ".join(phrases)


def _describe_pairs(grades: PairedGrades) -> str:
    left = f", {grades.left_out:,} without both scores" if grades.left_out else ""
    alike = grades.n - grades.better - grades.worse
    test = f", sign test p {grades.p_value:.2g}" if grades.better + grades.worse else ""
    return (
        f"{grades.grader}, {count(grades.n, f'comparable {grades.of}')}{left}: {grades.better:,} better, "
        f"{grades.worse:,} worse, {alike:,} the same; mean recorded {grades.recorded:.3f}, now {grades.new:.3f}{test}"
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
    return f"and {tags}, none with more samples than these" if summary.more_tags else ""


def skip_lines(summary: Summary) -> list[str]:
    """Return for each grader that did not apply to every conversation how many it skipped, and why."""
    several = len({grader.target for grader in summary.graders}) > 1
    return [f"{skip.name}{f' of {skip.target}' if several else ''} skipped {skip_text(skip)}" for skip in summary.skips]


def skip_text(skip: SkipSummary) -> str:
    """Return how many conversations a grader skipped, and why."""
    return f"{skip.skipped:,} of {count(skip.conversations, 'conversation')}: {_skip_reasons(skip)}"


def _skip_reasons(skip: SkipSummary) -> str:
    if len(skip.reasons) == 1 and not skip.other:
        return next(iter(skip.reasons)) or "it does not apply"
    reasons = [f"{reason or 'it does not apply'} ({number:,})" for reason, number in skip.reasons.items()]
    return "; ".join([*reasons, *([f"other reasons ({skip.other:,})"] if skip.other else [])])


def spent_lines(summary: Summary) -> list[str]:
    """Return how many trials were made where fewer than planned could be enough, and what the intervals are of."""
    trials = summary.trials
    if trials is None:
        return []
    of = "" if trials.planned is None else f" of {trials.planned:,}"
    spent = f"{trials.spent:,}{of} conversation{'s' * ((trials.planned or trials.spent) != 1)}"
    if summary.stopped is not None:
        text = f"{spent} so far"
    elif trials.half_width is None:
        text = f"{spent} {'were enough to decide' if trials.met else 'did not decide'} the gate"
    else:
        aim = f"the {trials.of} ±{trials.half_width:g}"
        text = f"{spent} {'were enough for' if trials.met else 'were too few for'} {aim}"
    if trials.by_sample:
        return [f"trials: {text}; samples differ in their number of trials, so means have no interval"]
    return [f"trials: {text}; intervals are valid at any time, for these samples only"]


def usage_lines(summary: Summary) -> list[str]:
    """Return what the run used, by role."""
    used = by_role(summary.usage)
    return [f"used: {used}"] if used else []


def latency_lines(summary: Summary) -> list[str]:
    """Return how long the replies of each target took."""
    several = len(summary.latency) > 1
    return [
        f"replies{f' of {latency.target}' if several else ''}: {latency.p50:.2f} s median, "
        f"{latency.p95:.2f} s 95th percentile (n {latency.replies:,})"
        for latency in summary.latency
        if latency.p95 >= NOTICEABLE
    ]


def variance_lines(summary: Summary) -> list[str]:
    """Return where the scores of each grader vary, in shares of their variance."""
    several = len({variance.target for variance in summary.variance}) > 1
    lines = [(variance, variance_text(variance)) for variance in summary.variance]
    return [
        f"{variance.name}{f' of {variance.target}' if several else ''} varies: {text}"
        for variance, text in lines
        if text
    ]


def variance_text(variance: VarianceSummary) -> str:
    """Return the shares of a variance, and what was not measured; empty where the scores do not vary.

    One sample has no shares, since nothing says how samples differ.
    """
    parts = [("samples", variance.samples), ("target", variance.trials), ("judge", variance.judgements)]
    whole = sum(value or 0.0 for _, value in parts)
    if not whole:
        return ""
    if variance.samples is None:
        return "shares cannot be estimated from one sample"
    shares = ", ".join(f"{value / whole:.0%} {name}" for name, value in parts if value is not None)
    missing = [
        *(["the target (one trial of each sample)"] if variance.trials is None else []),
        *(
            ["the judge (one judgement of each conversation)"]
            if variance.judgements is None and variance.judged
            else []
        ),
    ]
    estimated = "" if variance.counted is None else f" (estimated from {count(variance.counted, 'sample')})"
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
MAX_AGENTS = 20
"""Agents in a table."""
ANY = "any"
"""Who found a fault, in the row of an agent."""


def agent_rows(summary: Summary) -> list[list[str]]:
    """Return the cells below `HEADS`, without control characters; the row of a grader follows that of its agent."""
    agents = sorted(summary.agents, key=lambda agent: (-agent.failed_turns, -agent.turns))[:MAX_AGENTS]
    return [row for agent in agents for row in _rows(agent, _name(agent, summary.agents))]


def agents_line(summary: Summary) -> str:
    """Return what the table leaves out, as one sentence; empty if it leaves out nothing."""
    others = max(len(summary.agents) - MAX_AGENTS, 0) + summary.more_agents
    parts = [f"and {count(others, 'more agent')}, none of them worse"] if others else []
    if summary.unnamed_failures:
        failures = count(summary.unnamed_failures, "failure")
        parts.append(f"{failures} {'is' if summary.unnamed_failures == 1 else 'are'} not attributed to an agent")
    return "; ".join(parts)


def who_failed(summary: Summary) -> str:
    """Return whose most failed turns are, as one sentence; empty where no agent failed."""
    failed = [agent for agent in summary.agents if agent.failed_turns]
    if not failed:
        return ""
    worst = max(failed, key=lambda agent: (agent.failed_turns, agent.share))
    whole = sum(agent.failed_turns for agent in failed)
    of = f"{worst.failed_turns:,} of {count(whole, 'failed turn')}"
    return f"{of} {'is' if worst.failed_turns == 1 else 'are'} by {_name(worst, summary.agents)}"


def _rows(agent: AgentSummary, name: str) -> list[list[str]]:
    did = [f"{number:,}" for number in (agent.turns, agent.calls, agent.tool_errors, agent.handoffs)]
    failures = sum(each.failures for each in agent.graders)
    totals = [ANY, f"{failures:,}", f"{agent.failed_turns:,}", f"{agent.share:.1%}", _interval(agent.low, agent.high)]
    rows = [[name, *did, *totals]]
    for each in agent.graders:
        figures = [f"{each.failures:,}", f"{each.turns:,}", f"{each.share:.1%}", _interval(each.low, each.high)]
        rows.append(["", "", "", "", "", safe(each.grader), *figures])
    return rows


def _name(agent: AgentSummary, among: Sequence[AgentSummary]) -> str:
    return safe(f"{agent.agent} of {agent.target}" if len({each.target for each in among}) > 1 else agent.agent)


def _interval(low: float | None, high: float | None) -> str:
    return "–" if low is None or high is None else f"{low:.1%} to {high:.1%}"


def judged_text(result: GraderSummary | Headline | Point | Side) -> str:
    """Return how many conversations were judged of how many; empty where all were."""
    if result.population is None:
        return ""
    return f"{result.scored + result.errors + result.skipped:,} of {result.population:,} judged"


def estimate_text(grader: GraderSummary) -> str:
    """Return how many of all conversations pass, with the interval; empty where all were judged."""
    if grader.population is None:
        return ""
    judged = judged_text(grader)
    if grader.pass_rate is None:
        return f"no estimate: {judged}, and none has a score"
    bounds = (
        ""
        if grader.pass_low is None or grader.pass_high is None
        else f" [{grader.pass_low:.1%}, {grader.pass_high:.1%}]"
    )
    of = "conversations" if not grader.skipped else "conversations that it applies to"
    return f"{grader.pass_rate:.1%}{bounds} of all {of} pass, estimated: {judged}"


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
    for grader in summary.graders:
        yield f"{f'{grader.name} of {grader.target}' if several else grader.name}: {estimate_text(grader)}"


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
