"""The schema of a suite, and nothing else."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    SecretStr,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)

from vivavoce.grading.grader import Scope
from vivavoce.metrics.config import Scope as MetricScope
from vivavoce.models.modes import Mode
from vivavoce.records.reason import Aggregation, Bound, Operator
from vivavoce.suites.rule_grader import RuleGraderSpec
from vivavoce.wire.http import USER_IN_ADDRESS, holds_user

_SECRET = re.compile(
    r"(proxy-)?authorization|cookie|(x[-_])?(api[-_]?key|token|auth[-_]token|access[-_]token|secret)|password", re.I
)
"""Names of headers and settings that contain keys."""
_FROM_OUTSIDE = re.compile(r"([\w.-]+[ =])?\$\{\w+\}")
"""A value that is an environment variable, optionally after a word such as `Bearer`."""


def _without_keys(settings: dict[str, Any]) -> dict[str, Any]:
    for name in settings:
        if _SECRET.fullmatch(name):
            raise ValueError(
                f"{name} is an API key, which would be stored; set it in the environment and name "
                "the variable with api_key_env"
            )
    return settings


SettingsOfModel = Annotated[dict[str, Any], AfterValidator(_without_keys)]


def _without_user(address: str) -> str:
    if holds_user(address):
        raise ValueError(USER_IN_ADDRESS)
    return address


Address = Annotated[str, AfterValidator(_without_user)]
"""A web address without a secret, because a suite is stored with its run."""


class Spec(BaseModel):
    """A part of a suite: immutable, without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class DatasetSpec(Spec):
    """Where the samples are: in a file, or here as `rows`.

    `fields` maps a field of a sample to the dotted path of its value in a row. `policy`, text or a file, is that of the
    rows without one.
    """

    path: str | None = None
    rows: list[dict[str, Any]] | None = None
    fields: dict[str, str] = Field(default_factory=dict)
    policy: str | None = None
    policy_path: str | None = None

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.path is None) == (self.rows is None):
            raise ValueError("needs either path or rows")
        if self.policy is not None and self.policy_path is not None:
            raise ValueError("has a policy or a policy_path, not both")
        return self

    @property
    def place(self) -> str:
        """Where the samples are, in words."""
        return "the rows of the suite" if self.path is None else f"'{self.path}'"


class TargetSpec(Spec):
    """Fields of every kind of target: the timeout of a reply in seconds, and how often a failed call is retried."""

    timeout: float = Field(default=300.0, gt=0)
    max_retries: int = Field(default=2, ge=0, le=20)


class FunctionTargetSpec(TargetSpec):
    """A Python function, `file.py:name`."""

    kind: Literal["function"]
    function: str
    name: str | None = None


class OpenAITargetSpec(TargetSpec):
    """An OpenAI-compatible chat completions endpoint."""

    kind: Literal["openai"]
    base_url: Address
    model_handles: list[str] = Field(min_length=1)
    api_key_env: str = "OPENAI_API_KEY"
    system_prompt: str | None = None
    settings: SettingsOfModel = Field(default_factory=dict)
    tools: list[dict[str, Any]] | None = None


