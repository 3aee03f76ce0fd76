"""Test and grade multi-turn conversations with AI systems."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vivavoce.client.asynchronous import AsyncClient
    from vivavoce.client.synchronous import Client
    from vivavoce.conversation import ConversationHistory
    from vivavoce.errors import UsageError, VivavoceError
    from vivavoce.grading.extractors import extractor
    from vivavoce.grading.functions import GradeResult
    from vivavoce.grading.graders import grader
    from vivavoce.grading.rewards import RewardOutput, reward_composer
    from vivavoce.metrics.factory import create_metric
    from vivavoce.penelope.agent import PenelopeAgent
    from vivavoce.penelope.result import TestResult
    from vivavoce.records.score import Score
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
    from vivavoce.targets.endpoint import EndpointTarget

__version__ = "0.1.0"

_EXPORTS = {
    "AsyncClient": "client.asynchronous",
    "Client": "client.synchronous",
    "ConversationHistory": "conversation",
    "EndpointTarget": "targets.endpoint",
    "EvaluationDataset": "samples.dataset",
    "GradeResult": "grading.functions",
    "MultiTurnSample": "samples.evaluation",
    "PenelopeAgent": "penelope.agent",
    "RewardOutput": "grading.rewards",
    "RunOptions": "run.options",
    "RunResult": "run.result",
    "Sample": "samples.sample",
    "Score": "records.score",
    "SingleTurnSample": "samples.evaluation",
    "Store": "store.store",
    "TestResult": "penelope.result",
    "Trajectory": "records.trajectory",
    "UsageError": "errors",
    "VivavoceError": "errors",
    "aevaluate": "suites.evaluation",
    "agent_factory": "suites.hooks",
    "arun_suite": "suites.opening",
    "create_metric": "metrics.factory",
    "evaluate": "suites.evaluation",
    "extractor": "grading.extractors",
    "grader": "grading.graders",
    "reward_composer": "grading.rewards",
    "run_suite": "suites.opening",
    "suite_setup": "suites.hooks",
}

_PARTS = ("client", "metrics", "penelope")
"""Packages with more names: every metric, what drives a test, a server from Python."""

__all__ = [
    "AsyncClient",
    "Client",
    "ConversationHistory",
    "EndpointTarget",
    "EvaluationDataset",
    "GradeResult",
    "MultiTurnSample",
    "PenelopeAgent",
    "RewardOutput",
    "RunOptions",
    "RunResult",
    "Sample",
    "Score",
    "SingleTurnSample",
    "Store",
    "TestResult",
    "Trajectory",
    "UsageError",
    "VivavoceError",
    "__version__",
    "aevaluate",
    "agent_factory",
    "arun_suite",
    "create_metric",
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
    if name in _PARTS:
        return import_module(f"vivavoce.{name}")
    raise AttributeError(f"module 'vivavoce' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted((*__all__, *_PARTS))
