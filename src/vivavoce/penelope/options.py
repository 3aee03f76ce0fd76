"""The options of an agent and of a test."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from typing_extensions import TypedDict

from vivavoce.metrics.evaluation import Named
from vivavoce.models.custom import ModelLike
from vivavoce.penelope.checks.check import MessageCheck
from vivavoce.penelope.persona import Persona
from vivavoce.penelope.session import OnCancelled
from vivavoce.penelope.stopping import StoppingCondition
from vivavoce.penelope.strategies.strategy import Strategy
from vivavoce.penelope.tools.tool import Tool
from vivavoce.penelope.turn_loop import OnTurn
from vivavoce.records.trajectory import Explore

GoalMetric = Named | Literal["simple"]


class AgentOptions(TypedDict, total=False):
    """The options of an agent; one that is None is as not given. Times are in seconds, costs in US dollars."""

    tools: Sequence[Tool | Callable[..., Any]] | None
    """User-defined tools, besides the built-in ones."""
    custom_tools: Sequence[Tool | Callable[..., Any]] | None
    """Another name of `tools`."""
    max_turns: int
    """Turns at most, 20 unless given."""
    max_iterations: int
    """Another name of `max_turns`."""
    min_turns: int
    """Turns that a test has at least, though its goal be reached before."""
    explore: Explore
    """What the turns are used for once the goal is reached: `goal` ends the test, `rules` tries the rules."""
    timeout_seconds: float | None
    """For the whole test; a hanging target or model is interrupted."""
    enable_transparency: bool
    """Whether the tester says why it takes each step."""
    verbose: bool
    """Whether each turn is printed to standard error as it ends."""
    goal_metric: GoalMetric | None
    """What judges the goal: a metric, its name, or `simple`."""
    judge: ModelLike | None
    """The model that judges where a metric brings none; the tester's own unless given."""
    evaluation_metrics: Sequence[Named] | None
    """Metrics that say how good the conversation was: metrics, their names, or names with options.
    A preset may be given, such as `quality_metrics(model)`: its goal metric judges the goal where none is given."""
    evaluate_during_test: bool
    """Whether they measure after every turn, and not only at the end."""
    guard_metrics: Sequence[Named] | None
    """Metrics that stop the test when one of them does not pass."""
    evaluate_every: int
    """After how many turns the goal is judged; at the end it always is."""
    analysis_model: ModelLike | None
    """The model behind the analysis tools; rules without one."""
    enable_analysis_tools: bool
    """Whether the tester has tools to analyse answers; unless given, where `analysis_model` is."""
    strategy: str | Strategy
    """How the tester leads the conversation: a name, such as `crescendo`, or a strategy."""
    max_steps: int
    """Steps in one turn."""
    impossible_after: int
    """How many judgements in a row must see no progress before the goal counts as impossible."""
    max_cost: float | None
    """What a test may cost; None for no limit."""
    review_tester: bool
    """Whether a test that the target failed is checked for mistakes of the tester, and then repeated once."""
    checks: Sequence[MessageCheck]
    """Checks of each message before it is sent, in place of the built-in ones."""
    conditions: Sequence[StoppingCondition]
    """User-defined conditions, after the built-in ones; one of the same name replaces the built-in one."""
    settings: Mapping[str, Any]
    """Settings of the tester's model, such as a temperature."""
    context_tokens: int
    """About how much of the test the tester's model sees at once."""
    call_timeout: float
    """For one answer of the target."""


class About(TypedDict, total=False):
    """The options of a test besides its goal; see `TestContext`. One that is None is as not given."""

    scenario: str | None
    """The situation that the user is in."""
    restrictions: str | Sequence[str] | None
    """What the tester heeds."""
    context: Mapping[str, Any] | None
    """Anything else that the tester knows, as data."""
    policy: str | None
    """What the target has to go by; the judges see it, the tester and the target do not."""
    persona: str | Mapping[str, Any] | Persona | None
    """The kind of user: a name, a description, or a mapping of its traits."""
    facts: Mapping[str, str] | None
    """What the user knows, and tells when asked."""
    must: str | Sequence[str]
    """What has to happen."""
    must_not: str | Sequence[str]
    """What must never happen."""
    openings: str | Sequence[str]
    """What the user says first, turn by turn."""
    files: Sequence[str | Path]
    """Files that the tester may send."""
    adversarial: bool
    """Whether the target should withstand the goal."""
    max_turns: int
    """Turns at most; those of the agent unless given."""
    min_turns: int
    """Turns at least; those of the agent unless given."""
    explore: Explore
    """What the turns are used for once the goal is reached; that of the agent unless given."""
    trial: int
    """Which repetition of the test this is."""
    test_instructions: str | None
    """Another name of `instructions`."""
    on_turn: OnTurn | None
    """Called with each turn as it ends; sync or async."""
    on_cancelled: OnCancelled | None
    """Called with what was held, where the test is cancelled or interrupted."""
