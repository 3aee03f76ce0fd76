"""`PenelopeAgent`: leads a conversation with a target towards a goal, and judges its outcome."""

from __future__ import annotations

import hashlib
import inspect
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

from vivavoce.comparing.negations import check_prohibitions
from vivavoce.errors import UsageError
from vivavoce.messages import describe
from vivavoce.metrics.config import check_names
from vivavoce.metrics.evaluation import choose
from vivavoce.metrics.joint import JointJudge
from vivavoce.metrics.judged.contract import ContractMetric
from vivavoce.metrics.judged.goal import GoalAchievementJudge
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.metrics.panel import with_judges
from vivavoce.models.custom import ModelLike, as_model
from vivavoce.models.model import Model, identity_of
from vivavoce.pacing.limits import Budget
from vivavoce.pacing.loops import wait_for
from vivavoce.penelope.attack import WITHOUT_POLICY, AttackJudge, TargetRefusal
from vivavoce.penelope.brief_problems import brief_problem
from vivavoce.penelope.checks import default_checks
from vivavoce.penelope.context import TestContext
from vivavoce.penelope.judging import CONTRACT, GOAL, Panel
from vivavoce.penelope.options import About, AgentOptions, GoalMetric
from vivavoce.penelope.persona import read_persona
from vivavoce.penelope.result import TestResult
from vivavoce.penelope.review import TesterReview
from vivavoce.penelope.session import OnCancelled, Setup, TestSession
from vivavoce.penelope.simple_goal import SimpleGoalEvaluator
from vivavoce.penelope.stopping import Limits
from vivavoce.penelope.strategies import make_strategy
from vivavoce.penelope.strategies.strategy import phases_of
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
from vivavoce.records.trajectory import Explore
from vivavoce.settings import settings
from vivavoce.targets.dialogue import TargetChannel, open_channel
from vivavoce.targets.function import as_target
from vivavoce.targets.target import Opening, Target
from vivavoce.user_code import foreign_code, source_of
from vivavoce.validation import shows_options

log = logging.getLogger("vivavoce")

TargetLike = Target | Callable[..., Any] | object
"""A target, or what is made one: a function, or a runnable of LangChain."""

MAX_TURNS = 20
"""Turns of a test that sets no limit itself."""


