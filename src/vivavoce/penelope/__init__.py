"""Penelope, the autonomous tester."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vivavoce.lazy_names import lazy_names

if TYPE_CHECKING:
    from vivavoce.penelope.agent import PenelopeAgent as PenelopeAgent
    from vivavoce.penelope.context import GoalProgress as GoalProgress
    from vivavoce.penelope.context import TestContext as TestContext
    from vivavoce.penelope.context import TestState as TestState
    from vivavoce.penelope.distil import distil_scenarios as distil_scenarios
    from vivavoce.penelope.persona import Persona as Persona
    from vivavoce.penelope.rates import SuccessRates as SuccessRates
    from vivavoce.penelope.rates import success_rates as success_rates
    from vivavoce.penelope.result import TestResult as TestResult
    from vivavoce.penelope.scenarios import generate_scenarios as generate_scenarios
    from vivavoce.penelope.simple_goal import SimpleGoalEvaluator as SimpleGoalEvaluator
    from vivavoce.penelope.stopping import CostCondition as CostCondition
    from vivavoce.penelope.stopping import GoalAchievedCondition as GoalAchievedCondition
    from vivavoce.penelope.stopping import GoalImpossibleCondition as GoalImpossibleCondition
    from vivavoce.penelope.stopping import GuardCondition as GuardCondition
    from vivavoce.penelope.stopping import MaxTurnsCondition as MaxTurnsCondition
    from vivavoce.penelope.stopping import RepetitionCondition as RepetitionCondition
    from vivavoce.penelope.stopping import StepBudgetCondition as StepBudgetCondition
    from vivavoce.penelope.stopping import Stop as Stop
    from vivavoce.penelope.stopping import StoppingCondition as StoppingCondition
    from vivavoce.penelope.stopping import TargetDownCondition as TargetDownCondition
    from vivavoce.penelope.stopping import TesterDownCondition as TesterDownCondition
    from vivavoce.penelope.stopping import TesterLeftCondition as TesterLeftCondition
    from vivavoce.penelope.stopping import TimeoutCondition as TimeoutCondition
    from vivavoce.penelope.tools.tool import tool as tool
    from vivavoce.penelope.turn import Step as Step
    from vivavoce.penelope.turn import Turn as Turn
    from vivavoce.records.trajectory import TestStatus as TestStatus
    from vivavoce.targets.endpoint import EndpointTarget as EndpointTarget
    from vivavoce.targets.target import Target as Target


__getattr__, __dir__ = lazy_names(
    __name__,
    {
        ".agent": ("PenelopeAgent",),
        ".context": ("GoalProgress", "TestContext", "TestState"),
        ".distil": ("distil_scenarios",),
        ".persona": ("Persona",),
        ".rates": ("SuccessRates", "success_rates"),
        ".result": ("TestResult",),
        ".scenarios": ("generate_scenarios",),
        ".simple_goal": ("SimpleGoalEvaluator",),
        ".stopping": (
            "CostCondition",
            "GoalAchievedCondition",
            "GoalImpossibleCondition",
            "GuardCondition",
            "MaxTurnsCondition",
            "RepetitionCondition",
            "StepBudgetCondition",
            "Stop",
            "StoppingCondition",
            "TargetDownCondition",
            "TesterDownCondition",
            "TesterLeftCondition",
            "TimeoutCondition",
        ),
        ".tools.tool": ("tool",),
        ".turn": ("Step", "Turn"),
        "vivavoce.records.trajectory": ("TestStatus",),
        "vivavoce.targets.endpoint": ("EndpointTarget",),
        "vivavoce.targets.target": ("Target",),
    },
)
