"""Why a run passes or fails, in words, and the errors behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from vivavoce.comparing.thresholds import SIGNS, limit_text, number_text
from vivavoce.records.label import CorrectedRate
from vivavoce.records.run import BREACH_NAMES, Aggregation, AttemptKey, Condition, Grading, Reason, SampleTrials
from vivavoce.records.score import PASSING, error_text
from vivavoce.report.best_target import target_names
from vivavoce.report.text import count, one_line
from vivavoce.run.summary import Summary
from vivavoce.safe_text import safe
from vivavoce.store.browse.listing import AlikeErrors
from vivavoce.store.store import Store


def breach_lines(summary: Summary) -> Iterator[str]:
    """Yield a line for each grader whose judge found false statements or broken rules."""
    several = len(target_names(summary)) > 1
    for grader in summary.graders:
        if grader.breaches:
            name = safe(f"{grader.name} of {grader.target}" if several else grader.name)
            numbers = [count(number, BREACH_NAMES[kind]) for kind, number in grader.breaches.items()]
            yield f"{name}: {', '.join(numbers)}"


SHOWN = 10
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


def explained(summary: Summary) -> list[str]:
    """Return why the verdict is what it is, a line for each reason, then for each warning.

    After an early stop they are provisional.
    """
    lines = [f"{reason.verdict} · {reason_text(reason)}" for reason in summary.reasons]
    lines += [f"warning · {reason_text(warning)}" for warning in summary.warnings]
    return lines if summary.stopped is None else [summary.stopped, *(f"so far: {line}" for line in lines)]


def reason_text(reason: Reason) -> str:
    """Return one reason in words, without its verdict."""
    named = [] if reason.target is None else [reason.target]
    if reason.graders:
        named.append(_graders(reason.graders))
    return ": ".join([*named, _what(reason)])


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
            return f"missed an assertion that only warns in {_missed(reason)}: {_listed(reason)}"
        case "few_trials":
            these = count(reason.samples_in_all, "sample")
            return f"{these} of fewer than {reason.trials} trials, which the gate needs: {_listed(reason)}"
        case "min_scored":
            expected = reason.scored + reason.errors
            return f"{reason.scored:,} of {expected:,} scored; min_scored is {limit_text(reason.min_scored)}"
        case "errors":
            limit = "none may" if reason.limit in (None, "0") else f"at most {reason.limit} may"
            these = count(reason.errors, "conversation")
            return f"{these} ended with an error or a missing score{_of_tester(reason)}; {limit}"
        case "spoiled":
            limit = "none may be" if reason.limit == "0" else f"at most {reason.limit} may be left out"
            return f"the tester spoiled {reason.errors:,} of {count(reason.scored, 'conversation')}; {limit}"
        case "unverified":
            limit = "none may" if reason.limit == "0" else f"at most {reason.limit} may"
            return f"{reason.errors:,} of {count(reason.scored, 'verdict')} rest on unverified evidence; {limit}"
        case "breaches":
            return _breaches(reason, errors)
        case _:
            return _condition(reason, errors)


def _breaches(reason: Reason, errors: str) -> str:
    name = next((name for kind, name in BREACH_NAMES.items() if kind == reason.text), "finding")
    limit = "none may be there" if reason.limit == "0" else f"at most {reason.limit} may be there"
    where = f" in {_listed(reason)}" if reason.samples else ""
    text = f"{count(reason.missed, name)}{where}; {limit}"
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
        return f"{must}; all {reason.scored:,} do{failed}"
    these = f"{reason.samples_in_all:,} of {reason.scored:,}"
    if reason.verdict == "fail":
        return f"{must}; {these} did not: {_listed(reason)}{failed}"
    return f"{must}; errors could change the result of {these}: {_listed(reason)}"


def _requirement(reason: Reason, errors: str) -> str:
    must = "every conversation must pass"
    if reason.verdict == "pass":
        return f"{must}; all {reason.scored:,} do"
    if reason.verdict == "fail":
        return f"{must}; {_missed(reason)} did not: {_listed(reason)}"
    if not reason.scored and not reason.errors:
        return f"{must}; it applied to no conversation, so nothing was checked"
    return f"{must}; {errors} could change the result"


def _missed(reason: Reason) -> str:
    return f"{reason.missed:,} of {reason.scored:,}"


def _listed(reason: Reason) -> str:
    shown = [_counted(sample, reason) for sample in reason.samples[:SHOWN]]
    more = reason.samples_in_all - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def _counted(sample: SampleTrials, reason: Reason) -> str:
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
        return f"{text}, which does not decide it"
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
    raw = "" if rate.raw is None else f"{rate.raw:.1%} pass by the judge, "
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

    shown: list[ErrorGroup]
    more: int


def error_groups(store: Store, grading: Grading, limit: int) -> ErrorGroups:
    """Return up to `limit` groups of errors."""
    found = store.browse.errors_alike(grading.id, limit)
    return ErrorGroups([_group(group) for group in found.groups], found.more)


def _group(one: AlikeErrors) -> ErrorGroup:
    said = one_line(error_text(one.grader, one.failure, one.reason), _REMEDY)
    return ErrorGroup(AttemptKey(one.sample_id, one.target, one.trial), one.number, said + _answered(one), one.cause)


def _answered(one: AlikeErrors) -> str:
    """Return what a system answered instead, where that was not an answer to use."""
    failure = one.failure
    if failure is None or failure.evidence is None or failure.kind != "http":
        return ""
    return f", “{one_line(failure.evidence, _ANSWER)}”"