class PenelopeAgent:
    """Leads conversations with targets: asks a model for one step at a time, and detects when it is done.

    `model` is the tester; everything else is in `AgentOptions`. Without a `goal_metric` a `GoalAchievementJudge` judges
    the goal, asking `judge` or, where none is given, the model that VIVAVOCE_JUDGE names, else the tester's.

    Raises:
        UsageError: an option is unknown or out of range, or two metrics or two tools have one name.
    """

    @shows_options
    def __init__(self, model: ModelLike, **options: Unpack[AgentOptions]) -> None:
        settled = read_agent_options(options)
        self.model = as_model(model)
        self.max_turns = settled.get("max_turns", MAX_TURNS)
        self.min_turns = settled.get("min_turns", 0)
        self.explore: Explore = settled.get("explore", "goal")
        self.verbose = settled.get("verbose", False)
        self.call_timeout = settled.get("call_timeout", 300.0)
        self.setup = _setup(self.model, settled)

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
        """A hash of what leads and judges a test: models, prompts, metrics, tools, strategy and settings."""
        setup, panel = self.setup, self.setup.panel
        asking = (panel.contract, panel.second, panel.review, panel.attack, panel.refusal)
        judging = [part.fingerprint for part in (panel.goal, *asking, *panel.guards)]
        leading = [identity_of(self.model), dict(setup.settings), setup.strategy.name, brief_hash()]
        code = [source for part in (setup.strategy, *setup.tools) if (source := source_of(part))]
        text = json.dumps([*leading, sorted(tool.name for tool in setup.tools), *judging, *code], default=str)
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()

    @shows_options
    def execute_test(
        self,
        target: TargetLike,
        instructions: str | None = None,
        goal: str = "",
        **about: Unpack[About],
    ) -> TestResult:
        """Run one test, and wait for it; works where an event loop is running too.

        Whatever goes wrong with the target, the models or the tester is in the result.

        Raises:
            UsageError: an argument cannot be used.
            BudgetExhausted: a limit on calls or cost of a given model is reached.
        """
        test_target = as_target(target)

        async def once() -> TestResult:
            try:
                return await self.aexecute_test(test_target, instructions, goal, **about)
            finally:
                await _close(self.model, *self.setup.panel.all, test_target)

        return wait_for(once())

    @shows_options
    async def aexecute_test(
        self,
        target: TargetLike,
        instructions: str | None = None,
        goal: str = "",
        **about: Unpack[About],
    ) -> TestResult:
        """Async version of `execute_test`; connections of the models stay open for the next one."""
        files = _files(about.get("files") or ())
        context = self.context(instructions, goal, **about)
        channel = open_channel(as_target(target), limit=1, budget=Budget(), timeout=self.call_timeout, retries=2)
        return await self.hold(
            channel,
            context,
            lambda: Opening(uuid.uuid4().hex, "test"),
            files=files,
            on_turn=about.get("on_turn"),
            on_cancelled=about.get("on_cancelled"),
        )

    async def hold(
        self,
        channel: TargetChannel,
        context: TestContext,
        opening: Callable[[], Opening],
        *,
        files: Mapping[str, Path] | None = None,
        on_turn: OnTurn | None = None,
        on_cancelled: OnCancelled | None = None,
        earlier: Sequence[Turn] = (),
    ) -> TestResult:
        """Run one test on the caller's channel; `opening` makes the opening of a new session of the target.

        `earlier` are previous turns that the test continues; they count as turns of this test.
        If the test is cancelled, `on_cancelled` gets the part so far, and the cancellation goes on.

        Raises:
            BudgetExhausted: a limit on calls or cost is reached.
        """
        listener = _printing(on_turn) if self.verbose else on_turn
        session = TestSession(self.setup, context, channel, opening, files or {}, listener, on_cancelled, earlier)
        return await session.hold()

    @shows_options
    def context(self, instructions: str | None = None, goal: str = "", **about: Unpack[About]) -> TestContext:
        """Return the context of a test.

        Raises:
            UsageError: the goal is empty, or another argument cannot be used.
        """
        check_names(About, about)
        about = cast("About", {name: value for name, value in about.items() if value is not None})
        other = about.get("test_instructions")
        if instructions is not None and other is not None and instructions != other:
            raise UsageError("instructions and test_instructions are two names of one option, but their values differ")
        persona = about.get("persona")
        most, least = about.get("max_turns", self.max_turns), about.get("min_turns", self.min_turns)
        try:
            context = TestContext(
                goal=goal,
                instructions=instructions if instructions is not None else other,
                scenario=about.get("scenario"),
                restrictions=_as_tuple(about.get("restrictions")),
                context=_plain(about.get("context")),
                policy=about.get("policy"),
                persona=None if persona is None else read_persona(persona),
                facts=dict(about.get("facts") or {}),
                must=_as_tuple(about.get("must")),
                must_not=_as_tuple(about.get("must_not")),
                openings=_as_tuple(about.get("openings")),
                files=tuple(_files(about.get("files", ()))),
                adversarial=about.get("adversarial", self.setup.strategy.adversarial),
                max_turns=most,
                min_turns=max(least, most) if phases_of(self.setup.strategy) else least,
                trial=about.get("trial", 0),
                explore=about.get("explore", self.explore),
            )
        except ValidationError as error:
            raise UsageError(describe(error)) from error
        if not context.goal.strip():
            raise UsageError("the goal is empty")
        check_prohibitions(context.must_not)
        if problem := brief_problem(context):
            raise UsageError(problem)
        return context

    async def close(self) -> None:
        """Close the connections of every model; a later test opens new ones."""
        await _close(self.model, *self.setup.panel.all)


def read_agent_options(options: AgentOptions) -> AgentOptions:
    """Return the options that are given, with older names replaced by the present ones; None is as not given.

    Raises:
        UsageError: an option is unknown, or given twice under two names.
    """
    check_names(AgentOptions, options)
    renamed = {name: value for name, value in cast("dict[str, Any]", options).items() if value is not None}
    for old, new in (("max_iterations", "max_turns"), ("custom_tools", "tools")):
        if old in renamed:
            if new in renamed:
                raise UsageError(f"{new} and {old} are the same option; give one of them")
            renamed[new] = renamed.pop(old)
    if renamed.get("timeout_seconds", 1) <= 0:
        raise UsageError(f"timeout_seconds must be above 0, got {renamed['timeout_seconds']}")
    for name in ("max_turns", "max_steps", "evaluate_every", "impossible_after"):
        if renamed.get(name, 1) < 1:
            raise UsageError(f"{name} must be at least 1, got {renamed[name]}")
    return cast("AgentOptions", renamed)


async def _close(*things: Model | BaseMultiTurnMetric | Target) -> None:
    for thing in things:
        try:
            with foreign_code():
                await thing.close()
        except Exception as error:  # its answers stand
            log.warning("%s could not be closed: %s: %s", thing.name, type(error).__name__, error)


