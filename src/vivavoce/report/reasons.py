"""Why a verdict is what it is, in words."""

from __future__ import annotations

from collections.abc import Mapping

from vivavoce.records.reason import Aggregation, Condition, Operator, Reason, SampleTrials
from vivavoce.report.text import count
from vivavoce.run.summary import Summary

_SIGNS: Mapping[Operator, str] = {"gt": ">", "gte": "≥", "lt": "<", "lte": "≤", "eq": "="}
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
    lines = [f"{one.verdict} · {reason_text(one)}" for one in summary.reasons]
    lines += [f"warning · {reason_text(one)}" for one in summary.warnings]
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
            return f"{reason.scored:,} of {expected:,} scored; min_scored is {reason.min_scored:g}"
        case "errors":
            limit = "none may" if reason.limit in (None, "0") else f"at most {reason.limit} may"
            these = count(reason.errors, "conversation")
            return f"{these} ended with an error or a missing score{_of_tester(reason)}; {limit}"
        case "spoiled":
            limit = "none may be" if reason.limit == "0" else f"at most {reason.limit} may be left out"
            return f"the tester spoiled {reason.errors:,} of {count(reason.scored, 'conversation')}; {limit}"
        case _:
            return _condition(reason, errors)


def errors_text(errors: int, of_tester: int) -> str:
    """Return how many errors there are, and how many of them the tester made that led the conversations."""
    if not of_tester:
        return count(errors, "error")
    if of_tester == errors:
        return count(errors, "tester error")
    return f"{count(errors, 'error')} ({of_tester:,} of the tester)"


def _of_tester(reason: Reason) -> str:
    return f", {reason.tester_errors:,} of them because of the tester" if reason.tester_errors else ""


def _samples(reason: Reason) -> str:
    must = f"each sample must pass at least {count(reason.trials or 0, 'time')}"
    if reason.verdict == "pass":
        return f"{must}; all {reason.scored:,} do"
    these = f"{reason.samples_in_all:,} of {reason.scored:,}"
    if reason.verdict == "fail":
        return f"{must}; {these} did not: {_listed(reason)}"
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
    shown = [_counted(one, reason) for one in reason.samples[:SHOWN]]
    more = reason.samples_in_all - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def _counted(sample: SampleTrials, reason: Reason) -> str:
    """Return the id of a sample, with how often it passed where it has trials."""
    tried = sample.scored + sample.errors
    alone = reason.code in ("requirement", "warned") and tried == 1
    return sample.sample_id if alone else f"{sample.sample_id} ({sample.passed} of {tried})"


def _condition(reason: Reason, errors: str) -> str:
    assert reason.condition is not None
    must = f"{_name(reason.condition)} must be {_SIGNS[reason.condition.op]} {_number(reason.condition.value, reason)}"
    if reason.code == "no_interval":
        return f"{must}; one sample has no interval"
    known = "unknown" if reason.found is None else _number(reason.found, reason)
    text = f"{must}; it is {known}{_ends(reason)}"
    if reason.code == "undecided":
        return f"{text}, which does not decide it"
    return f"{text}; {errors} could change the result" if reason.verdict == "inconclusive" else text


def _ends(reason: Reason) -> str:
    """Return the interval that decides a condition, in its unit; empty where the aggregate alone does."""
    if reason.low is None or reason.high is None or reason.condition is None:
        return ""
    scale = 100 if reason.condition.aggregation == "accuracy" else 1
    return f", interval {_number(scale * reason.low, reason)} to {_number(scale * reason.high, reason)}"


def _name(condition: Condition) -> str:
    name = _NAMES[condition.aggregation] + ("" if condition.k is None else str(condition.k))
    name = f"corrected {name}" if condition.corrected else name
    return f"lower bound of the {name}" if condition.lower else name


def _number(value: float, reason: Reason) -> str:
    percent = reason.condition is not None and reason.condition.aggregation == "accuracy"
    return f"{value:.4g}%" if percent else f"{value:.4g}"


def _graders(weights: Mapping[str, float]) -> str:
    if len(weights) == 1:
        return next(iter(weights))
    return " + ".join(f"{weight:g} × {name}" for name, weight in weights.items())
