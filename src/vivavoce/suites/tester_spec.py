"""The tester of a suite that leads the conversations."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Self

from pydantic import Discriminator, Field, Tag, model_validator

from vivavoce.metrics.config import Scope as MetricScope
from vivavoce.records.test import Explore
from vivavoce.suites.grader_spec import JudgeSpec
from vivavoce.suites.part import Address, SettingsOfModel, Spec


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
