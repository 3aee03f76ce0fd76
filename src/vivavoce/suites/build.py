"""From a suite to its graders: looks up every name, checks every option, and reports each mistake with its place."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vivavoce.errors import Problem, UsageError, did_you_mean
from vivavoce.files.paths import check_text
from vivavoce.grading.asked import Asked, Judge
from vivavoce.grading.call_mistakes import KnownTools, wrong_calls
from vivavoce.grading.expect import judged_by
from vivavoce.grading.extractors import Extract, build_extractor, last_assistant, quoted_transcript
from vivavoce.grading.functions import check_parameters
from vivavoce.grading.gates import Gate, LogicalGate, SamplesGate, SimpleGate, Threshold, WeightedGate
from vivavoce.grading.grader import Grader, fingerprint, in_spite_of_errors
from vivavoce.grading.metrics import (
    ExtractedMetric,
    FunctionGrading,
    MetricScore,
    extractor_parts,
    metric_grader,
    needs_threshold,
    threshold_parts,
)
from vivavoce.grading.rewards import Composer, CustomReward, WeightedReward, reward_composers
from vivavoce.grading.scores import ErrorLimit
from vivavoce.metrics.exact.rule import RuleMetric
from vivavoce.metrics.judging import JudgedMetric
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.metrics.panel import Confirmed, asking
from vivavoce.metrics.prompts import STANDARD, Rubric, read_rubric
from vivavoce.metrics.rating import RatingMetric
from vivavoce.metrics.rules.rule import Rule
from vivavoce.models.model import Model
from vivavoce.plugins import is_file_reference, lazy, load_object
from vivavoce.records.run import BreachKind
from vivavoce.run.experiment import AgreementPair, Scoring
from vivavoce.samples.rows import SampleCount
from vivavoce.settings import settings
from vivavoce.suites.document import KeyPath
from vivavoce.suites.expectations import EXPECT, asks_judge, grades_assertions
from vivavoce.suites.grading_spec import (
    AnyGateSpec,
    AnyGraderSpec,
    AnyRewardSpec,
    CascadeSpec,
    ConditionSpec,
    ConfirmSpec,
    CustomRewardSpec,
    FunctionGraderSpec,
    JudgeGraderSpec,
    JudgeSpec,
    LogicalGateSpec,
    MetricGraderSpec,
    MetricRewardSpec,
    RecordingGraderSpec,
    RuleGraderSpec,
    SamplesGateSpec,
    WeightedGateSpec,
    WeightedRewardSpec,
    always_holds,
    grader_names,
)
from vivavoce.suites.judges import offline_model
from vivavoce.suites.load import Suite
from vivavoce.suites.metric_names import add_cascade, grading_of, metric_of, written_in
from vivavoce.suites.plan import early_gate, refusals, stopping
from vivavoce.suites.spec import TrialsUntil
from vivavoce.suites.targets import known_tools
from vivavoce.user_code import check_callable, source_of

if TYPE_CHECKING:
    from vivavoce.metrics.judged.rubric_judge import RubricJudge

_OPENED = {"api_key_env", "timeout", "max_retries", "structured", "requests_per_minute", "tokens_per_minute"}
"""The fields that must be equal for two graders to share a judge; settings are sent with each question."""
_STANDARD = frozenset(STANDARD)
_REPORTING_BREACHES = ("goal_achievement", "GoalAchievementJudge", "target_passed")
"""Graders that report the false statements and broken rules that the judge of a goal found besides it."""
OpenModel = Callable[[str | Model, JudgeSpec], Model]
"""Opens a judge by its name; a model object is wrapped so that its calls are counted and its answers cached, too."""


@dataclass(slots=True)
class Builder:
    """Builds the graders, reward and gate of a suite, and collects all problems instead of stopping at the first.

    `dataset` says which variables the rows give to rubrics, None if no row was read. `tester` is the fingerprint of the
    tester that leads the conversations, empty if there is none. `metric_assertions` is what assertions of rows ask of
    metrics.
    `trials` is how often each sample is run, None for recorded conversations; `until` may end that earlier. `usable`
    are the rows without a mistake, where others have one. `measuring` names the graders whose scores neither pass nor
    fail.
    """

    suite: Suite
    open_model: OpenModel
    dataset: SampleCount | None = None
    tester: str = ""
    metric_assertions: Mapping[str, Asked] = field(default_factory=dict[str, Asked])
    trials: int | None = None
    until: TrialsUntil | None = None
    usable: SampleCount | None = None
    problems: list[Problem] = field(default_factory=list[Problem])
    models: dict[str, Model] = field(default_factory=dict[str, Model])
    metrics: list[BaseMultiTurnMetric] = field(default_factory=list[BaseMultiTurnMetric])
    measuring: set[str] = field(default_factory=set[str])

    @contextmanager
    def place(self, *at: str | int) -> Generator[None]:
        """Give the problems raised inside this block their place in the suite."""
        try:
            yield
        except UsageError as error:
            self.problems += self.suite.document.problems_at(at, error)

    def scoring(self) -> Scoring:
        """Return what grades a run.

        Raises:
            UsageError: with every problem found.
        """
        spec = self.suite.spec
        graders = self._graders(spec.graders)
        composer = self._composer()
        gate = self.written_gate()
        if self.until is not None:
            self.problems += refusals(self.suite, self.until, [grader.name for grader in graders if grader.decides])
        for i, pair in enumerate(spec.agreement):
            self._deciding_key(pair.predictor, ("agreement", i, "predictor"))
            self._deciding_key(pair.truth, ("agreement", i, "truth"))
        if self.problems:
            raise UsageError(*self.problems)
        early = None
        if self.until is not None:
            gate = early_gate(gate, self.until.max) if gate is not None and self.until.until is not None else gate
            early = stopping(self.until, spec, gate, [grader.name for grader in graders if grader.decides])
        return Scoring(
            graders,
            composer,
            gate,
            tuple(AgreementPair(pair.predictor, pair.truth, pair.threshold) for pair in spec.agreement),
            (*self.models.values(), *self.metrics),
            _reward_print(spec.reward, composer),
            early,
        )

    def written_gate(self) -> Gate | None:
        """Return the gate as the suite has it, None if it has none; what is wrong with it is among the problems."""
        spec = self.suite.spec.gate
        return None if spec is None else self._gate(spec, ("gate",))

    def grader(self, name: str) -> Grader:
        """Return one of the graders, without the others.

        Raises:
            UsageError: with every problem found in it.
        """
        built = self._grader(name, self.suite.spec.graders[name])
        if self.problems or built is None:
            raise UsageError(*self.problems)
        return built

    def _graders(self, specs: Mapping[str, AnyGraderSpec]) -> tuple[Grader, ...]:
        """Return the graders in their order; those that compare with a recording have the others grade it."""
        specs = {name: spec for name, spec in specs.items() if ("graders", name) not in self.suite.wrong}
        comparing = {name: spec for name, spec in specs.items() if isinstance(spec, RecordingGraderSpec)}
        built = {name: self._grader(name, spec) for name, spec in specs.items() if name not in comparing}
        others = [grader for grader in built.values() if grader is not None]
        built |= {name: self._recording_grader(name, spec, others) for name, spec in comparing.items()}
        return tuple(grader for name in specs if (grader := built[name]) is not None)

    def _recording_grader(self, name: str, spec: RecordingGraderSpec, others: Sequence[Grader]) -> Grader | None:
        with self.place("graders", name, "path"):
            return lazy("vivavoce.suites.recording:recording_grader")(name, spec, others, self.suite)
        return None

    def _grader(self, name: str, spec: AnyGraderSpec) -> Grader | None:
        grader = self._with_severity(name, spec, self._measuring(name, spec))
        if grader is not None:
            self._check_tools(grader)
        return grader

    def _with_severity(self, name: str, spec: AnyGraderSpec, grader: Grader | None) -> Grader | None:
        """Return a requirement with the severity that the suite says; that of any other grader is a mistake."""
        severity = None if isinstance(spec, RecordingGraderSpec | JudgeGraderSpec) else spec.severity
        if grader is None or severity is None:
            return grader
        if grader.severity is None:
            message = (
                f"severity is for rules and for the grader of assertions ({EXPECT}); what the scores of another grader "
                "decide, a gate says"
            )
            self.problems.append(self.suite.document.problem(("graders", name, "severity"), message))
        return replace(grader, severity=severity)

    def _measuring(self, name: str, spec: AnyGraderSpec) -> Grader | None:
        if isinstance(spec, RecordingGraderSpec):
            return self._recording_grader(name, spec, ())
        if isinstance(spec, MetricGraderSpec):
            return self._metric(name, spec)
        if isinstance(spec, RuleGraderSpec):
            return self._rule(name, spec)
        extract: Extract | None = None
        with self.place("graders", name, "extractor"):
            extract = build_extractor(spec.extractor, spec.extractor_config, self.suite.base)
        if extract is None:  # reported already; the rest of the grader is checked with another one
            spec = spec.model_copy(update={"extractor": "last_assistant"})
        if isinstance(spec, JudgeGraderSpec):
            if spec.extractor == "transcript":
                extract = quoted_transcript
            return self._judge(name, spec, extract or last_assistant)
        with self.place("graders", name, "function"):
            return self._function(name, spec, extract or last_assistant)
        return None

    def _function(self, name: str, spec: FunctionGraderSpec, extract: Extract) -> Grader:
        how = FunctionGrading(**spec.model_dump(exclude={"kind", "severity"}))
        grader = how.grader(name, self.suite.base, extract=extract, tester=self._tester_parts)
        return self._asking(name, spec, grader) if grades_assertions(spec) else grader

    def _asking(self, name: str, spec: FunctionGraderSpec | MetricGraderSpec, grader: Grader) -> Grader:
        """Return a grader of assertions with the judge that they ask, if they ask one."""
        if not asks_judge(self.metric_assertions):
            return judged_by(grader, self.metric_assertions, None)
        calling = spec if isinstance(spec, MetricGraderSpec) else MetricGraderSpec(kind="metric", metric=EXPECT)
        model = calling.model or self.suite.judge or settings().judge
        with self.place("graders", name, "model"):
            if model is None:
                raise UsageError(
                    "rows have assertions that need a judge, but none is configured: set VIVAVOCE_JUDGE, write "
                    f"{name}: {{kind: metric, metric: {EXPECT}, model: …}} under graders, or give --judge where "
                    "the command takes it"
                )
            how = {"temperature": calling.temperature, **calling.settings}
            return judged_by(grader, self.metric_assertions, Judge(self._open_model(model, calling), how))
        return grader

    def _tester_parts(self) -> list[Any]:
        """Return what else the scores of graders of tests depend on."""
        tester = self.suite.spec.tester
        return [tester.model_dump(mode="json") if tester else {}, self.tester]

    def _judge(self, name: str, spec: JudgeGraderSpec, extract: Extract) -> Grader | None:
        at = ("graders", name)
        with self.place(*at, "prompt_path" if spec.prompt_path else "prompt"):
            rubric = self._rubric(spec)
            with self.place(*at, "model"):
                judge: RubricJudge = lazy("vivavoce.metrics.judged.rubric_judge:RubricJudge")(
                    self._open_model(spec.model, spec),
                    rubric=rubric,
                    system_prompt=spec.system_prompt,
                    settings={"temperature": spec.temperature, **spec.settings},
                    absence=spec.absence,
                )
                judge.is_decided_outside = spec.threshold is not None or self._is_gated(name)
                measured = self._with_second(name, judge, spec, spec.threshold)
                parts = [*extractor_parts(spec.extractor, spec.extractor_config, self.suite.base), spec.scope]
                alone = spec.cascade is None
                grader = Grader(
                    name,
                    extract,
                    MetricScore(measured).score,
                    "none",
                    fingerprint([measured.fingerprint, parts, *threshold_parts(spec.threshold)]),
                    scope=spec.scope if alone else "conversation",
                    label=spec.display_name,
                    judged=True,
                    once=sum(1 for _ in asking(measured)),
                    threshold=spec.threshold if alone else None,
                    waits=True,
                )
                return in_spite_of_errors(grader) if spec.scores_errors else grader
        return None

    def _is_gated(self, name: str) -> bool:
        """Return whether the gate decides on the scores of a grader, by itself or by the reward."""
        gate = self.suite.spec.gate
        return gate is not None and bool({name, "reward"} & grader_names(gate))

    def _metric(self, name: str, spec: MetricGraderSpec) -> Grader | None:
        at = ("graders", name)

        def opening(judge: str | Model) -> Model:
            with self.place(*at, "model"):
                return self._open_model(judge, spec)
            return offline_model(judge if isinstance(judge, str) else judge.name)

        with self.place(*at, "metric"):
            if grading := grading_of(spec, self.suite.base):
                if spec.cascade is not None or spec.confirm is not None:
                    raise UsageError(
                        f"'{spec.metric}' uses no model; remove {'cascade' if spec.cascade else 'confirm'}"
                    )
                function_grader = grading.grader(name, self.suite.base, tester=self._tester_parts)
                return self._asking(name, spec, function_grader) if grades_assertions(spec) else function_grader
            metric = metric_of(name, spec, self.suite.base, opening, settings().judge)
            self.metrics.append(metric)
            if isinstance(metric, RuleMetric):
                self._check_calls(metric.rule, *at, "config")
            if any(judged_metric.model is None for judged_metric in asking(metric)):
                raise UsageError(
                    f"'{spec.metric}' needs a judge, but none is configured: write model: in the grader, set "
                    "VIVAVOCE_JUDGE, or give --judge where the command takes it"
                )
            if self._is_gated(name):
                for judged_metric in asking(metric):
                    if isinstance(judged_metric, RatingMetric):
                        judged_metric.is_decided_outside = True
            metric = self._with_second(name, metric, spec)
            by_threshold = spec.threshold is not None and spec.cascade is None
            source = written_in(spec, self.suite.base)
            grader = metric_grader(name, metric, spec.display_name, source, by_threshold=by_threshold)
            if not grader.decides:
                self.measuring.add(name)
            return in_spite_of_errors(grader) if spec.scores_errors else grader
        return None

    def _with_second(
        self,
        name: str,
        metric: BaseMultiTurnMetric,
        spec: JudgeGraderSpec | MetricGraderSpec,
        passing: float | None = None,
    ) -> BaseMultiTurnMetric:
        """Return a metric with the second opinions, or the cheap judge before it, that its grader asks for."""
        if isinstance(metric, ExtractedMetric) and (spec.confirm or spec.cascade):
            (inner,) = metric.parts
            whole = metric.extraction if spec.cascade is None else replace(metric.extraction, scope="conversation")
            return ExtractedMetric(self._with_second(name, inner, spec, passing), whole)
        if spec.cascade is not None:
            with self.place("graders", name, "cascade"):
                return self._with_cascade(name, metric, spec, spec.cascade)
        return metric if spec.confirm is None else self._with_confirmation(name, metric, spec, spec.confirm, passing)

    def _with_cascade(
        self,
        name: str,
        metric: BaseMultiTurnMetric,
        spec: JudgeGraderSpec | MetricGraderSpec,
        cascade: CascadeSpec,
    ) -> BaseMultiTurnMetric:
        keyed = spec.model_copy(update={"api_key_env": cascade.api_key_env})

        def opening(judge: str | Model) -> Model:
            with self.place("graders", name, "cascade", "model"):
                return self._open_model(judge, keyed)
            return offline_model(f"{judge if isinstance(judge, str) else judge.name} of a cascade")

        whole = add_cascade(metric, spec, cascade, self.suite.base, opening)
        self.metrics.append(whole)
        return whole

    def _with_confirmation(
        self,
        name: str,
        metric: BaseMultiTurnMetric,
        spec: JudgeGraderSpec | MetricGraderSpec,
        confirm: ConfirmSpec,
        passing: float | None,
    ) -> BaseMultiTurnMetric:
        if not isinstance(metric, JudgedMetric):
            raise UsageError(f"confirm is for a metric that asks a model itself; {metric.name} does not")
        model: Model = offline_model(str(confirm.model))
        with self.place("graders", name, "confirm", "model"):
            model = self._open_model(confirm.model, spec.model_copy(update={"api_key_env": confirm.api_key_env}))
        by_threshold = isinstance(spec, MetricGraderSpec) and spec.threshold is not None
        votes, rule = confirm.votes, confirm.rule
        return Confirmed(metric, model, votes=votes, rule=rule, passing=passing, by_threshold=by_threshold)

    def _rule(self, name: str, spec: RuleGraderSpec) -> Grader:
        self._check_calls(spec, "graders", name)
        grader = metric_grader(name, spec.metric(name), spec.display_name)
        return in_spite_of_errors(grader) if spec.scores_errors else grader

    def _check_tools(self, grader: Grader) -> None:
        """Report the tools in the options of a grader that nobody knows, and options that leave nothing to compare."""
        rows = self.dataset or self.usable
        if rows is None or not grader.calls:
            return
        offered = known_tools(self.suite)
        others = rows.recorded_tools.union(offered)
        known = KnownTools(rows.expected_tools, others, bool(offered), bool(rows.references))
        for mistake in (mistake for options in grader.calls for mistake in wrong_calls(options, known)):
            at = ("graders", grader.name, "config", *((mistake.option,) if mistake.option else ()))
            self.problems.append(self.suite.document.problem(at, mistake.message))

    def _check_calls(self, rule: Rule, *at: str) -> None:
        known = known_tools(self.suite)
        for place, tool in rule.unknown_calls(known):
            message = f"the target has no tool '{tool}'{did_you_mean(tool, known)}"
            self.problems.append(self.suite.document.problem((*at, *place), message))

    def _open_model(self, model: str | Model, spec: JudgeSpec) -> Model:
        key = f"{model if isinstance(model, str) else id(model)} {spec.model_dump(include=_OPENED)}"
        if key not in self.models:
            self.models[key] = self.open_model(model, spec)
        return self.models[key]

    def _rubric(self, spec: JudgeGraderSpec) -> Rubric:
        text, where = spec.prompt or "", "prompt"
        if spec.prompt is not None:
            _check_text(spec.prompt, self.suite.base)
        if spec.prompt_path is not None:
            where = spec.prompt_path
            try:
                text = (self.suite.base / where).read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise UsageError(f"'{where}' cannot be read: {error}") from error
        rows = self.dataset or self.usable
        variables = rows.rubric_vars if rows else frozenset[str]()
        known = _STANDARD | set(spec.rubric_vars or ()) | variables
        rubric = read_rubric(text, known, where)
        if spec.rubric_vars is not None and rubric.syntax == "letta":
            rubric = Rubric(text, "replace", where, frozenset(known))
        missing = sorted(rubric.variables - _STANDARD - variables)
        if missing and rows and rows.shared_rubrics:
            names = _STANDARD | variables
            raise UsageError(*(f"{where} needs the variable '{name}'{did_you_mean(name, names)}" for name in missing))
        return rubric

    def _composer(self) -> Composer | None:
        spec = self.suite.spec.reward
        if isinstance(spec, MetricRewardSpec):
            self._deciding_key(spec.metric_key, ("reward", "metric_key"))
            return WeightedReward({spec.metric_key: 1.0}, spec.threshold)
        if isinstance(spec, WeightedRewardSpec):
            for key in spec.weights:
                self._deciding_key(key, ("reward", "weights", key))
            return WeightedReward(spec.weights, spec.threshold)
        if isinstance(spec, CustomRewardSpec):
            with self.place("reward", "function"):
                if self.measuring:
                    raise UsageError(f"a reward function reads all scores: {needs_threshold(min(self.measuring))}")
                load = load_object if is_file_reference(spec.function) else _get_composer
                function = load(spec.function, self.suite.base)
                check_parameters(check_callable(function, spec.function, "a reward function"), ("ctx",))
                return CustomReward(function, spec.threshold)
        return None

    def _gate(self, spec: AnyGateSpec, at: KeyPath, *, counts_evidence: bool = False) -> Gate:
        """Return a gate; with `counts_evidence`, the gate around it can fail for unverified evidence."""
        counts_evidence = counts_evidence or spec.max_unverified is not None
        if isinstance(spec, LogicalGateSpec):
            conditions = [
                self._gate(condition, (*at, "conditions", place), counts_evidence=counts_evidence)
                for place, condition in enumerate(spec.conditions)
            ]
            return LogicalGate(spec.operator, conditions, spec.max_unverified)
        if not counts_evidence and not isinstance(spec, SamplesGateSpec):
            self._can_fail(spec, at)
        if isinstance(spec, WeightedGateSpec):
            for key in spec.weights:
                self._deciding_key(key, (*at, "weights", key))
            threshold = Threshold(spec.aggregation, spec.op, spec.value, spec.pass_threshold, "gte", spec.on)
            return WeightedGate(
                spec.weights,
                threshold,
                spec.min_scored,
                _spoilable(spec),
                errors_fail=spec.errors == "fail",
                max_unverified=spec.max_unverified,
            )
        self._deciding_key(spec.metric_key, (*at, "metric_key"))
        if isinstance(spec, SamplesGateSpec):
            self._enough_trials(spec.min_pass, (*at, "min_pass"))
            return SamplesGate(
                spec.metric_key,
                spec.min_pass,
                spec.min_scored,
                errors_fail=spec.errors == "fail",
                max_unverified=spec.max_unverified,
            )
        self._enough_trials(spec.k or 1, (*at, "k"))
        return SimpleGate(
            spec.metric_key,
            _threshold(spec),
            spec.min_scored,
            spec.needs_calibration,
            spoilable=_spoilable(spec),
            errors_fail=spec.errors == "fail",
            max_unverified=spec.max_unverified,
            max_findings=self._max_findings(spec, (*at, "max_findings")),
        )

    def _can_fail(self, spec: ConditionSpec | WeightedGateSpec, at: KeyPath) -> None:
        """Report a condition that holds whatever the scores are, unless it demands something besides."""
        besides = spec.min_scored or (isinstance(spec, ConditionSpec) and (spec.max_findings or spec.needs_calibration))
        if not besides and (message := always_holds(spec)):
            self.problems.append(self.suite.document.problem((*at, "value"), message))

    def _max_findings(self, spec: ConditionSpec, at: KeyPath) -> Mapping[BreachKind, int]:
        """Return the limits on breaches; a grader that reports none would make them hold without a check."""
        grader = self.suite.spec.graders.get(spec.metric_key)
        if spec.max_findings and (grader is None or not _reports_breaches(grader)):
            message = (
                f"'{spec.metric_key}' reports no false statements and no broken rules; name a grader with "
                "function: target_passed, or with metric: goal_achievement"
            )
            self.problems.append(self.suite.document.problem(at, message))
        return spec.max_findings

    def _enough_trials(self, needed: int, at: KeyPath) -> None:
        if self.trials is not None and self.trials < needed:
            message = f"needs {needed} trials of each sample, and there are {self.trials}; write trials: {needed}"
            self.problems.append(self.suite.document.problem(at, message))

    def _deciding_key(self, key: str, at: KeyPath) -> None:
        """Report a key that names no grader, or a grader whose scores neither pass nor fail."""
        if key in self.measuring:
            self.problems.append(self.suite.document.problem(at, needs_threshold(key)))
        known = [*self.suite.spec.graders, *(["reward"] if self.suite.spec.reward else [])]
        if self.dataset is None or ("graders", key) in self.suite.wrong:
            known.append(EXPECT)  # whether the rows have assertions is not known
        if ("reward",) in self.suite.wrong:
            known.append("reward")
        if key not in known:
            self.problems.append(self.suite.document.problem(at, f"no grader '{key}'{did_you_mean(key, known)}"))


def _check_text(prompt: str, base: Path) -> None:
    try:
        check_text(prompt, base, "prompt_path")
    except ValueError as error:
        raise UsageError(str(error)) from error


def _reports_breaches(spec: AnyGraderSpec) -> bool:
    """Say whether a grader reports what the judge of a goal found besides it; a metric of your own may."""
    if isinstance(spec, FunctionGraderSpec):
        return spec.function in _REPORTING_BREACHES
    if not isinstance(spec, MetricGraderSpec):
        return False
    return spec.metric in _REPORTING_BREACHES or is_file_reference(spec.metric)


def _spoilable(spec: ConditionSpec | WeightedGateSpec) -> ErrorLimit | None:
    limit = spec.max_tester_errors
    return None if limit is None else ErrorLimit(str(limit), "max_tester_errors")


def _reward_print(spec: AnyRewardSpec | None, composer: Composer | None) -> str | None:
    if spec is None:
        return None
    source = source_of(composer.function) if isinstance(composer, CustomReward) else ""
    return fingerprint([spec.model_dump(), source])


def _threshold(spec: ConditionSpec) -> Threshold:
    return Threshold(spec.aggregation, spec.op, spec.value, spec.pass_threshold, spec.pass_op, spec.on, spec.k)


def _get_composer(name: str, _base: Path) -> Callable[..., Any]:
    return reward_composers.get(name)


def needs_state(specs: Mapping[str, AnyGraderSpec], base: Path) -> bool:
    """Return whether an extractor reads the memory of the target."""

    def reads_state(name: str) -> bool:
        if not is_file_reference(name):
            return name == "memory_block"
        return "agent_state" in inspect.signature(load_object(name, base)).parameters

    extractors = [
        spec.extractor for spec in specs.values() if not isinstance(spec, RuleGraderSpec | RecordingGraderSpec)
    ]
    return any(reads_state(name) for name in extractors if name is not None)
