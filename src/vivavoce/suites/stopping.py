"""Which gates can end the trials of a run early, and which cannot, with the reason in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from vivavoce.errors import Problem
from vivavoce.grading.gates import Gate, LogicalGate, SamplesGate, SimpleGate
from vivavoce.run.stopping import Stopping
from vivavoce.run.summary import LEVEL
from vivavoce.suites.document import KeyPath
from vivavoce.suites.gate_spec import (
    AnyGateSpec,
    ConditionSpec,
    CustomRewardSpec,
    LogicalGateSpec,
    SamplesGateSpec,
    WeightedGateSpec,
)
from vivavoce.suites.load import Suite
from vivavoce.suites.spec import SuiteSpec, TrialsUntil

Refuse = Callable[[KeyPath, str], Problem]
_MEANS = ("avg_score", "accuracy")


def refusals(suite: Suite, rule: TrialsUntil, deciding: Sequence[str]) -> list[Problem]:
    """Return why the trials of a suite cannot end early, each with its place; empty where they can.

    `deciding` names the graders whose scores pass or fail.
    """
    spec, refuse = suite.spec, suite.document.problem
    found: list[Problem] = []
    if sum(len(one.named) for one in spec.all_targets.values()) > 1:
        several = "several targets are compared over the same trials; write trials as a number, or a suite for each"
        found.append(refuse(("trials",), several))
    if spec.gate is None:
        if rule.until is not None:
            found.append(refuse(("trials", "until"), "there is no gate to decide; write a gate, or half_width"))
        elif spec.reward is None and not deciding:
            found.append(refuse(("trials", "half_width"), "no grader has a threshold, so no mean has an interval"))
        return found
    return [*found, *_of_gate(spec.gate, ("gate",), spec, rule, refuse)]


def _of_gate(gate: AnyGateSpec, at: KeyPath, spec: SuiteSpec, rule: TrialsUntil, refuse: Refuse) -> Iterator[Problem]:
    if isinstance(gate, LogicalGateSpec):
        for place, one in enumerate(gate.conditions):
            inner = (*at, "conditions", place)
            if isinstance(one, SamplesGateSpec):
                yield refuse(inner, _early("a condition on each sample beside others", "kind: samples alone"))
            else:
                yield from _of_gate(one, inner, spec, rule, refuse)
    elif isinstance(gate, SamplesGateSpec):
        if rule.half_width is not None:
            yield refuse(at, "a condition on each sample has no interval to make narrow; write until: decided")
        elif gate.min_pass > rule.max:
            yield refuse((*at, "min_pass"), f"needs {gate.min_pass} trials of each sample; max is {rule.max}")
    elif isinstance(gate, WeightedGateSpec):
        yield refuse(at, _early("a weighted mean of aggregates", "a reward of kind: weighted, and a gate on reward"))
    else:
        yield from _of_condition(gate, at, spec, refuse)


def _of_condition(gate: ConditionSpec, at: KeyPath, spec: SuiteSpec, refuse: Refuse) -> Iterator[Problem]:
    if gate.aggregation not in _MEANS:
        yield refuse((*at, "aggregation"), _early(gate.aggregation, "avg_score or accuracy"))
        return
    if gate.on != "mean":
        hint = "on: mean, which passes only where its whole interval does"
        yield refuse((*at, "on"), _early(f"on: {gate.on}", hint))
    if gate.op == "eq":
        yield refuse((*at, "op"), _early("op: eq", "gt, gte, lt or lte"))
    end = 100.0 if gate.aggregation == "accuracy" else 1.0
    if gate.value in (0.0, end):
        no_side = f"no interval lies wholly on one side of {gate.value:g} or at it; write a value between 0 and {end:g}"
        yield refuse((*at, "value"), f"{no_side}, or kind: samples, or trials as a number")
    if gate.needs_calibration is not None:
        yield refuse((*at, "needs_calibration"), _early("a calibration", "trials as a number"))
    if gate.max_findings:
        yield refuse((*at, "max_findings"), _early("a limit on findings", "trials as a number"))
    if gate.metric_key == "reward" and isinstance(spec.reward, CustomRewardSpec):
        yield refuse((*at, "metric_key"), _early("a reward computed by a function", "a grader, or a weighted reward"))


def _early(what: str, instead: str) -> str:
    return f"{what} cannot be decided while trials are still made; write {instead}"


def early_gate(gate: Gate, most: int, conditions: int = 1) -> Gate:
    """Return a gate that is decided while trials are still made; the level is shared among all conditions."""
    if isinstance(gate, LogicalGate):
        parts = len(gate.conditions) * conditions
        return replace(gate, conditions=[early_gate(one, most, parts) for one in gate.conditions])
    if isinstance(gate, SimpleGate):
        return replace(gate, level=1 - (1 - LEVEL) / conditions)
    return replace(gate, most=most) if isinstance(gate, SamplesGate) else gate


def stopping(rule: TrialsUntil, spec: SuiteSpec, gate: Gate | None, graders: Sequence[str]) -> Stopping:
    """Return when the trials of a run end.

    A half width is of what the first condition of the gate compares; without a gate of the mean of the reward, else of
    the first grader.
    """
    if rule.half_width is None:
        return Stopping(rule.max, gate)
    first = spec.gate
    while isinstance(first, LogicalGateSpec):
        first = first.conditions[0]
    if isinstance(first, ConditionSpec):
        return Stopping(rule.max, gate, rule.half_width, first.metric_key, first.aggregation == "accuracy")
    return Stopping(rule.max, gate, rule.half_width, "reward" if spec.reward is not None else graders[0])
