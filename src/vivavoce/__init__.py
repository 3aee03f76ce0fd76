"""Test and grade multi-turn conversations with AI systems."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vivavoce.plugins import lazy

if TYPE_CHECKING:
    from vivavoce.conversation import ConversationHistory
    from vivavoce.errors import UsageError, VivavoceError
    from vivavoce.records.score import GradeResult
    from vivavoce.records.trajectory import Trajectory
    from vivavoce.run.suite_run import arun_suite, run_suite
    from vivavoce.samples.dataset import EvaluationDataset
    from vivavoce.samples.evaluation import MultiTurnSample, SingleTurnSample
    from vivavoce.samples.sample import Sample

__version__ = "0.1.0"

_EXPORTS = {
    "ConversationHistory": "vivavoce.conversation",
    "EvaluationDataset": "vivavoce.samples.dataset",
    "GradeResult": "vivavoce.records.score",
    "MultiTurnSample": "vivavoce.samples.evaluation",
    "Sample": "vivavoce.samples.sample",
    "SingleTurnSample": "vivavoce.samples.evaluation",
    "Trajectory": "vivavoce.records.trajectory",
    "UsageError": "vivavoce.errors",
    "VivavoceError": "vivavoce.errors",
    "arun_suite": "vivavoce.run.suite_run",
    "run_suite": "vivavoce.run.suite_run",
}

__all__ = [
    "ConversationHistory",
    "EvaluationDataset",
    "GradeResult",
    "MultiTurnSample",
    "Sample",
    "SingleTurnSample",
    "Trajectory",
    "UsageError",
    "VivavoceError",
    "__version__",
    "arun_suite",
    "run_suite",
]


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return lazy(f"{_EXPORTS[name]}:{name}")
    raise AttributeError(f"module 'vivavoce' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
