"""`PenelopeAgent`: leads a conversation with a target towards a goal, and says what came of it."""

from __future__ import annotations

import hashlib
import json
import logging
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack, cast

from pydantic import ValidationError
from pydantic_core import to_jsonable_python

from vivavoce.errors import UsageError
from vivavoce.messages import describe
from vivavoce.metrics.evaluation import choose
from vivavoce.metrics.judged.goal import GoalAchievementJudge
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.metrics.options import check_names
from vivavoce.models.custom import ModelLike, as_model
from vivavoce.models.model import Model, identity_of
from vivavoce.pacing.budget import Budget
from vivavoce.pacing.waiting import wait_for
from vivavoce.penelope.checks import default_checks
from vivavoce.penelope.context import TestContext
from vivavoce.penelope.judging import CONTRACT, GOAL, Panel
from vivavoce.penelope.options import About, AgentOptions, GoalMetric
from vivavoce.penelope.persona import read_persona
from vivavoce.penelope.result import TestResult
from vivavoce.penelope.review import TesterReview
from vivavoce.penelope.session import Setup, TestSession
from vivavoce.penelope.simple_goal import SimpleGoalEvaluator
from vivavoce.penelope.stopping import Limits
from vivavoce.penelope.strategies import make_strategy
from vivavoce.penelope.tester import brief_hash
from vivavoce.penelope.tools.analyze import AnalyzeTool
from vivavoce.penelope.tools.check_facts import CheckFactsTool
from vivavoce.penelope.tools.compare_turns import CompareTurnsTool
from vivavoce.penelope.tools.end_conversation import EndConversationTool
from vivavoce.penelope.tools.extract import ExtractTool
from vivavoce.penelope.tools.target_interaction import TargetInteractionTool
from vivavoce.penelope.tools.tool import Tool, as_tool
from vivavoce.penelope.turn import Turn
from vivavoce.penelope.turn_loop import OnTurn
from vivavoce.penelope.view import turn_lines
from vivavoce.settings import settings
from vivavoce.signatures import shows_options
from vivavoce.targets.channel import TargetChannel, open_channel
from vivavoce.targets.function import FunctionTarget
from vivavoce.targets.target import Opening, Target
from vivavoce.user_code import source_of

log = logging.getLogger("vivavoce")

MAX_TURNS = 20
"""Turns of a test that says nothing of it."""


