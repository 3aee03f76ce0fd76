"""The verdict on a run: what decides it, and what is only a warning.

A run fails if a requirement is missed (the assertions of rows, a rule) or if its gate fails. It is inconclusive if
errors could change that, if a requirement or a grader has no score, or if more conversations have an error than are
allowed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from vivavoce.grading.gates import LISTED, Gate, graders_with_failing_errors
from vivavoce.grading.scores import ErrorLimit, Scores
from vivavoce.records.run import Reason, SampleTrials, Severity, Verdict
from vivavoce.run.tallies import Correct, Tallies, Tally, spoiled_attempts

_WITHOUT_SCORES = ("nothing_scored", "requirement")
"""The codes of reasons that say of a grader that it has no score because of errors."""
_RANK: dict[Verdict, int] = {"pass": 0, "inconclusive": 1, "fail": 2}


@dataclass(frozen=True, slots=True)
class Rules:
    """What a run must meet.

    `requirements` has the graders that every conversation must pass, with what a miss does. The `gate` decides on
    scores, None where there is none. `limit` is how many conversations may have an error; the scores that exist then
    decide. `correct` gives the calibration of a grader for a target. A run of only a `part` of the samples need not
    have an occasion for each requirement.
    """

    gate: Gate | None = None
    requirements: Mapping[str, Severity] = field(default_factory=dict[str, Severity])
    limit: ErrorLimit | None = None
    correct: Correct | None = None
    part: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict, None where nothing can fail; the reasons that decided it, and those that only warn."""

    verdict: Verdict | None
    reasons: list[Reason]
    warnings: list[Reason]


def worst(verdicts: Iterable[Verdict]) -> Verdict | None:
    """Return the worst of several verdicts, None if there is none."""
    return max(verdicts, key=_RANK.__getitem__, default=None)


def decide(
    tallies: Tallies, rules: Rules, *, errors: int, attempts: int, warned: Mapping[tuple[str, str], list[str]]
) -> Decision:
    """Return the verdict on the scores of a run; a gate and a requirement must hold for every target.

    `errors` of the `attempts` had an error of any kind. `warned` has by target and grader the samples with a missed
    assertion that only warns, once for each conversation.
    """
    required = [_requirement(tallies, *key, rules) for key in tallies if key[1] in rules.requirements]
    warnings = [reason for reason, severity in required if severity == "warn" and reason.verdict != "pass"]
    warnings += list(_warned(tallies, warned))
    failing = graders_with_failing_errors(rules.gate)
    silent = [reason for reason in _silent(tallies) if failing.isdisjoint(reason.graders)]
    if not any(tally.scored or (name in failing and tally.errors) for (_, name), tally in tallies.items()):
        reasons = silent or [Reason(verdict="inconclusive", code="nothing_scored")]
        return Decision("inconclusive", reasons, warnings)
    reasons = [reason for reason, severity in required if severity == "fail" and not _has_no_occasion(reason, rules)]
    reasons = sorted(reasons, key=lambda reason: -_RANK[reason.verdict])
    decided = _verdicts(reasons)
    if rules.gate is not None:
        verdict, by_gate = _by_gate(tallies, rules)
        decided.append(verdict)
        reasons += by_gate
    named = {(one.target, *one.graders) for one in reasons if one.code in _WITHOUT_SCORES and not one.scored}
    unnamed = [reason for reason in silent if (reason.target, *reason.graders) not in named]
    reasons += unnamed
    decided += _verdicts(unnamed)
    if (too_many := _too_many_errors(tallies, rules, errors, attempts)) is not None:
        reasons.append(too_many)
        decided.append("inconclusive")
    return Decision(worst(decided), reasons, warnings)


def _verdicts(reasons: Iterable[Reason]) -> list[Verdict]:
    return [reason.verdict for reason in reasons]


