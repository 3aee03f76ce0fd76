"""From the tester of a suite to the agent that leads its conversations."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vivavoce.errors import Problem, UsageError
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.models.model import Model
from vivavoce.penelope.agent import PenelopeAgent
from vivavoce.penelope.brief_problems import brief_warnings
from vivavoce.penelope.options import AgentOptions, GoalMetric
from vivavoce.penelope.persona import Persona
from vivavoce.penelope.strategies import make_strategy, read_graph
from vivavoce.penelope.strategies.strategy import Strategy
from vivavoce.plugins import is_file_reference, load_object
from vivavoce.run.tester import Tester
from vivavoce.samples.rows import MAX_PROBLEMS, read_samples
from vivavoce.settings import settings
from vivavoce.suites.dataset import dataset_source
from vivavoce.suites.grading_spec import MetricGraderSpec
from vivavoce.suites.judges import JudgeOpener
from vivavoce.suites.load import Suite
from vivavoce.suites.metric_names import metric_of, short_name
from vivavoce.suites.spec import PersonaShare, TesterMetricSpec, TesterSpec


def build_tester(suite: Suite, judges: JudgeOpener) -> Tester | None:
    """Return the tester that leads the conversations of a suite, None if there is none; nothing is called yet.

    Raises:
        UsageError: a name, a file or an API key is missing; the problem names its place in the suite.
    """
    if suite.spec.driver != "penelope":
        return None
    spec = suite.spec.tester or TesterSpec()
    try:
        agent = _Builder(spec, suite.base, judges).agent()
        return Tester(agent, spec.persona, spec.adversarial, [_read_shared(persona) for persona in spec.personas])
    except UsageError as error:
        raise UsageError(*suite.document.problems_at(("tester",), error)) from error


def _read_shared(spec: PersonaShare) -> tuple[float, Persona]:
    return spec.share, Persona(**spec.model_dump(exclude={"share"}))


def check_tests(suite: Suite, tester: Tester) -> list[str]:
    """Check that every row can become a test, and return notes on rows whose brief may keep the target from passing.

    Raises:
        UsageError: with every row that cannot, such as a row with a persona that does not exist.
    """
    rows = suite.spec.dataset
    problems: list[Problem | str] = []
    notes: list[str] = []
    for sample in read_samples(dataset_source(suite), fields=rows.fields, base=suite.base, format=rows.format):
        try:
            context = tester.context(sample)
            if len(notes) < MAX_PROBLEMS:
                notes += [f"sample '{sample.id}': {warning}" for warning in brief_warnings(context)]
        except UsageError as error:
            problems += [f"sample '{sample.id}': {problem.message}" for problem in error.problems]
        if len(problems) >= MAX_PROBLEMS:
            break
    if problems:
        raise UsageError(*problems)
    return notes


@dataclass(frozen=True, slots=True)
class _Builder:
    spec: TesterSpec
    base: Path
    judges: JudgeOpener

    def agent(self) -> PenelopeAgent:
        spec = self.spec
        name = spec.model or settings().tester
        if name is None:
            raise UsageError("name the tester model: use tester.model in the suite, --tester, or VIVAVOCE_TESTER")
        model = self.judges.open(name, spec)
        judge_name = spec.judge or settings().judge
        judge = model if judge_name is None else self.judges.open(judge_name, spec)
        options: AgentOptions = {
            "judge": judge,
            "goal_metric": self._goal(judge),
            "guard_metrics": [self._metric(guard, judge) for guard in spec.guards],
            "strategy": self._strategy(),
            "tools": [load_object(tool, self.base) for tool in spec.tools],
            "enable_analysis_tools": spec.analysis,
            "max_turns": spec.max_turns,
            "min_turns": spec.min_turns,
            "max_steps": spec.max_steps,
            "evaluate_every": spec.evaluate_every,
            "impossible_after": spec.impossible_after,
            "timeout_seconds": spec.test_timeout,
            "max_cost": spec.max_test_cost,
            "review_tester": spec.review,
            "explore": spec.explore,
            "settings": spec.all_settings,
        }
        return PenelopeAgent(model, **options)

    def _goal(self, judge: Model) -> GoalMetric:
        return "simple" if self.spec.goal_metric == "simple" else self._metric(self.spec.goal_metric, judge)

    def _metric(self, choice: str | TesterMetricSpec, judge: Model) -> BaseMultiTurnMetric:
        how = TesterMetricSpec(metric=choice) if isinstance(choice, str) else choice
        name = how.name or short_name(how.metric)
        grader = MetricGraderSpec(kind="metric", **how.model_dump(exclude={"name"}))
        return metric_of(name, grader, self.base, lambda model: model if not isinstance(model, str) else judge, "judge")

    def _strategy(self) -> Strategy:
        spec = self.spec
        if spec.graph is not None:
            return read_graph(spec.graph)
        strategy: Any = load_object(spec.strategy, self.base) if is_file_reference(spec.strategy) else spec.strategy
        return make_strategy(strategy, **spec.strategy_config)