class HttpTargetSpec(TargetSpec):
    """Any HTTP service: a request template, and where the reply is in the response."""

    kind: Literal["http"]
    url: Address
    method: Literal["GET", "POST", "PUT", "PATCH"] = "POST"
    headers: dict[str, str] = Field(default_factory=dict)
    body: Any = None
    reply: str = ""
    session: str | None = None
    name: str | None = None

    @field_validator("headers")
    @classmethod
    def _no_keys(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if _SECRET.fullmatch(name) and not _FROM_OUTSIDE.fullmatch(value):
                raise ValueError(
                    f"{name} contains a key, which would be stored; write ${{NAME}} and set NAME in the environment"
                )
        return headers


class LettaTargetSpec(TargetSpec):
    """An agent on a Letta server; exactly one of `agent_id`, `agent_file`, `agent_script`."""

    kind: Literal["letta"]
    base_url: Address | None = None
    api_key: SecretStr | None = None
    project_id: str | None = None
    agent_id: str | None = None
    agent_file: str | None = None
    agent_script: str | None = None
    model_handles: list[str] = Field(default_factory=list)
    cleanup: bool = True

    @model_validator(mode="after")
    def _one_agent(self) -> Self:
        sources = [name for name in ("agent_id", "agent_file", "agent_script") if getattr(self, name) is not None]
        if len(sources) != 1:
            raise ValueError(f"needs exactly one of agent_id, agent_file and agent_script, got {sources or 'none'}")
        return self


class LettaCodeTargetSpec(TargetSpec):
    """The Letta Code command line, one process and one conversation per sample."""

    kind: Literal["letta_code"]
    base_url: Address | None = None
    api_key: SecretStr | None = None
    model_handles: list[str] = Field(default_factory=list)
    backend: Literal["local", "cloud"] | None = None
    flags: str = ""
    permission_mode: str | None = None
    agent_script: str | None = None
    memory_dir: str | None = None
    project_id: str | None = None
    command: str = "letta"


AnyTargetSpec = Annotated[
    FunctionTargetSpec | OpenAITargetSpec | HttpTargetSpec | LettaTargetSpec | LettaCodeTargetSpec,
    Field(discriminator="kind"),
]


class GraderSpec(Spec):
    """Fields of every kind of grader: which part is graded, and its name in reports.

    `scope` decides whether each turn or the whole conversation is graded; without it, a sample with a ground truth for
    each turn is graded turn by turn. A score passes if it is at least `threshold`, 1 by default. With `scores_errors`,
    the finished part of a conversation that ended with an error is scored, too.
    """

    scope: Scope | None = None
    threshold: float | None = Field(default=None, ge=0, le=1)
    scores_errors: bool = False
    display_name: str | None = None
    extractor: str = "last_assistant"
    extractor_config: dict[str, Any] = Field(default_factory=dict)


class FunctionGraderSpec(GraderSpec):
    """A grading function: built in or `file.py:name`; `config` has its options, `timeout` is in seconds.

    `kind: tool`, the name in letta-evals, means the same.
    """

    kind: Literal["function", "tool"]
    function: str
    config: dict[str, Any] = Field(default_factory=dict)
    timeout: float = Field(default=60.0, gt=0)


class JudgeSpec(Spec):
    """How a judge is called: its settings, the timeout of an answer in seconds, and how often a failed call is retried.

    `structured` is the way to ask for JSON, detected by default. The limits per minute are shared by all models of a
    provider with the same numbers.
    """

    temperature: float | None = 0.0
    settings: SettingsOfModel = Field(default_factory=dict)
    api_key_env: str | None = None
    max_retries: int = Field(default=5, ge=0, le=20)
    timeout: float = Field(default=120.0, gt=0)
    structured: Mode | None = None
    requests_per_minute: float | None = Field(default=None, gt=0)
    tokens_per_minute: float | None = Field(default=None, gt=0)

    @property
    def all_settings(self) -> dict[str, Any]:
        """The settings, including the temperature."""
        return self.settings if self.temperature is None else {"temperature": self.temperature, **self.settings}


class JudgeGraderSpec(GraderSpec, JudgeSpec):
    """A model that follows a rubric, which is text or a file."""

    kind: Literal["model_judge"]
    prompt: str | None = None
    prompt_path: str | None = None
    model: Address
    system_prompt: str | None = None
    rubric_vars: list[str] | None = None

    @model_validator(mode="after")
    def _one_prompt(self) -> Self:
        if (self.prompt is None) == (self.prompt_path is None):
            raise ValueError("needs exactly one of prompt and prompt_path")
        return self


class MetricGraderSpec(JudgeSpec):
    """A metric or a grading function by its name, or your own as `file.py:name`; `config` has its options.

    A metric judges the whole conversation; with a `scope`, it judges each turn or each window of turns in it. With an
    `extractor`, it judges the extracted text as if that were the answer, turn by turn if the sample has a ground truth
    for each turn. Its score passes on the right side of `threshold`, in the metric's own scale. A judged metric calls
    `model`, or the judge in VIVAVOCE_JUDGE. With `scores_errors`, the finished part of a conversation that ended with
    an error is scored, too.
    """

    kind: Literal["metric"]
    metric: str
    model: Address | None = None
    config: dict[str, Any] = Field(default_factory=dict)
    scope: MetricScope | None = None
    threshold: float | None = None
    scores_errors: bool = False
    extractor: str | None = None
    extractor_config: dict[str, Any] = Field(default_factory=dict)
    display_name: str | None = None


AnyGraderSpec = Annotated[
    FunctionGraderSpec | JudgeGraderSpec | MetricGraderSpec | RuleGraderSpec, Discriminator("kind")
]


class RewardSpec(Spec):
    """Fields of every kind of reward: the lowest value that passes.

    Without a `threshold`, the reward of one grader passes if its score passes, and any other reward passes at 1.
    """

    threshold: float | None = Field(default=None, ge=0, le=1)


class MetricRewardSpec(RewardSpec):
    """The reward is one grader's score."""

    kind: Literal["metric"]
    metric_key: str


class WeightedRewardSpec(RewardSpec):
    """The reward is a weighted mean of graders' scores; weights are normalised."""

    kind: Literal["weighted"]
    weights: dict[str, float] = Field(min_length=1)

    @field_validator("weights")
    @classmethod
    def _sum(cls, weights: dict[str, float]) -> dict[str, float]:
        return check_weights(weights)


class CustomRewardSpec(RewardSpec):
    """The reward is computed by a function: `file.py:name`, or a registered name."""

    kind: Literal["custom"]
    function: str


AnyRewardSpec = Annotated[MetricRewardSpec | WeightedRewardSpec | CustomRewardSpec, Field(discriminator="kind")]


def _reachable(value: float, found: ValidationInfo) -> float:
    aggregation, op = found.data.get("aggregation"), found.data.get("op")
    if aggregation is None or op is None:
        return value  # one of them is wrong itself, and that is said
    end, what = (100.0, "a percentage, from 0 to 100") if aggregation == "accuracy" else (1.0, "from 0 to 1")
    if not 0 <= value <= end:
        share = f"; did you mean {value / 100:g}, or aggregation: accuracy?"
        hint = share if end < value <= 100 else f", got {value:g}"
        raise ValueError(f"{aggregation} is {what}{hint}")
    if (op, value) in (("gt", end), ("lt", 0.0)):
        side, write = ("above", "gte") if op == "gt" else ("below", "lte")
        raise ValueError(f"{aggregation} is {what}, never {side} {value:g}; write op: {write}")
    return value


GateValue = Annotated[float, AfterValidator(_reachable)]
"""The value an aggregate is compared with: a run passes on one side of it and fails on the other."""


class ConditionSpec(Spec):
    """An aggregate of one grader's scores compared with a value."""

    metric_key: str
    aggregation: Aggregation = "avg_score"
    op: Operator = "gte"
    value: GateValue
    pass_threshold: float | None = Field(default=None, ge=0, le=1)
    pass_op: Operator = "gte"
    on: Bound = "mean"
    min_scored: float = Field(default=0.0, ge=0, le=1)


class SimpleGateSpec(ConditionSpec):
    """One condition."""

    kind: Literal["simple"] = "simple"


class WeightedGateSpec(Spec):
    """One condition on a weighted mean of several graders' aggregates."""

    kind: Literal["weighted_average"]
    weights: dict[str, float] = Field(min_length=1)
    aggregation: Aggregation = "avg_score"
    op: Operator = "gte"
    value: GateValue
    pass_threshold: float | None = Field(default=None, ge=0, le=1)
    on: Bound = "mean"
    min_scored: float = Field(default=0.0, ge=0, le=1)

    @field_validator("weights")
    @classmethod
    def _sum(cls, weights: dict[str, float]) -> dict[str, float]:
        return check_weights(weights)


class LogicalGateSpec(Spec):
    """Conditions joined by `and` or `or`."""

    kind: Literal["logical"]
    operator: Literal["and", "or"]
    conditions: list[AnyGateSpec] = Field(min_length=1)


AnyGateSpec = Annotated[SimpleGateSpec | WeightedGateSpec | LogicalGateSpec, Field(discriminator="kind")]


class TesterMetricSpec(Spec):
    """A metric of the tester by its `name`, with the options of a grader; the judge of the tester judges."""

    metric: str
    name: str | None = None
    threshold: float | None = None
    scope: MetricScope | None = None
    config: dict[str, Any] = Field(default_factory=dict)
    extractor: str | None = None
    extractor_config: dict[str, Any] = Field(default_factory=dict)
    temperature: float | None = 0.0
    settings: SettingsOfModel = Field(default_factory=dict)


def _form(value: Any) -> str:
    return "name" if isinstance(value, str) else WITH_OPTIONS


WITH_OPTIONS = "(options)"
"""A step of the schema, not of the file: a metric named with options."""
TesterMetric = Annotated[
    Annotated[str, Tag("name")] | Annotated[TesterMetricSpec, Tag(WITH_OPTIONS)], Discriminator(_form)
]


class TesterSpec(JudgeSpec):
    """The tester that leads the conversations of `driver: penelope`; a row's own persona and turn limits override it.

    `model` is the tester model, by default that of VIVAVOCE_TESTER, or `file.py:name` for your own; it has the same
    settings as a judge. `judge` judges the goal. `test_timeout` is in seconds for a whole test, `max_test_cost` in US
    dollars. `guards` are metrics that end a test when one does not pass; these and the `goal_metric` are names, or
    names with options. `tools` are `file.py:name`.
    """

    __test__: ClassVar[bool] = False
    temperature: float | None = None
    model: Address | None = None
    judge: Address | None = None
    goal_metric: TesterMetric = "goal_achievement"
    strategy: str = "improvise"
    strategy_config: dict[str, Any] = Field(default_factory=dict)
    graph: dict[str, Any] | None = None
    persona: str | dict[str, str] | None = None
    max_turns: int = Field(default=20, ge=1)
    min_turns: int = Field(default=0, ge=0)
    max_steps: int = Field(default=10, ge=1)
    evaluate_every: int = Field(default=1, ge=1)
    impossible_after: int = Field(default=8, ge=1)
    test_timeout: float | None = Field(default=None, gt=0)
    max_test_cost: float | None = Field(default=None, ge=0)
    guards: list[TesterMetric] = Field(default_factory=lambda: list[str | TesterMetricSpec]())
    analysis: bool = False
    tools: list[str] = Field(default_factory=list)
    adversarial: bool | None = None
    review: bool = True

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.graph is not None and self.strategy != "improvise":
            raise ValueError("use either a graph or a strategy, not both")
        return self


class AgreementSpec(Spec):
    """How well one grader predicts another; a pass counts as yes, or with a `threshold` any score from there on."""

    predictor: str
    truth: str
    threshold: float | None = Field(default=None, ge=0, le=1)


class SuiteSpec(Spec):
    """A suite: what to ask, which target, how to grade, and when the run passes."""

    name: str = Field(min_length=1)
    description: str | None = None
    dataset: DatasetSpec
    driver: Literal["scripted", "replay", "penelope"] = "scripted"
    tester: TesterSpec | None = None
    target: AnyTargetSpec | None = None
    graders: dict[str, AnyGraderSpec] = Field(default_factory=dict, min_length=1)
    reward: AnyRewardSpec | None = None
    gate: AnyGateSpec | None = None
    agreement: list[AgreementSpec] = Field(default_factory=lambda: list[AgreementSpec]())
    trials: int = Field(default=1, ge=1)
    max_samples: int | None = Field(default=None, ge=1)
    sample_tags: list[str] | None = None
    max_concurrent: int = Field(default=15, ge=1, le=10_000)
    setup_script: str | None = None
    output: str | None = None

    @field_validator("dataset", mode="before")
    @classmethod
    def _path_alone(cls, value: Any) -> Any:
        return {"path": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _driver_and_target(self) -> Self:
        if self.driver != "replay" and self.target is None:
            raise ValueError("needs a target: the system under test (or driver: replay, for recorded conversations)")
        if self.driver == "replay" and self.target is not None:
            raise ValueError("driver: replay reads recorded conversations and calls no target; remove the target")
        if self.driver != "penelope" and self.tester is not None:
            raise ValueError("a tester is only for driver: penelope; name that driver, or remove the tester")
        if "reward" in self.graders:
            raise ValueError("'reward' is the name of the reward of a sample; give the grader another name")
        return self


def check_weights(weights: dict[str, float]) -> dict[str, float]:
    """Return weights that are finite numbers, not negative and not all 0, with a finite sum."""
    if not math.isfinite(sum(weights.values())):
        raise ValueError("weights must be finite numbers; got " + ", ".join(f"{k}: {v:g}" for k, v in weights.items()))
    if any(weight < 0 for weight in weights.values()) or not sum(weights.values()):
        raise ValueError("weights must be 0 or more, and not all 0")
    return weights
