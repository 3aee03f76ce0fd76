"""The graders of a suite, and how a judge is called."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import Discriminator, Field, model_validator

from vivavoce.grading.grader import Scope
from vivavoce.metrics.composition import wrong_thresholds
from vivavoce.metrics.config import Scope as MetricScope
from vivavoce.metrics.exact.rule import RuleMetric
from vivavoce.metrics.panel import VoteRule
from vivavoce.metrics.rules.rule import Rule
from vivavoce.models.modes import Mode
from vivavoce.records.run import Severity
from vivavoce.suites.part import Address, PassingThreshold, SettingsOfModel, Spec


class RuleGraderSpec(Rule):
    """A rule about what comes before, after, never, always, or at most this many times; it needs no judge.

    A conversation that breaks it fails the run, or with `severity: warn` is only a warning. With `scores_errors`, the
    finished part of a conversation that ended with an error is scored, too.
    """

    kind: Literal["rule"]
    scores_errors: bool = False
    severity: Severity | None = None
    display_name: str | None = None

    def metric(self, name: str) -> RuleMetric:
        """Return the rule as a metric."""
        parts: dict[str, Any] = {part: getattr(self, part) or None for part in Rule.model_fields}
        return RuleMetric(name=name, **parts)


class RecordingSpec(Spec):
    """A recording, as viva export writes it: it answers tools of targets, and conversations are compared with it.

    `live` names the tools that are answered by their handlers for real, and the targets that call tools of their own.
    """

    path: str = Field(min_length=1)
    live: list[str] = Field(default_factory=list[str])

    @model_validator(mode="before")
    @classmethod
    def _path_alone(cls, value: Any) -> Any:
        return {"path": value} if isinstance(value, str) else value


class RecordingGraderSpec(Spec):
    """Compares conversations with those of a recording, turn by turn; it needs no judge."""

    kind: Literal["recording"]
    path: str = Field(min_length=1)
    display_name: str | None = None


class GraderSpec(Spec):
    """Fields of every kind of grader: which part is graded, and its name in reports.

    `scope` decides whether each turn or the whole conversation is graded; without it, a sample with a ground truth for
    each turn is graded turn by turn. A score passes if it is at least `threshold`, 1 by default. With `scores_errors`,
    the finished part of a conversation that ended with an error is scored, too.
    """

    scope: Scope | None = None
    threshold: PassingThreshold = None
    scores_errors: bool = False
    display_name: str | None = None
    extractor: str = "last_assistant"
    extractor_config: dict[str, Any] = Field(default_factory=dict)


class FunctionGraderSpec(GraderSpec):
    """A grading function: built in or `file.py:name`; `config` has its options, `timeout` is in seconds.

    `kind: tool`, the name in letta-evals, means the same. `severity` is for `expect`, the grader of assertions: with
    `warn`, a miss does not fail the run.
    """

    kind: Literal["function", "tool"]
    function: str
    severity: Severity | None = None
    config: dict[str, Any] = Field(default_factory=dict)
    timeout: float = Field(default=60.0, gt=0)


class ConfirmSpec(Spec):
    """Second opinions where the first judge says fail: of which model, how many, and when the failure stands.

    By `majority` it stands unless more than half of the opinions pass, the first one included; by `all` only if none
    passes. `api_key_env` is for this model.
    """

    model: Address
    votes: int = Field(default=2, ge=1, le=9)
    rule: VoteRule = "majority"
    api_key_env: str | None = None


class CascadeSpec(Spec):
    """A cheap judge or metric that is asked first, and decides alone where it is sure.

    It is the same metric under another `model`, or another `metric` with its `config`. Below `fails_below` the
    conversation fails by it and from `passes_from` on it passes, both from 0 to 1; between them the grader's own judge
    decides. Without one of the two the first never decides that. `api_key_env` is for this model.
    """

    model: Address | None = None
    metric: str | None = None
    config: dict[str, Any] = Field(default_factory=dict)
    fails_below: float | None = Field(default=None, ge=0, le=1)
    passes_from: float | None = Field(default=None, ge=0, le=1)
    api_key_env: str | None = None

    @model_validator(mode="after")
    def _decides(self) -> Self:
        if self.model is None and self.metric is None:
            raise ValueError("needs model, metric or both: what is asked first")
        if self.config and self.metric is None:
            raise ValueError("config is for another metric; name it with metric")
        if wrong := wrong_thresholds(self.fails_below, self.passes_from):
            raise ValueError(wrong)
        return self


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
    """A model that follows a rubric, which is text or a file.

    With `absence` the rubric is about something that must not be there, which no quote can show: then a high score
    needs no evidence.
    """

    kind: Literal["model_judge"]
    prompt: str | None = None
    prompt_path: str | None = None
    model: Address
    system_prompt: str | None = None
    rubric_vars: list[str] | None = None
    absence: bool = False
    confirm: ConfirmSpec | None = None
    cascade: CascadeSpec | None = None

    @model_validator(mode="after")
    def _one_prompt(self) -> Self:
        if (self.prompt is None) == (self.prompt_path is None):
            raise ValueError("needs exactly one of prompt and prompt_path")
        return self

    @model_validator(mode="after")
    def _one_procedure(self) -> Self:
        return _not_both(self)


class MetricGraderSpec(JudgeSpec):
    """A metric or a grading function by its name, or your own as `file.py:name`; `config` has its options.

    A metric judges the whole conversation; with a `scope`, it judges each turn or each window of turns in it. With an
    `extractor`, it judges the extracted text as if that were the answer, turn by turn if the sample has a ground truth
    for each turn. Its score passes on the right side of `threshold`, in the metric's own scale. A judged metric calls
    `model`, or the judge in VIVAVOCE_JUDGE. With `scores_errors`, the finished part of a conversation that ended with
    an error is scored, too. `severity` is for assertions and
    rules: with `warn`, a miss does not fail the run.
    """

    kind: Literal["metric"]
    metric: str
    model: Address | None = None
    config: dict[str, Any] = Field(default_factory=dict)
    scope: MetricScope | None = None
    threshold: float | None = None
    scores_errors: bool = False
    severity: Severity | None = None
    extractor: str | None = None
    extractor_config: dict[str, Any] = Field(default_factory=dict)
    display_name: str | None = None
    confirm: ConfirmSpec | None = None
    cascade: CascadeSpec | None = None

    @model_validator(mode="after")
    def _one_procedure(self) -> Self:
        return _not_both(self)


_Judging = TypeVar("_Judging", JudgeGraderSpec, MetricGraderSpec)


def _not_both(spec: _Judging) -> _Judging:
    if spec.confirm is not None and spec.cascade is not None:
        raise ValueError("confirm and cascade are two ways to ask a second model; write one of them")
    return spec


AnyGraderSpec = Annotated[
    FunctionGraderSpec | JudgeGraderSpec | MetricGraderSpec | RuleGraderSpec | RecordingGraderSpec,
    Discriminator("kind"),
]
