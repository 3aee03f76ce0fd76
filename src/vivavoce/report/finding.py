"""The finding of a run: the one line that says how it went, and what else it found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import comb
from typing import Any, cast

from rich.text import Text

from vivavoce.comparing.thresholds import SIGNS, Operator
from vivavoce.records.run import Condition, Grading, Reason, Verdict, failing_grader
from vivavoce.records.score import FAILED_STEP, Evidence, FindingState, Score, turn_label
from vivavoce.report.details import mean_text, score_number
from vivavoce.report.reasons import aggregate_name, failed_errors, found_text, reason_text, value_text
from vivavoce.report.text import Labelled, count, one_line
from vivavoce.run.summary import GraderSummary, Summary
from vivavoce.safe_text import safe
from vivavoce.store.browse.listing import RunEntry

SHOWN = 12
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
    for one in score.findings[:SHOWN]:
        word = one_line(one.verdict or one.kind, _WIDTH).replace("_", " ")
        yield Labelled(Text(f"      {word:>14}  ", style=_STYLES[one.state]), Text(one_line(one.fact, _WIDTH)))
        yield from _evidence(one.evidence)
    if len(score.findings) > SHOWN:
        yield Labelled(Text(" " * 22), Text(f"… and {len(score.findings) - SHOWN} more", style="dim"))
    yield from _evidence(score.other_evidence)


def failed_steps(scores: Iterable[Score], turn: int) -> Iterator[Labelled]:
    """Yield a line for each step in a turn with which the conversation failed, by the scores of the conversation."""
    for one in (one for score in scores for one in score.findings):
        if one.kind == FAILED_STEP and one.turn == turn:
            said = f"{one.verdict.replace('_', ' ')}: {one.what}"
            yield Labelled(Text("   failed  ", style="red"), Text(one_line(said, _WIDTH), style="red"))


def _evidence(evidence: Sequence[Evidence]) -> Iterator[Labelled]:
    for one in evidence[:SHOWN]:
        place = turn_label(one.turn) if one.verified else "not found"
        style = "dim" if one.verified else "bold yellow"
        shown = f"call {one.text}" if one.kind == "call" else f"“{one.text}”"
        yield Labelled(Text(f"{place:>24}  ", style=style), Text(one_line(shown, _WIDTH), style="dim"))


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
        if found := next((grader for grader in summary.graders if grader.name == key), None):
            return found
    return next((grader for grader in summary.graders if grader.measured is None), next(iter(summary.graders), None))


def gate_of(grading: Grading) -> Mapping[str, Any]:
    """Return the gate as the suite states it, empty if it has none."""
    gate = grading.spec.get("gate")
    return cast("dict[str, Any]", gate) if isinstance(gate, dict) else {}


FEWEST = 3
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
    drawn = summary.sampling
    judged = "" if drawn is None else f"; {summary.attempts:,} of {drawn.population:,} judged"
    return _sentence(summary, head) + judged


def _sentence(summary: Summary, head: GraderSummary | None) -> str:
    if summary.stopped is not None:
        return _joined("undecided", [summary.stopped, *([f"{_mean(head, summary)} so far"] if _known(head) else [])])
    if summary.verdict is None:
        said = _mean(head, summary) if head is not None and _known(head) else "nothing was scored"
        return _joined("no gate", [said, *_errors(summary, None)])
    mine = [reason for reason in summary.reasons if reason.verdict == summary.verdict]
    first = next(iter(mine), None)
    said = [] if first is None else [_reason(first, summary)]
    said += [f"and {count(len(mine) - 1, 'more condition')}"] if len(mine) > 1 and summary.verdict != "pass" else []
    said += [one for one in [failures(summary)] if one]
    warnings = [count(len(summary.warnings), "warning")] if summary.warnings else []
    return _joined(_WORDS[summary.verdict], [*said, *_errors(summary, first), *warnings])


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
    lost = _lost(grader)
    tagged = [(one.tag, inner) for one in summary.tags for inner in one.graders if _same(inner, grader)]
    clear = [
        (_lost(inner), safe(tag))
        for tag, inner in tagged
        if _lost(inner) >= FEWEST and _chance(inner, grader) * len(tagged) <= CHANCE
    ]
    if not clear:
        return ""
    most, tag = max(clear, key=lambda one: one[0])
    return f"{most:,} of {count(lost, 'failure')} are {tag}"


def _joined(word: str, parts: list[str]) -> str:
    return safe(f"{word}: {'; '.join(parts)}" if parts else word)


def _known(grader: GraderSummary | None) -> bool:
    return grader is not None and (grader.mean is not None or grader.measured is not None)


def _mean(grader: GraderSummary | None, summary: Summary) -> str:
    assert grader is not None
    if grader.mean is None:
        return f"{_name(grader, summary)} {mean_text(grader)}"
    return f"{_name(grader, summary)} {grader.mean:.2f}{_interval(grader.low, grader.high)}"


def _name(grader: GraderSummary, summary: Summary) -> str:
    several = len({one.target for one in summary.graders}) > 1
    return f"{grader.name} of {grader.target}" if several else grader.name


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" [{low:.2f}, {high:.2f}]"


def _reason(reason: Reason, summary: Summary) -> str:
    """Return a condition as a comparison; anything else in the words of every report."""
    condition, grader = reason.condition, _grader(reason, summary)
    plain = (
        condition is not None and reason.code == "threshold" and not _bounded(condition) and reason.found is not None
    )
    if not plain or grader is None or reason.verdict == "inconclusive":
        return reason_text(reason)
    assert condition is not None
    assert reason.found is not None
    sign = (SIGNS if reason.verdict == "pass" else _MISSED)[condition.op]
    failed = f"; {failed_errors(reason)}" if reason.errors_fail else ""
    match condition.aggregation:
        case "avg_score":
            found = found_text(reason.found, condition, decimals=2)
            ends = "" if reason.errors_fail else _interval(grader.low, grader.high)
            return f"{_name(grader, summary)} {found}{ends} {sign} {value_text(condition)}{failed}"
        case "accuracy":
            rate = f"{aggregate_name(condition)} {found_text(reason.found, condition)}"
            return f"{_name(grader, summary)} {rate} {sign} {value_text(condition)}{failed}"
        case _:
            return reason_text(reason)


def _bounded(condition: Condition) -> bool:
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


def _errors(summary: Summary, said: Reason | None) -> Iterator[str]:
    """Yield how many conversations lack a score because of an error, unless the sentence says so already."""
    if summary.error_attempts and (said is None or not said.errors):
        these = f"{count(summary.error_attempts, 'conversation')} with an error"
        spoiled = summary.tester_error_attempts
        yield f"{these}, {spoiled:,} of them because of the tester" if spoiled else these


def _lost(grader: GraderSummary) -> int:
    """Return how many scores did not pass."""
    return 0 if grader.pass_rate is None else round(grader.scored * (1 - grader.pass_rate))


def _same(one: GraderSummary, other: GraderSummary) -> bool:
    return (one.name, one.target) == (other.name, other.target)


def _chance(part: GraderSummary, whole: GraderSummary) -> float:
    """Return the probability that at least this many failures fall into a part by chance.

    Trials of one sample are not independent, so counts are those of samples: the scores are divided by the trials.
    Source: R. A. Fisher, "Statistical Methods for Research Workers", 1934, the exact test of a 2×2 table, one-sided.
    """
    trials = max(1, round(whole.scored / max(whole.samples, 1)))
    n, marked, drawn, found = (one // trials for one in (whole.scored, part.scored, _lost(whole), _lost(part)))
    if not found or marked > n:
        return 1.0
    ways = sum(comb(marked, k) * comb(n - marked, drawn - k) for k in range(found, min(marked, drawn) + 1))
    return ways / comb(n, drawn)