class PenelopeAgent:
    """Leads conversations with targets: asks a model for one step after the other, and knows when it is done.

    `model` is the tester; everything else is in `AgentOptions`. Without a `goal_metric` a `GoalAchievementJudge` judges
    the goal, asking `judge` or, where none is given, the model that VIVAVOCE_JUDGE names, else the tester's.

    Raises:
        UsageError: an option is unknown or out of range, or two metrics or two tools have one name.
    """

    @shows_options
    def __init__(self, model: ModelLike, **options: Unpack[AgentOptions]) -> None:
        given = read_agent_options(options)
        self.model = as_model(model)
        self.max_turns = given.get("max_turns", MAX_TURNS)
        self.min_turns = given.get("min_turns", 0)
        self.verbose = given.get("verbose", False)
        self.call_timeout = given.get("call_timeout", 300.0)
        self.setup = _setup(self.model, given)

    @property
    def goal_metric(self) -> BaseMultiTurnMetric:
        """The metric that says whether a goal is reached, and so when a test stops."""
        return self.setup.panel.goal

    @property
    def evaluation_metrics(self) -> Sequence[BaseMultiTurnMetric]:
        """The metrics that say how good a conversation was, and stop nothing."""
        return self.setup.panel.metrics

    @cached_property
    def fingerprint(self) -> str:
        """A hash of who leads and who judges: the models, what they are told, and how it is led."""
        setup, panel = self.setup, self.setup.panel
        judged = [one.fingerprint for one in (panel.goal, panel.contract, panel.second, panel.review, *panel.guards)]
        led = [identity_of(self.model), dict(setup.settings), setup.strategy.name, brief_hash()]
        code = [text for one in (setup.strategy, *setup.tools) if (text := source_of(one))]
        spelled = json.dumps([*led, sorted(tool.name for tool in setup.tools), *judged, *code], default=str)
        return hashlib.blake2b(spelled.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()

    @shows_options
    def execute_test(
        self,
        target: Target | Callable[..., Any],
        instructions: str | None = None,
        goal: str = "",
        **about: Unpack[About],
    ) -> TestResult:
        """Hold one test, and wait for it; works where an event loop is running too.

        Whatever goes wrong with the target, the models or the tester is in the result.

        Raises:
            UsageError: something that the test is told cannot be used.
            BudgetExhausted: a limit on calls or cost of a model that was given is reached.
        """
        held = as_target(target)

        async def once() -> TestResult:
            try:
                return await self.aexecute_test(held, instructions, goal, **about)
            finally:
                await _close(self.model, *self.setup.panel.all, held)

        return wait_for(once())

    @shows_options
    async def aexecute_test(
        self,
        target: Target | Callable[..., Any],
        instructions: str | None = None,
        goal: str = "",
        **about: Unpack[About],
    ) -> TestResult:
        """Async version of `execute_test`; connections of the models stay open for the next one."""
        files = _files(about.get("files", ()))
        context = self.context(instructions, goal, **about)
        channel = open_channel(as_target(target), limit=1, budget=Budget(), timeout=self.call_timeout, retries=2)
        return await self.hold(
            channel, context, lambda: Opening(uuid.uuid4().hex, "test"), files=files, on_turn=about.get("on_turn")
        )

    async def hold(
        self,
        channel: TargetChannel,
        context: TestContext,
        opening: Callable[[], Opening],
        *,
        files: Mapping[str, Path] | None = None,
        on_turn: OnTurn | None = None,
    ) -> TestResult:
        """Hold one test on a channel of the caller's; `opening` is what a new session of the target is told.

        Raises:
            BudgetExhausted: a limit on calls or cost is reached.
        """
        heard = _printing(on_turn) if self.verbose else on_turn
        return await TestSession(self.setup, context, channel, opening, files or {}, heard).hold()

    @shows_options
    def context(self, instructions: str | None = None, goal: str = "", **about: Unpack[About]) -> TestContext:
        """Return what a test is about, as the tester takes it.

        Raises:
            UsageError: something in it cannot be used.
        """
        check_names(About, about)
        other = about.get("test_instructions")
        if instructions is not None and other is not None and instructions != other:
            raise UsageError("instructions and test_instructions are the same thing, and differ")
        persona = about.get("persona")
        try:
            return TestContext(
                goal=goal,
                instructions=instructions if instructions is not None else other,
                scenario=about.get("scenario"),
                restrictions=_listed(about.get("restrictions")),
                context=_plain(about.get("context")),
                persona=None if persona is None else read_persona(persona),
                facts=dict(about.get("facts") or {}),
                must=_listed(about.get("must")),
                must_not=_listed(about.get("must_not")),
                openings=_listed(about.get("openings")),
                files=tuple(_files(about.get("files", ()))),
                adversarial=about.get("adversarial", self.setup.strategy.adversarial),
                max_turns=about.get("max_turns", self.max_turns),
                min_turns=about.get("min_turns", self.min_turns),
                trial=about.get("trial", 0),
            )
        except ValidationError as error:
            raise UsageError(describe(error)) from error

    async def close(self) -> None:
        """Close the connections of every model; a later test opens new ones."""
        await _close(self.model, *self.setup.panel.all)


def read_agent_options(given: AgentOptions) -> AgentOptions:
    """Return options with the names of today.

    Raises:
        UsageError: an option is unknown, or given twice under two names.
    """
    check_names(AgentOptions, given)
    options = dict(cast("dict[str, Any]", given))
    for old, new in (("max_iterations", "max_turns"), ("custom_tools", "tools")):
        if old in options:
            if new in options:
                raise UsageError(f"{new} and {old} are the same option; give one of them")
            options[new] = options.pop(old)
    if not (options.get("timeout_seconds") is None or options["timeout_seconds"] > 0):
        raise UsageError(f"timeout_seconds is more than 0, got {options['timeout_seconds']}")
    for name in ("max_turns", "max_steps", "evaluate_every", "impossible_after"):
        if options.get(name, 1) < 1:
            raise UsageError(f"{name} is at least 1, got {options[name]}")
    return cast("AgentOptions", options)


def as_target(thing: Target | Callable[..., Any]) -> Target:
    """Return a target; a function is made one.

    Raises:
        UsageError: it is neither.
    """
    if callable(getattr(thing, "open", None)) and isinstance(getattr(thing, "name", None), str):
        return cast("Target", thing)
    return FunctionTarget(cast("Callable[..., Any]", thing))


async def _close(*things: Model | BaseMultiTurnMetric | Target) -> None:
    for thing in things:
        try:
            await thing.close()
        except Exception as error:  # what it was asked stands
            log.warning("%s could not be closed: %s: %s", thing.name, type(error).__name__, error)


def _setup(model: Model, given: AgentOptions) -> Setup:
    judge = as_model(given.get("judge") or settings().judge or model)
    goal = _goal(given.get("goal_metric"), judge)
    metrics, guards = choose(given.get("evaluation_metrics", ()), judge), choose(given.get("guard_metrics", ()), judge)
    for guard in guards:
        says = guard.config.threshold is not None or guard.config.passing_categories
        if not says and guard.config.score_type != "binary":
            raise UsageError(f"the guard {guard.name} needs a threshold, which says what passes")
    _check_names([GOAL, CONTRACT, *(one.name for one in (*metrics, *guards))], "metrics")
    return Setup(
        model=model,
        panel=_panel(goal, tuple(metrics), tuple(guards), goal.model or judge),
        tools=_tools(given),
        strategy=make_strategy(given.get("strategy", "improvise")),
        checks=given["checks"] if "checks" in given else default_checks(),
        limits=_limits(given),
        conditions=given.get("conditions", ()),
        every=given.get("evaluate_every", 1),
        watch=given.get("evaluate_during_test", False),
        transparent=given.get("enable_transparency", True),
        review=given.get("review_tester", True),
        settings=given.get("settings", {}),
        context_tokens=given.get("context_tokens", 60_000),
    )


def _goal(chosen: GoalMetric | None, judge: Model) -> BaseMultiTurnMetric:
    if chosen is None:
        return GoalAchievementJudge(judge)
    return SimpleGoalEvaluator(judge) if chosen == "simple" else choose([chosen], judge)[0]


def _panel(
    goal: BaseMultiTurnMetric,
    metrics: Sequence[BaseMultiTurnMetric],
    guards: Sequence[BaseMultiTurnMetric],
    judge: Model,
) -> Panel:
    contract = GoalAchievementJudge(judge, name=CONTRACT)
    simple = isinstance(goal, SimpleGoalEvaluator)
    return Panel(goal, metrics, guards, contract, SimpleGoalEvaluator(judge), TesterReview(judge), simple)


def _limits(given: AgentOptions) -> Limits:
    steps, after = given.get("max_steps", 10), given.get("impossible_after", 8)
    return Limits(steps, after, given.get("timeout_seconds"), given.get("max_cost"))


def _tools(given: AgentOptions) -> tuple[Tool, ...]:
    model = given.get("analysis_model")
    built_in: list[Tool] = [EndConversationTool()]
    if given.get("enable_analysis_tools", True):
        built_in += [AnalyzeTool(model), ExtractTool(model), CheckFactsTool(model=model), CompareTurnsTool(model)]
    tools = (*built_in, *map(as_tool, given.get("tools", ())))
    _check_names([TargetInteractionTool.name, *(one.name for one in tools)], "tools")
    return tools


def _check_names(names: Sequence[str], what: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"two {what} are called '{name}'; give one of them another name")


def _plain(context: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a context as JSON holds it, which prompts quote and results keep."""
    try:
        return to_jsonable_python(dict(context or {}), fallback=str) or None
    except (ValueError, TypeError) as error:
        raise UsageError(f"context cannot be written as JSON: {error}") from error


def _listed(given: str | Sequence[str] | None) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given or ())


def _files(given: Sequence[str | Path]) -> dict[str, Path]:
    files = {Path(one).name: Path(one) for one in given}
    for name, path in files.items():
        if not path.is_file():
            raise UsageError(f"the file {path} does not exist")
        if len(files) < len(given):
            raise UsageError(f"two files are called {name}")
    return files


def _printing(on_turn: OnTurn | None) -> OnTurn:
    async def print_turn(turn: Turn) -> None:
        print(*turn_lines(turn), sep="\n", file=sys.stderr)
        if on_turn is not None:
            await on_turn(turn)

    return print_turn
