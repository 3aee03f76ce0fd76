"""The schema of a suite."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from vivavoce.conversations.format import format_named, names, no_format
from vivavoce.metrics.config import Scope as MetricScope
from vivavoce.records.trajectory import Explore
from vivavoce.samples.dataset_file import VERSION
from vivavoce.suites.document import Address, KeyPath, PassingThreshold, SettingsOfModel, Spec
from vivavoce.suites.grading_spec import AnyGateSpec, AnyGraderSpec, AnyRewardSpec, JudgeSpec, RecordingSpec
from vivavoce.suites.target_spec import AnyTargetSpec


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


def _metric_form(value: Any) -> str:
    return "name" if isinstance(value, str) else WITH_OPTIONS


WITH_OPTIONS = "(options)"
"""A step of the schema, not of the file: a metric named with options."""
TesterMetric = Annotated[
    Annotated[str, Tag("name")] | Annotated[TesterMetricSpec, Tag(WITH_OPTIONS)], Discriminator(_metric_form)
]


class PersonaShare(Spec):
    """A persona that a `share` of the rows gets; its other fields are words for the tester."""

    share: float = Field(gt=0)
    name: str = "user"
    description: str = ""
    style: str = ""
    knowledge: str = ""
    patience: str = ""
    language: str = ""


class TesterSpec(JudgeSpec):
    """The tester that leads the conversations of `driver: penelope`; a row's own persona and turn limits override it.

    `model` is the tester model, by default that of VIVAVOCE_TESTER, or `file.py:name` for your own; it has the same
    settings as a judge. `judge` judges the goal. `test_timeout` is in seconds for a whole test, `max_test_cost` in US
    dollars. Of `personas`, a row gets the one that its id falls to, by their shares. `guards` are metrics that end a
    test when one does not pass; these and the `goal_metric` are names, or names with options. `tools` are
    `file.py:name`. With `explore: rules` a test goes on
    after its goal is reached, and the tester tries to get `must` and `must_not` broken until all turns are used.
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
    personas: list[PersonaShare] = Field(default_factory=list[PersonaShare])
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
    explore: Explore = "goal"

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.graph is not None and self.strategy != "improvise":
            raise ValueError("use either a graph or a strategy, not both")
        if self.persona is not None and self.personas:
            raise ValueError("use either a persona or personas, not both")
        return self


class TrialsUntil(Spec):
    """Trials of each sample until something is known, and `max` at most.

    `until: decided` makes them until the gate is decided, `half_width` until the interval of the graded figure reaches
    no further than this from its middle.
    """

    max: int = Field(ge=2, le=10_000)
    until: Literal["decided"] | None = None
    half_width: float | None = Field(default=None, gt=0, lt=0.5)

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        if (self.until is None) == (self.half_width is None):
            raise ValueError("needs either until: decided or a half_width; for a fixed number of trials write it alone")
        return self


NUMBER, UNTIL = "a number of trials", "trials until"
"""The two forms, as the schema names them; neither is a key of a suite."""


def _trials_form(value: Any) -> str:
    return UNTIL if isinstance(value, Mapping | TrialsUntil) else NUMBER


TrialsSpec = Annotated[
    Annotated[int, Field(ge=1), Tag(NUMBER)] | Annotated[TrialsUntil, Tag(UNTIL)], Discriminator(_trials_form)
]
"""A number of trials, or a rule that ends them."""


def _list_formats(schema: dict[str, Any]) -> None:
    schema["enum"] = [*names(), None]


class DatasetSpec(Spec):
    """Where the samples are: in a file, or here as `rows`.

    `format` is that of a file whose conversations are not rows of ours; without it, the first ones tell.

    `fields` maps a field of a sample to the dotted path of its value in a row, which every row has unless the name of
    the field ends with `?`. `policy`, text or a file, is that of the rows without one. `version` is the only content
    that the file may have, as `viva dataset keep` names it.
    """

    path: str | None = None
    rows: list[dict[str, Any]] | None = None
    format: str | None = Field(default=None, json_schema_extra=_list_formats)
    fields: dict[str, str] = Field(default_factory=dict)
    policy: str | None = None
    policy_path: str | None = None
    version: str | None = None

    @field_validator("format")
    @classmethod
    def _check_format(cls, name: str | None) -> str | None:
        if name is not None and name not in names():
            raise ValueError(no_format(name))
        if name is not None and format_named(name).read is None:
            raise ValueError(f"the format '{name}' is write-only")
        return name

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.path is None) == (self.rows is None):
            raise ValueError("needs either path or rows")
        if self.format is not None and self.path is None:
            raise ValueError("has a format, which needs a file: give its path instead of rows")
        if self.version is not None and self.path is None:
            raise ValueError("has a version, which needs a file: give its path instead of rows")
        if self.version is not None and not VERSION.fullmatch(self.version):
            raise ValueError(
                f"expected v and 16 digits or letters, as viva dataset keep prints it; got '{self.version}'"
            )
        if self.policy is not None and self.policy_path is not None:
            raise ValueError("use policy or policy_path, not both")
        return self

    @property
    def place(self) -> str:
        """Where the samples are, in words."""
        return "the rows of the suite" if self.path is None else f"'{self.path}'"


class AgreementSpec(Spec):
    """How well one grader predicts another; a pass counts as yes, or with a `threshold` any score from there on."""

    predictor: str
    truth: str
    threshold: PassingThreshold = None

    @model_validator(mode="after")
    def _two_graders(self) -> Self:
        if self.predictor == self.truth:
            raise ValueError(f"compares '{self.truth}' with itself, which always agrees; name two graders")
        return self


class SuiteSpec(Spec):
    """A suite: what to ask, which targets, how to grade, and when the run passes.

    A `recording` answers the tools of the targets, and the conversations are compared with it.
    """

    name: str = Field(min_length=1)
    description: str | None = None
    dataset: DatasetSpec
    driver: Literal["scripted", "replay", "penelope"] = "scripted"
    tester: TesterSpec | None = None
    target: AnyTargetSpec | None = None
    targets: list[AnyTargetSpec] | None = Field(default=None, min_length=1)
    recording: RecordingSpec | None = None
    graders: dict[str, AnyGraderSpec] = Field(default_factory=dict, min_length=1)
    reward: AnyRewardSpec | None = None
    gate: AnyGateSpec | None = None
    agreement: list[AgreementSpec] = Field(default_factory=lambda: list[AgreementSpec]())
    trials: TrialsSpec = 1
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
        if self.target is not None and self.targets is not None:
            raise ValueError("has a target and targets; put all of them into the list of targets")
        if self.driver != "replay" and not self.all_targets:
            raise ValueError("needs a target: the system under test (or driver: replay, for recorded conversations)")
        if self.driver == "replay" and self.all_targets:
            raise ValueError("driver: replay reads recorded conversations and calls no target; remove the target")
        if self.driver != "penelope" and self.tester is not None:
            raise ValueError("a tester is only for driver: penelope; name that driver, or remove the tester")
        if "reward" in self.graders:
            raise ValueError("'reward' is the name of the reward of a sample; give the grader another name")
        return self

    @property
    def all_targets(self) -> Mapping[KeyPath, AnyTargetSpec]:
        """Every target by its place in the suite: that of `target`, or those of `targets`."""
        if self.target is not None:
            return {("target",): self.target}
        return {("targets", i): target for i, target in enumerate(self.targets or ())}