def _requirement(tallies: Tallies, target: str, name: str, rules: Rules) -> tuple[Reason, Severity]:
    """Return whether every conversation with a target passes by a grader, and what a miss does."""
    tally = tallies[target, name]
    missed = [sample for sample, passed in zip(tally.samples, tally.passed, strict=True) if not passed]
    open_errors = 0 if rules.limit is not None and tally.values else tally.errors
    verdict: Verdict = "fail" if missed else "inconclusive" if open_errors or not tally.values else "pass"
    reason = Reason(
        verdict=verdict,
        code="requirement",
        graders={name: 1.0},
        target=_named(tallies, target),
        scored=len(tally.values),
        errors=open_errors,
        tester_errors=min(open_errors, len(tally.spoiled)),
        **_listed(tally, missed),
    )
    return reason, rules.requirements[name]


def _has_no_occasion(reason: Reason, rules: Rules) -> bool:
    """Return whether a requirement applied to nothing, where only a part of the samples ran."""
    return rules.part and not reason.scored and not reason.errors


def _warned(tallies: Tallies, warned: Mapping[tuple[str, str], list[str]]) -> Iterator[Reason]:
    for (target, name), samples in warned.items():
        if (tally := tallies.get((target, name))) is not None:
            yield Reason(
                verdict="fail",
                code="warned",
                graders={name: 1.0},
                target=_named(tallies, target),
                scored=len(tally.values),
                **_listed(tally, samples),
            )


def _listed(tally: Tally, missed: list[str]) -> dict[str, Any]:
    """Return the fields of a reason that name the samples which missed something, `missed` once for each miss."""
    misses: dict[str, int] = defaultdict(int)
    for sample in missed:
        misses[sample] += 1
    scored: dict[str, int] = defaultdict(int)
    for sample in tally.samples if misses else ():
        scored[sample] += 1
    shown = [
        SampleTrials(sample_id=sample, passed=scored[sample] - count, scored=scored[sample])
        for sample, count in list(misses.items())[:LISTED]
    ]
    return {"samples": shown, "samples_in_all": len(misses), "missed": len(missed)}


def _silent(tallies: Tallies) -> Iterator[Reason]:
    """Yield a reason for each grader without any score because of errors."""
    for (target, name), tally in tallies.items():
        if tally.errors and not tally.scored:
            yield Reason(
                verdict="inconclusive",
                code="nothing_scored",
                graders={name: 1.0},
                target=_named(tallies, target),
                errors=tally.errors,
                tester_errors=len(tally.spoiled),
            )


def _too_many_errors(tallies: Tallies, rules: Rules, errors: int, attempts: int) -> Reason | None:
    """Return that more conversations have an error than are allowed: without a gate and a limit, any."""
    limit = rules.limit if rules.limit is not None or rules.gate is not None else ErrorLimit("0")
    if limit is None or not limit.exceeded(errors, attempts):
        return None
    spoiled = spoiled_attempts(tallies)
    return Reason(verdict="inconclusive", code="errors", errors=errors, tester_errors=spoiled, limit=limit.text)


def _by_gate(tallies: Tallies, rules: Rules) -> tuple[Verdict, list[Reason]]:
    """Return the worst verdict of the gate over the targets; with a limit on errors the scores that exist decide."""
    assert rules.gate is not None
    verdicts: list[Verdict] = []
    reasons: list[Reason] = []
    for target in dict.fromkeys(target for target, _ in tallies):
        by_name = {name: tally.scores for (other, name), tally in tallies.items() if other == target}
        if rules.correct is not None:
            correct = rules.correct
            by_name = {name: replace(scores, correction=correct(target, name)) for name, scores in by_name.items()}
        if rules.limit is not None:
            by_name = {name: replace(scores, missing=(), allowed=scores.missing) for name, scores in by_name.items()}
        result = rules.gate.decide(_Defaulting(by_name))
        verdicts.append(result.verdict)
        named = {"target": _named(tallies, target)}
        reasons += [reason.model_copy(update=named) for reason in result.reasons]
    return worst(verdicts) or "pass", reasons


def _named(tallies: Tallies, target: str) -> str | None:
    """Return the name of a target where there are several."""
    return target if len({target for target, _ in tallies}) > 1 else None


class _Defaulting(dict[str, Scores]):
    """Scores by grader; a grader without scores has an empty entry."""

    def __missing__(self, key: str) -> Scores:
        return Scores([], [], [])
