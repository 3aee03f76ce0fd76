"""Penelope, the autonomous tester."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vivavoce.plugins import lazy

if TYPE_CHECKING:
    from vivavoce.penelope.agent import PenelopeAgent
    from vivavoce.penelope.context import GoalProgress, TestContext, TestState
    from vivavoce.penelope.distil import distil_scenarios
    from vivavoce.penelope.persona import Persona
    from vivavoce.penelope.rates import SuccessRates, success_rates
    from vivavoce.penelope.result import TestResult
    from vivavoce.penelope.scenarios import generate_scenarios
    from vivavoce.penelope.simple_goal import SimpleGoalEvaluator
    from vivavoce.penelope.stopping import (
        CostCondition,
        GoalAchievedCondition,
        GoalImpossibleCondition,
        GuardCondition,
        MaxTurnsCondition,
        RepetitionCondition,
        StepBudgetCondition,
        Stop,
        StoppingCondition,
        TargetDownCondition,
        TesterDownCondition,
        TesterLeftCondition,
        TimeoutCondition,
    )
    from vivavoce.penelope.tools.tool import tool
    from vivavoce.penelope.turn import Step, Turn
    from vivavoce.records.trajectory import TestStatus
    from vivavoce.targets.endpoint import EndpointTarget
    from vivavoce.targets.target import Target

_EXPORTS = {
    "CostCondition": "vivavoce.penelope.stopping",
    "EndpointTarget": "vivavoce.targets.endpoint",
    "GoalAchievedCondition": "vivavoce.penelope.stopping",
    "GoalImpossibleCondition": "vivavoce.penelope.stopping",
    "GoalProgress": "vivavoce.penelope.context",
    "GuardCondition": "vivavoce.penelope.stopping",
    "MaxTurnsCondition": "vivavoce.penelope.stopping",
    "PenelopeAgent": "vivavoce.penelope.agent",
    "Persona": "vivavoce.penelope.persona",
    "RepetitionCondition": "vivavoce.penelope.stopping",
    "SimpleGoalEvaluator": "vivavoce.penelope.simple_goal",
    "Step": "vivavoce.penelope.turn",
    "StepBudgetCondition": "vivavoce.penelope.stopping",
    "Stop": "vivavoce.penelope.stopping",
    "StoppingCondition": "vivavoce.penelope.stopping",
    "SuccessRates": "vivavoce.penelope.rates",
    "Target": "vivavoce.targets.target",
    "TargetDownCondition": "vivavoce.penelope.stopping",
    "TestContext": "vivavoce.penelope.context",
    "TestResult": "vivavoce.penelope.result",
    "TestState": "vivavoce.penelope.context",
    "TestStatus": "vivavoce.records.trajectory",
    "TesterDownCondition": "vivavoce.penelope.stopping",
    "TesterLeftCondition": "vivavoce.penelope.stopping",
    "TimeoutCondition": "vivavoce.penelope.stopping",
    "Turn": "vivavoce.penelope.turn",
    "distil_scenarios": "vivavoce.penelope.distil",
    "generate_scenarios": "vivavoce.penelope.scenarios",
    "success_rates": "vivavoce.penelope.rates",
    "tool": "vivavoce.penelope.tools.tool",
}

__all__ = [
    "CostCondition",
    "EndpointTarget",
    "GoalAchievedCondition",
    "GoalImpossibleCondition",
    "GoalProgress",
    "GuardCondition",
    "MaxTurnsCondition",
    "PenelopeAgent",
    "Persona",
    "RepetitionCondition",
    "SimpleGoalEvaluator",
    "Step",
    "StepBudgetCondition",
    "Stop",
    "StoppingCondition",
    "SuccessRates",
    "Target",
    "TargetDownCondition",
    "TestContext",
    "TestResult",
    "TestState",
    "TestStatus",
    "TesterDownCondition",
    "TesterLeftCondition",
    "TimeoutCondition",
    "Turn",
    "distil_scenarios",
    "generate_scenarios",
    "success_rates",
    "tool",
]


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return lazy(f"{_EXPORTS[name]}:{name}")
    raise AttributeError(f"module 'vivavoce.penelope' has no attribute '{name}'")
