"""The verdict of a run in words: its finding in one line, why it passes or fails, and the errors behind it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any, Protocol, cast

from rich.text import Text

from vivavoce.comparing.thresholds import SIGNS, Operator, limit_text, number_text
from vivavoce.records.label import CorrectedRate
from vivavoce.records.run import (
    BREACH_NAMES,
    Aggregation,
    AttemptKey,
    Condition,
    Grading,
    Reason,
    SampleTrials,
    Verdict,
    failing_grader,
)
from vivavoce.records.score import FAILED_STEP, PASSING, Evidence, FindingState, Score, error_text, turn_label
from vivavoce.report.details import mean_text, score_number, target_names
from vivavoce.report.text import Labelled, count, one_line
from vivavoce.run.summary import GraderSummary, Summary
from vivavoce.safe_text import safe
from vivavoce.store.browse.listing import AlikeErrors, RunEntry
from vivavoce.store.store import Store


def breach_lines(summary: Summary) -> Iterator[str]:
    """Yield a line for each grader whose judge found false statements or broken rules."""
    several = len(target_names(summary)) > 1
    for grader in summary.graders:
        if grader.breaches:
            name = safe(f"{grader.name} of {grader.target}" if several else grader.name)
            numbers = [count(number, BREACH_NAMES[kind]) for kind, number in grader.breaches.items()]
            yield f"{name}: {', '.join(numbers)}"


MAX_SAMPLES = 10
"""Samples of a reason that are named at most."""
_NAMES: Mapping[Aggregation, str] = {
    "avg_score": "mean",
    "accuracy": "pass rate",
    "min": "lowest score",
    "max": "highest score",
    "median": "median",
    "p50": "median",
    "p95": "95th percentile",
    "p99": "99th percentile",
    "pass^k": "pass^",
    "pass@k": "pass@",
}


def explain_verdict(summary: Summary) -> list[str]:
    """Return why the verdict is what it is, a line for each reason, then for each warning.

    After an early stop they are provisional.
    """
    lines = [f"{reason.verdict} · {reason_text(reason)}" for reason in summary.reasons]
    lines += [f"warning · {reason_text(warning)}" for warning in summary.warnings]
    return lines if summary.stopped is None else [summary.stopped, *(f"so far: {line}" for line in lines)]


def reason_text(reason: Reason) -> str:
    """Return one reason in words, without its verdict."""
    parts = [] if reason.target is None else [reason.target]
    if reason.graders:
        parts.append(_graders(reason.graders))
    return ": ".join([*parts, _what(reason)])


def _what(reason: Reason) -> str:
    errors = errors_text(reason.errors, reason.tester_errors)
    match reason.code:
        case "sentence" | "calibration":
            return reason.text or ""
        case "nothing_scored":
            return f"nothing was scored ({errors})" if reason.errors else "nothing was scored"
        case "samples":
            return _samples(reason)
        case "requirement":
            return _requirement(reason, errors)
        case "warned":
            return f"missed a warn-only assertion in {_count_missed(reason)}: {_list_samples(reason)}"
        case "few_trials":
            these = count(reason.samples_in_all, "sample")
            return f"{these} with fewer than the {reason.trials} trials that the gate needs: {_list_samples(reason)}"
        case "min_scored":
            expected = reason.scored + reason.errors
            return f"{reason.scored:,} of {expected:,} scored; min_scored is {limit_text(reason.min_scored)}"
        case "errors":
            these = count(reason.errors, "conversation")
            return f"{these} ended with an error or a missing score{_of_tester(reason)}; {_limit_text(reason)}"
        case "spoiled":
            return (
                f"tester errors in {reason.errors:,} of {count(reason.scored, 'conversation')}; {_limit_text(reason)}"
            )
        case "unverified":
            these = f"{reason.errors:,} of {count(reason.scored, 'verdict')}"
            return f"{these} rest on unverified evidence; {_limit_text(reason)}"
        case "breaches":
            return _breaches(reason, errors)
        case _:
            return _condition(reason, errors)


def _limit_text(reason: Reason) -> str:
    return f"allowed: {reason.limit or '0'}"


def _breaches(reason: Reason, errors: str) -> str:
    name = next((name for kind, name in BREACH_NAMES.items() if kind == reason.text), "finding")
    where = f" in {_list_samples(reason)}" if reason.samples else ""
    text = f"{count(reason.missed, name)}{where}; {_limit_text(reason)}"
    return f"{text}; {errors} could change the result" if reason.verdict == "inconclusive" else text


def errors_text(errors: int, of_tester: int) -> str:
    """Return how many errors there are, and how many of them the tester made that led the conversations."""
    if not of_tester:
        return count(errors, "error")
    if of_tester == errors:
        return count(errors, "tester error")
    return f"{count(errors, 'error')} ({of_tester:,} of the tester)"


def failed_errors(reason: Reason) -> str:
    """Return how many errors a gate counted as failures."""
    verb = "counts" if reason.errors == 1 else "count"
    return f"{errors_text(reason.errors, reason.tester_errors)} {verb} as failed, with a score of 0"


def _of_tester(reason: Reason) -> str:
    return f", {reason.tester_errors:,} of them because of the tester" if reason.tester_errors else ""


def _samples(reason: Reason) -> str:
    must = f"each sample must pass at least {count(reason.trials or 0, 'time')}"
    failed = f"; {failed_errors(reason)}" if reason.errors_fail else ""
    if reason.verdict == "pass":
        return f"{must}; all {reason.scored:,} did{failed}"
    these = f"{reason.samples_in_all:,} of {reason.scored:,}"
    if reason.verdict == "fail":
        return f"{must}; {these} did not: {_list_samples(reason)}{failed}"
    return f"{must}; errors could change the result of {these}: {_list_samples(reason)}"


def _requirement(reason: Reason, errors: str) -> str:
    must = "every conversation must pass"
    if reason.verdict == "pass":
        return f"{must}; all {reason.scored:,} passed"
    if reason.verdict == "fail":
        return f"{must}; {_count_missed(reason)} did not: {_list_samples(reason)}"
    if not reason.scored and not reason.errors:
        return f"{must}; it applied to no conversation, so nothing was checked"
    return f"{must}; {errors} could change the result"


def _count_missed(reason: Reason) -> str:
    return f"{reason.missed:,} of {reason.scored:,}"


def _list_samples(reason: Reason) -> str:
    samples = [_count_trials(sample, reason) for sample in reason.samples[:MAX_SAMPLES]]
    more = reason.samples_in_all - len(samples)
    return ", ".join(samples) + (f" and {more:,} more" if more else "")


def _count_trials(sample: SampleTrials, reason: Reason) -> str:
    """Return the id of a sample, with how often it passed where it has trials."""
    tried = sample.scored + sample.errors
    alone = reason.code == "breaches" or (reason.code in ("requirement", "warned") and tried == 1)
    return sample.sample_id if alone else f"{sample.sample_id} ({sample.passed} of {tried})"


def _condition(reason: Reason, errors: str) -> str:
    assert reason.condition is not None
    condition = reason.condition
    must = f"{aggregate_name(condition)} must be {SIGNS[condition.op]} {value_text(condition)}"
    if reason.code == "no_interval":
        return f"{must}; one sample has no interval"
    known = "unknown" if reason.found is None else found_text(reason.found, condition)
    text = f"{must}; it is {known}{_ends(reason)}"
    if reason.code == "undecided":
        return f"{text}; this does not decide the gate"
    if reason.errors_fail:
        return f"{text}; {failed_errors(reason)}"
    return f"{text}; {errors} could change the result" if reason.verdict == "inconclusive" else text


def _ends(reason: Reason) -> str:
    """Return the interval that decides a condition, in its unit; empty where the aggregate alone does."""
    if reason.low is None or reason.high is None or reason.condition is None:
        return ""
    scale = 100 if reason.condition.aggregation == "accuracy" else 1
    low, high = (found_text(scale * end, reason.condition) for end in (reason.low, reason.high))
    return f", interval {low} to {high}"


def aggregate_name(condition: Condition) -> str:
    """Return what a condition compares: `mean`, `pass^3`, `share of scores ≥ 0.6`."""
    name = _NAMES[condition.aggregation] + ("" if condition.k is None else str(condition.k))
    if condition.pass_threshold is not None or condition.pass_op != "gte":
        limit = PASSING if condition.pass_threshold is None else condition.pass_threshold
        name = f"share of scores {SIGNS[condition.pass_op]} {limit_text(limit)}"
    name = f"corrected {name}" if condition.corrected else name
    return f"lower bound of the {name}" if condition.lower else name


def value_text(condition: Condition) -> str:
    """Return the value of a condition with all of its digits, in its unit."""
    return f"{limit_text(condition.value)}{_unit(condition)}"


def found_text(number: float, condition: Condition, *, decimals: int | None = None) -> str:
    """Return a number in the unit of a condition, with enough digits to show its side of the value."""
    return f"{number_text(number, condition.value, decimals=decimals)}{_unit(condition)}"


def _unit(condition: Condition) -> str:
    return "%" if condition.aggregation == "accuracy" else ""


def _graders(weights: Mapping[str, float]) -> str:
    if len(weights) == 1:
        return next(iter(weights))
    return " + ".join(f"{weight:g} × {name}" for name, weight in weights.items())


def unverified_lines(summary: Summary) -> Iterator[str]:
    """Yield a line for each grader with verdicts that rest on unverified evidence."""
    several = len(target_names(summary)) > 1
    for grader in summary.graders:
        if grader.unverified:
            name = safe(f"{grader.name} of {grader.target}" if several else grader.name)
            rests = "rests" if grader.unverified == 1 else "rest"
            yield f"{name}: {count(grader.unverified, 'verdict')} {rests} on unverified evidence"


def corrected_lines(summary: Summary, run_id: str) -> Iterator[str]:
    """Yield a sentence for each grader whose judge was calibrated."""
    several = len(target_names(summary)) > 1
    for grader in summary.graders:
        if grader.corrected is not None:
            name = f"{grader.name} of {grader.target}" if several else grader.name
            yield safe(f"{name}: {corrected_text(grader.corrected, run_id)}")


def corrected_text(rate: CorrectedRate, run_id: str) -> str:
    """Return what the labels of people make of a rate of the judge, or why they make nothing of it."""
    raw = "" if rate.raw is None else f"{rate.raw:.1%} pass (judge), "
    if rate.value is None or rate.low is None or rate.high is None:
        return f"{raw}not corrected: {rate.why}"
    of = "of this run" if rate.labels_of == run_id else f"of run {rate.labels_of}"
    return (
        f"{raw}{rate.value:.1%} corrected [{rate.low:.1%}, {rate.high:.1%}] by {count(rate.labels, 'label')} {of} "
        f"({_METHODS[rate.method or 'rogan_gladen']})"
    )


_METHODS = {"prediction_powered": "prediction-powered", "rogan_gladen": "Rogan–Gladen"}


_REMEDY = 400
"""Characters of an error at most: the end says what to do."""
_ANSWER = 200
"""Characters of what a system answered, at most."""


@dataclass(frozen=True, slots=True)
class ErrorGroup:
    """Errors of one target that say the same; `key` is the first, `why` one line, `cause` what a filter calls them."""

    key: AttemptKey
    number: int
    why: str
    cause: str

    @property
    def filter(self) -> str:
        """The filter that lets these conversations through, of whichever target."""
        return f"cause:{self.cause}"


@dataclass(frozen=True, slots=True)
class ErrorGroups:
    """The groups, the most frequent first, and how many conversations have another error."""

    groups: list[ErrorGroup]
    more: int


def error_groups(store: Store, grading: Grading, limit: int) -> ErrorGroups:
    """Return up to `limit` groups of errors."""
    errors = store.browse.errors_alike(grading.id, limit)
    return ErrorGroups([_group(group) for group in errors.groups], errors.more)


def _group(group: AlikeErrors) -> ErrorGroup:
    text = one_line(error_text(group.grader, group.failure, group.reason), _REMEDY)
    return ErrorGroup(
        AttemptKey(group.sample_id, group.target, group.trial), group.number, text + _answer_text(group), group.cause
    )


def _answer_text(group: AlikeErrors) -> str:
    """Return what a system answered instead, where that was not an answer to use."""
    failure = group.failure
    if failure is None or failure.evidence is None or failure.kind != "http":
        return ""
    return f", “{one_line(failure.evidence, _ANSWER)}”"


MAX_FINDINGS = 12
"""Findings of one score that are shown."""
_WIDTH = 200
_STYLES: Mapping[FindingState, str] = {
    "pass": "green",
    "partial": "yellow",
    "fail": "red",
    "warn": "yellow",
    "skip": "dim",
}


def score_text(score: Score) -> str:
    """Return a score as text: its value, or the number of a measurement, or why there is neither."""
    if score.value is not None:
        return f"{score.value:.2f}"
    return score_number(score) or score.state


def findings(score: Score) -> Iterator[Labelled]:
    """Yield a line for each finding of a score, each followed by its evidence; then the other evidence of the score."""
    for finding in score.findings[:MAX_FINDINGS]:
        word = one_line(finding.verdict or finding.kind, _WIDTH).replace("_", " ")
        yield Labelled(Text(f"      {word:>14}  ", style=_STYLES[finding.state]), Text(one_line(finding.fact, _WIDTH)))
        yield from _evidence(finding.evidence)
    if len(score.findings) > MAX_FINDINGS:
        yield Labelled(Text(" " * 22), Text(f"… and {len(score.findings) - MAX_FINDINGS} more", style="dim"))
    yield from _evidence(score.other_evidence)


def failed_steps(scores: Iterable[Score], turn: int) -> Iterator[Labelled]:
    """Yield a line for each step in a turn with which the conversation failed, by the scores of the conversation."""
    for finding in (finding for score in scores for finding in score.findings):
        if finding.kind == FAILED_STEP and finding.turn == turn:
            text = f"{finding.verdict.replace('_', ' ')}: {finding.what}"
            yield Labelled(Text("   failed  ", style="red"), Text(one_line(text, _WIDTH), style="red"))


def _evidence(evidence: Sequence[Evidence]) -> Iterator[Labelled]:
    for quote in evidence[:MAX_FINDINGS]:
        place = turn_label(quote.turn) if quote.verified else "not found"
        style = "dim" if quote.verified else "bold yellow"
        text = f"call {quote.text}" if quote.kind == "call" else f"“{quote.text}”"
        yield Labelled(Text(f"{place:>24}  ", style=style), Text(one_line(text, _WIDTH), style="dim"))


def headline(summary: Summary, grading: Grading) -> GraderSummary | None:
    """Return the grader that a run fails because of, else its main grader; None if nothing was graded."""
    name, target = failing_grader([reason.model_dump() for reason in summary.reasons])
    failing = next(
        (grader for grader in summary.graders if grader.name == name and target in (None, grader.target)), None
    )
    return failing or main_grader(summary, grading)


def main_grader(summary: Summary, grading: Grading) -> GraderSummary | None:
    """Return the grader of the gate, else the reward, else the first; None if nothing was graded.

    A grader that only measures comes after the others.
    """
    for key in (gate_of(grading).get("metric_key"), "reward"):
        if grader := next((grader for grader in summary.graders if grader.name == key), None):
            return grader
    return next((grader for grader in summary.graders if grader.measured is None), next(iter(summary.graders), None))


def gate_of(grading: Grading) -> Mapping[str, Any]:
    """Return the gate as the suite states it, empty if it has none."""
    gate = grading.spec.get("gate")
    return cast("dict[str, Any]", gate) if isinstance(gate, dict) else {}


MIN_FAILURES = 3
"""Failures with a tag from which on the tag is named."""
CHANCE = 0.05
"""The largest probability that chance alone gives a tag this many failures, over all tags together."""

_WORDS: Mapping[Verdict, str] = {"pass": "passes", "fail": "fails", "inconclusive": "undecided"}
_MISSED: Mapping[Operator, str] = {"gt": "≤", "gte": "<", "lt": "≥", "lte": ">", "eq": "≠"}


def finding(summary: Summary, grading: Grading) -> str:
    """Return the verdict with what it rests on, as one sentence without control characters.

    A tag is named only where its samples fail clearly more often than the others do.
    """
    return sentence(summary, headline(summary, grading))


def listed_finding(entry: RunEntry) -> str:
    """Return the sentence for a run of a list, from its stored summary; empty while nothing is summed up."""
    if entry.summary is None or entry.status == "running":
        return ""
    summary, head = Summary.model_validate(entry.summary), entry.headline
    if entry.status == "interrupted" and summary.stopped is None:
        summary = summary.stopped_by("interrupted")
    return sentence(summary, None if head is None else summary.grader(head.name, head.target))


def headline_failed(entry: RunEntry) -> bool:
    """Return whether a condition of the headline grader alone failed; another condition is not a fault of its mean."""
    head = entry.headline
    if entry.summary is None or head is None:
        return False
    return any(
        reason.verdict == "fail" and list(reason.graders) == [head.name] and reason.target in (None, head.target)
        for reason in Summary.model_validate(entry.summary).reasons
    )


def sentence(summary: Summary, head: GraderSummary | None) -> str:
    """Return the verdict with what it rests on; `head` is the headline grader, which it tells where no gate decides.

    Where not all conversations were judged, it says how many were.
    """
    sampling = summary.sampling
    judged = "" if sampling is None else f"; {summary.attempts:,} of {sampling.population:,} judged"
    return _sentence(summary, head) + judged


def _sentence(summary: Summary, head: GraderSummary | None) -> str:
    if summary.stopped is not None:
        return _join("undecided", [summary.stopped, *([f"{_mean(head, summary)} so far"] if _has_mean(head) else [])])
    if summary.verdict is None:
        mean = _mean(head, summary) if head is not None and _has_mean(head) else "nothing was scored"
        return _join("no gate", [mean, *_errors(summary, None)])
    mine = [reason for reason in summary.reasons if reason.verdict == summary.verdict]
    first = next(iter(mine), None)
    parts = [] if first is None else [_reason(first, summary)]
    parts += [f"and {count(len(mine) - 1, 'more condition')}"] if len(mine) > 1 and summary.verdict != "pass" else []
    parts += filter(None, [failures(summary)])
    warnings = [count(len(summary.warnings), "warning")] if summary.warnings else []
    return _join(_WORDS[summary.verdict], [*parts, *_errors(summary, first), *warnings])


def failures(summary: Summary) -> str:
    """Return which tag most failures have, `9 of 14 failures are refunds`; empty where no tag clearly has more.

    It is about the grader of the first condition that failed; empty if no condition of a single grader did.
    """
    if summary.verdict != "fail" or summary.stopped is not None:
        return ""
    broken = next((reason for reason in summary.reasons if reason.verdict == "fail"), None)
    grader = None if broken is None else _grader(broken, summary)
    if grader is None:
        return ""
    lost = _count_lost(grader)
    tagged = [(row.tag, inner) for row in summary.tags for inner in row.graders if _same(inner, grader)]
    clear = [
        (_count_lost(inner), safe(tag))
        for tag, inner in tagged
        if _count_lost(inner) >= MIN_FAILURES and _chance(inner, grader) * len(tagged) <= CHANCE
    ]
    if not clear:
        return ""
    most, tag = max(clear, key=lambda pair: pair[0])
    return f"{most:,} of {count(lost, 'failure')} are {tag}"


def _join(word: str, parts: list[str]) -> str:
    return safe(f"{word}: {'; '.join(parts)}" if parts else word)


def _has_mean(grader: GraderSummary | None) -> bool:
    return grader is not None and (grader.mean is not None or grader.measured is not None)


def _mean(grader: GraderSummary | None, summary: Summary) -> str:
    assert grader is not None
    if grader.mean is None:
        return f"{_name(grader, summary)} {mean_text(grader)}"
    return f"{_name(grader, summary)} {grader.mean:.2f}{_interval(grader.low, grader.high)}"


def _name(grader: GraderSummary, summary: Summary) -> str:
    several = len({grader.target for grader in summary.graders}) > 1
    return f"{grader.name} of {grader.target}" if several else grader.name


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" [{low:.2f}, {high:.2f}]"


def _reason(reason: Reason, summary: Summary) -> str:
    """Return a condition as a comparison; anything else in the words of every report."""
    condition, grader = reason.condition, _grader(reason, summary)
    plain = (
        condition is not None and reason.code == "threshold" and not _is_bounded(condition) and reason.found is not None
    )
    if not plain or grader is None or reason.verdict == "inconclusive":
        return reason_text(reason)
    assert condition is not None
    assert reason.found is not None
    sign = (SIGNS if reason.verdict == "pass" else _MISSED)[condition.op]
    failed = f"; {failed_errors(reason)}" if reason.errors_fail else ""
    match condition.aggregation:
        case "avg_score":
            mean = found_text(reason.found, condition, decimals=2)
            ends = "" if reason.errors_fail else _interval(grader.low, grader.high)
            return f"{_name(grader, summary)} {mean}{ends} {sign} {value_text(condition)}{failed}"
        case "accuracy":
            rate = f"{aggregate_name(condition)} {found_text(reason.found, condition)}"
            return f"{_name(grader, summary)} {rate} {sign} {value_text(condition)}{failed}"
        case _:
            return reason_text(reason)


def _is_bounded(condition: Condition) -> bool:
    return condition.lower or condition.corrected


def _grader(reason: Reason, summary: Summary) -> GraderSummary | None:
    """Return the summary of the only grader that a reason is about."""
    if len(reason.graders) != 1:
        return None
    (name,) = reason.graders
    return next(
        (grader for grader in summary.graders if grader.name == name and reason.target in (None, grader.target)),
        None,
    )


def _errors(summary: Summary, reason: Reason | None) -> Iterator[str]:
    """Yield how many conversations lack a score because of an error, unless the sentence says so already."""
    if summary.error_attempts and (reason is None or not reason.errors):
        these = f"{count(summary.error_attempts, 'conversation')} with an error"
        spoiled = summary.tester_error_attempts
        yield f"{these}, {spoiled:,} of them because of the tester" if spoiled else these


def _count_lost(grader: GraderSummary) -> int:
    """Return how many scores did not pass."""
    return 0 if grader.pass_rate is None else round(grader.scored * (1 - grader.pass_rate))


def _same(first: GraderSummary, other: GraderSummary) -> bool:
    return (first.name, first.target) == (other.name, other.target)


def _chance(part: GraderSummary, whole: GraderSummary) -> float:
    """Return the probability that at least this many failures fall into a part by chance.

    Trials of one sample are not independent, so counts are those of samples: the scores are divided by the trials.
    Source: R. A. Fisher, "Statistical Methods for Research Workers", 1934, the exact test of a 2×2 table, one-sided.
    """
    trials = max(1, round(whole.scored / max(whole.samples, 1)))
    n, marked, sample_size, hits = (
        number // trials for number in (whole.scored, part.scored, _count_lost(whole), _count_lost(part))
    )
    if not hits or marked > n:
        return 1.0
    ways = sum(comb(marked, k) * comb(n - marked, sample_size - k) for k in range(hits, min(marked, sample_size) + 1))
    return ways / comb(n, sample_size)


class Spoiled(Protocol):
    """The rates of a grader, as a summary has them."""

    @property
    def tester_errors(self) -> int:
        """How many conversations the tester spoiled."""
        ...

    @property
    def pass_rate(self) -> float | None:
        """The share of the others that passes."""
        ...

    @property
    def raw_pass_rate(self) -> float | None:
        """The share if all that were spoiled had failed."""
        ...

    @property
    def highest_pass_rate(self) -> float | None:
        """The share if all that were spoiled had passed."""
        ...


def net_text(rates: Spoiled) -> str:
    """Return what passes without the conversations that the tester spoiled, with its bounds; empty for none spoiled."""
    if not rates.tester_errors:
        return ""
    they_count = "it counts" if rates.tester_errors == 1 else "all count"
    net = f"{_rate(rates.pass_rate)} pass net of {count(rates.tester_errors, 'tester error')}"
    lowest, highest = _rate(rates.raw_pass_rate), _rate(rates.highest_pass_rate)
    return f"{net}; {lowest} if {they_count} as failed (raw), {highest} if {they_count} as passed"


def spoiled_lines(summary: Summary) -> Iterator[str]:
    """Yield for each grader that misses scores because of the tester what passes without them, and the bounds."""
    several = len(target_names(summary)) > 1
    for grader in summary.graders:
        if text := net_text(grader):
            yield f"{safe(f'{grader.name} of {grader.target}' if several else grader.name)}: {text}"


def _rate(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"
