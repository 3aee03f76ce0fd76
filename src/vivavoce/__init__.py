"""Test and grade multi-turn conversations with AI systems."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vivavoce.lazy_names import lazy_names

if TYPE_CHECKING:
    from vivavoce.client.asynchronous import AsyncClient as AsyncClient
    from vivavoce.client.synchronous import Client as Client
    from vivavoce.errors import UsageError as UsageError
    from vivavoce.errors import VivavoceError as VivavoceError
    from vivavoce.grading.extractors import extractor as extractor
    from vivavoce.grading.functions import GradeResult as GradeResult
    from vivavoce.grading.graders import grader as grader
    from vivavoce.grading.rewards import RewardOutput as RewardOutput
    from vivavoce.grading.rewards import reward_composer as reward_composer
    from vivavoce.messages import AIMessage as AIMessage
    from vivavoce.messages import ConversationHistory as ConversationHistory
    from vivavoce.messages import HumanMessage as HumanMessage
    from vivavoce.messages import ToolCall as ToolCall
    from vivavoce.messages import ToolMessage as ToolMessage
    from vivavoce.metrics import BaseMultiTurnMetric as BaseMultiTurnMetric
    from vivavoce.metrics import GoalAchievementJudge as GoalAchievementJudge
    from vivavoce.metrics import MetricConfig as MetricConfig
    from vivavoce.metrics import MetricResult as MetricResult
    from vivavoce.metrics import MultiTurnEvaluationInput as MultiTurnEvaluationInput
    from vivavoce.metrics import evaluate_conversation as evaluate_conversation
    from vivavoce.metrics import evaluate_test_result as evaluate_test_result
    from vivavoce.metrics.factory import create_metric as create_metric
    from vivavoce.metrics.types import ConversationTurn as ConversationTurn
    from vivavoce.models import AnthropicLLM as AnthropicLLM
    from vivavoce.models import BaseLLM as BaseLLM
    from vivavoce.models import VertexAILLM as VertexAILLM
    from vivavoce.penelope.agent import PenelopeAgent as PenelopeAgent
    from vivavoce.penelope.result import TestResult as TestResult
    from vivavoce.records.score import Score as Score
    from vivavoce.records.trajectory import Trajectory as Trajectory
    from vivavoce.run.options import RunOptions as RunOptions
    from vivavoce.run.summary import RunResult as RunResult
    from vivavoce.samples.evaluation import EvaluationDataset as EvaluationDataset
    from vivavoce.samples.evaluation import MultiTurnSample as MultiTurnSample
    from vivavoce.samples.evaluation import SingleTurnSample as SingleTurnSample
    from vivavoce.samples.sample import Sample as Sample
    from vivavoce.store.store import Store as Store
    from vivavoce.suites.evaluation import aevaluate as aevaluate
    from vivavoce.suites.evaluation import evaluate as evaluate
    from vivavoce.suites.experiment import arun_suite as arun_suite
    from vivavoce.suites.experiment import run_suite as run_suite
    from vivavoce.suites.hooks import agent_factory as agent_factory
    from vivavoce.suites.hooks import suite_setup as suite_setup
    from vivavoce.targets.endpoint import EndpointTarget as EndpointTarget

__version__ = "0.1.0"

_ALSO = {
    ".messages": ("AIMessage", "HumanMessage", "ToolCall", "ToolMessage"),
    ".metrics": (
        "BaseMultiTurnMetric",
        "GoalAchievementJudge",
        "MetricConfig",
        "MetricResult",
        "MultiTurnEvaluationInput",
        "evaluate_conversation",
        "evaluate_test_result",
    ),
    ".metrics.types": ("ConversationTurn",),
    ".models": ("AnthropicLLM", "BaseLLM", "VertexAILLM"),
}
"""Names that people who come from other tools import from here first, and where they are."""

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        ".client.asynchronous": ("AsyncClient",),
        ".client.synchronous": ("Client",),
        ".messages": ("ConversationHistory",),
        ".errors": ("UsageError", "VivavoceError"),
        ".grading.extractors": ("extractor",),
        ".grading.functions": ("GradeResult",),
        ".grading.graders": ("grader",),
        ".grading.rewards": ("RewardOutput", "reward_composer"),
        ".metrics.factory": ("create_metric",),
        ".penelope.agent": ("PenelopeAgent",),
        ".penelope.result": ("TestResult",),
        ".records.score": ("Score",),
        ".records.trajectory": ("Trajectory",),
        ".run.options": ("RunOptions",),
        ".run.summary": ("RunResult",),
        ".samples.evaluation": ("EvaluationDataset", "MultiTurnSample", "SingleTurnSample"),
        ".samples.sample": ("Sample",),
        ".store.store": ("Store",),
        ".suites.evaluation": ("aevaluate", "evaluate"),
        ".suites.hooks": ("agent_factory", "suite_setup"),
        ".suites.experiment": ("arun_suite", "run_suite"),
        ".targets.endpoint": ("EndpointTarget",),
    },
    here=("__version__",),
    packages=("client", "metrics", "penelope"),
    also=_ALSO,
)