def _setup(model: Model, options: AgentOptions) -> Setup:
    judge = as_model(options.get("judge") or settings().judge or model)
    goal, metrics = _goal_and_metrics(options, judge)
    guards = choose(options.get("guard_metrics") or (), judge)
    for guard in guards:
        decides = guard.config.threshold is not None or guard.config.passing_categories
        if not decides and guard.config.score_type != "binary":
            raise UsageError(f"the guard {guard.name} needs a threshold, which says what passes")
    _check_names([GOAL, CONTRACT, *(metric.name for metric in (*metrics, *guards))], "metrics")
    return Setup(
        model=model,
        panel=_panel(goal, tuple(metrics), tuple(guards), goal.model or judge),
        tools=_tools(options),
        strategy=make_strategy(options.get("strategy", "improvise")),
        checks=options["checks"] if "checks" in options else default_checks(goal.model or judge),
        limits=_limits(options),
        conditions=options.get("conditions", ()),
        every=options.get("evaluate_every", 1),
        watch=options.get("evaluate_during_test", False),
        transparent=options.get("enable_transparency", True),
        review=options.get("review_tester", True),
        settings=options.get("settings", {}),
        context_tokens=options.get("context_tokens", 60_000),
    )


def _goal_and_metrics(options: AgentOptions, judge: Model) -> tuple[BaseMultiTurnMetric, list[BaseMultiTurnMetric]]:
    """Return the metric of the goal, and the metrics that say how good the conversation was without it.

    A preset has the metric of the goal, too: it is used where no other one is given.

    Raises:
        UsageError: there is another one.
    """
    goal_metric = options.get("goal_metric")
    metrics = choose(options.get("evaluation_metrics") or (), judge)
    among = next(
        (metric for metric in metrics if metric.name == GOAL and isinstance(metric, GoalAchievementJudge)), None
    )
    if among is None:
        return _goal(goal_metric, judge), metrics
    judged = with_judges(among, lambda own: own or judge)
    goal = judged if goal_metric is None else _goal(goal_metric, judge)
    if goal.fingerprint != judged.fingerprint:
        raise UsageError(
            f"two metrics judge the goal: {goal.name} as goal_metric, and {among.name} in evaluation_metrics, "
            "which a preset may have added; remove one of them"
        )
    return goal, [metric for metric in metrics if metric is not among]


def _goal(metric: GoalMetric | None, judge: Model) -> BaseMultiTurnMetric:
    if metric is None:
        return GoalAchievementJudge(judge)
    return SimpleGoalEvaluator(judge) if metric == "simple" else choose([metric], judge)[0]


def _panel(
    goal: BaseMultiTurnMetric,
    metrics: Sequence[BaseMultiTurnMetric],
    guards: Sequence[BaseMultiTurnMetric],
    judge: Model,
) -> Panel:
    contract = ContractMetric(judge, name=CONTRACT)
    attack, attack_contract = AttackJudge(judge), ContractMetric(judge, name=CONTRACT, shown=WITHOUT_POLICY)
    return Panel(
        goal,
        metrics,
        guards,
        contract,
        second=SimpleGoalEvaluator(judge),
        review=TesterReview(judge),
        attack=attack,
        refusal=TargetRefusal(judge),
        simple=isinstance(goal, SimpleGoalEvaluator),
        attack_decides=type(goal) in (GoalAchievementJudge, SimpleGoalEvaluator),
        joint=JointJudge.of([goal, contract]),
        attack_contract=attack_contract,
        joint_attack=JointJudge.of([attack, attack_contract]),
    )


def _limits(options: AgentOptions) -> Limits:
    steps, after = options.get("max_steps", 10), options.get("impossible_after", 8)
    return Limits(steps, after, options.get("timeout_seconds"), options.get("max_cost"))


def _tools(options: AgentOptions) -> tuple[Tool, ...]:
    model = options.get("analysis_model")
    built_in: list[Tool] = [EndConversationTool()]
    if options.get("enable_analysis_tools", model is not None):
        built_in += [AnalyzeTool(model), ExtractTool(model), CheckFactsTool(model=model), CompareTurnsTool(model)]
    tools = (*built_in, *map(as_tool, options.get("tools") or ()))
    _check_names([TargetInteractionTool.name, *(tool.name for tool in tools)], "tools")
    return tools


def _check_names(names: Sequence[str], what: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"two {what} are called '{name}'; give one of them another name")


def _plain(context: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a context as plain JSON data, for prompts and results."""
    try:
        return to_jsonable_python(dict(context or {}), fallback=str) or None
    except (ValueError, TypeError) as error:
        raise UsageError(f"context cannot be written as JSON: {error}") from error


def _as_tuple(texts: str | Sequence[str] | None) -> tuple[str, ...]:
    return (texts,) if isinstance(texts, str) else tuple(texts or ())


def _files(paths: Sequence[str | Path]) -> dict[str, Path]:
    files = {Path(path).name: Path(path) for path in paths}
    for name, path in files.items():
        if not path.is_file():
            raise UsageError(f"the file {path} does not exist")
        if len(files) < len(paths):
            raise UsageError(f"two files are called {name}")
    return files


def _printing(on_turn: OnTurn | None) -> OnTurn:
    async def print_turn(turn: Turn) -> None:
        print(*turn_lines(turn), sep="\n", file=sys.stderr)
        returned = None if on_turn is None else on_turn(turn)
        if inspect.isawaitable(returned):
            await returned

    return print_turn
