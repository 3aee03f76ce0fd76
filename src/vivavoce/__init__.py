"""Test and grade multi-turn conversations with AI systems."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vivavoce.conversation import ConversationHistory
    from vivavoce.errors import UsageError, VivavoceError
    from vivavoce.grading.extractors import extractor
    from vivavoce.grading.graders import grader
    from vivavoce.grading.result import GradeResult
    from vivavoce.grading.rewards import RewardOutput, reward_composer
    from vivavoce.records.trajectory import Trajectory
    from vivavoce.run.options import RunOptions
    from vivavoce.run.result import RunResult
    from vivavoce.samples.dataset import EvaluationDataset
    from vivavoce.samples.evaluation import MultiTurnSample, SingleTurnSample
    from vivavoce.samples.sample import Sample
    from vivavoce.store.store import Store
    from vivavoce.suites.evaluation import aevaluate, evaluate
    from vivavoce.suites.hooks import agent_factory, suite_setup
    from vivavoce.suites.opening import arun_suite, run_suite

__version__ = "0.1.0"

_EXPORTS = {
    "ConversationHistory": "conversation",
    "EvaluationDataset": "samples.dataset",
    "GradeResult": "grading.result",
    "MultiTurnSample": "samples.evaluation",
    "RewardOutput": "grading.rewards",
    "RunOptions": "run.options",
    "RunResult": "run.result",
    "Sample": "samples.sample",
    "SingleTurnSample": "samples.evaluation",
    "Store": "store.store",
    "Trajectory": "records.trajectory",
    "UsageError": "errors",
    "VivavoceError": "errors",
    "aevaluate": "suites.evaluation",
    "agent_factory": "suites.hooks",
    "arun_suite": "suites.opening",
    "evaluate": "suites.evaluation",
    "extractor": "grading.extractors",
    "grader": "grading.graders",
    "reward_composer": "grading.rewards",
    "run_suite": "suites.opening",
    "suite_setup": "suites.hooks",
}

__all__ = [
    "ConversationHistory",
    "EvaluationDataset",
    "GradeResult",
    "MultiTurnSample",
    "RewardOutput",
    "RunOptions",
    "RunResult",
    "Sample",
    "SingleTurnSample",
    "Store",
    "Trajectory",
    "UsageError",
    "VivavoceError",
    "__version__",
    "aevaluate",
    "agent_factory",
    "arun_suite",
    "evaluate",
    "extractor",
    "grader",
    "reward_composer",
    "run_suite",
    "suite_setup",
]


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: importing the package alone costs nothing."""
    if name in _EXPORTS:
        return getattr(import_module(f"vivavoce.{_EXPORTS[name]}"), name)
    raise AttributeError(f"module 'vivavoce' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
