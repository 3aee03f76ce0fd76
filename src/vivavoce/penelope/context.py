"""What a test is about, and how far it is: `TestContext` and `TestState`."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from vivavoce.messages import AnyMessage
from vivavoce.metrics.result import MetricResult
from vivavoce.penelope.persona import Persona
from vivavoce.penelope.turn import Step, Turn
from vivavoce.records.score import Failure, Usage
from vivavoce.records.trajectory import CallVisibility, Explore


class TestContext(BaseModel):
    """What a test is about; the target learns only what the tester says.

    `goal` is what the test is to reach; `instructions` how to lead the conversation; `scenario` the situation that the
    user is in; `restrictions` what the tester must not do. `facts` is what the user knows, by name, and tells only when
    asked. `must` and `must_not` are what the target has to do, and must never do. `policy` is what it has to go by;
    only judges see it. `openings` are sent as they are before the tester improvises. An `adversarial` goal is one that
    the target should withstand. `files` are the names of files that the tester may attach. With `explore: rules` the
    tester tries to get the rules broken once the goal is reached, until all turns are used.
    """

    __test__: ClassVar[bool] = False
    model_config = ConfigDict(frozen=True, extra="forbid")

    goal: str
    instructions: str | None = None
    scenario: str | None = None
    restrictions: tuple[str, ...] = ()
    context: dict[str, Any] | None = None
    policy: str | None = None
    persona: Persona | None = None
    facts: dict[str, str] = Field(default_factory=dict)
    must: tuple[str, ...] = ()
    must_not: tuple[str, ...] = ()
    openings: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    adversarial: bool = False
    max_turns: int = Field(default=20, ge=1)
    min_turns: int = Field(default=0, ge=0)
    trial: int = Field(default=0, ge=0)
    explore: Explore = "goal"

    @property
    def tries_rules(self) -> bool:
        """Whether there are rules to try once the goal is reached; an attack that succeeds ends the test."""
        return self.explore == "rules" and not self.adversarial and bool(self.must or self.must_not)

    @model_validator(mode="after")
    def _room(self) -> Self:
        if self.min_turns > self.max_turns:
            raise ValueError(f"min_turns is {self.min_turns}, which is more than max_turns, {self.max_turns}")
        return self


class GoalProgress(BaseModel):
    """How far the goal is reached, by the goal metric; `value` is from 0, not at all, to 1.

    `inconclusive` marks a judgement that failed: it counts neither as progress nor as the lack of it.
    """

    model_config = ConfigDict(frozen=True)

    goal_achieved: bool
    goal_impossible: bool = False
    confidence: float = 0.0
    reasoning: str = ""
    findings: list[str] = Field(default_factory=list)
    value: float | None = None
    inconclusive: bool = False


class TurnMetrics(BaseModel):
    """The results of metrics after a turn; `turn` counts from 1."""

    model_config = ConfigDict(frozen=True)

    turn: int
    results: dict[str, MetricResult]


@dataclass
class TestState:
    """A test under way.

    `steps` are those of the turn that has not ended, and `objections` how often each check refused a message in it;
    `counts` is how often each event happened in all, and `guidance` what the strategy tells the tester for this turn,
    which is in its `phase`. `covered` are the numbers of the turns that each phase took.

    `opening` are the messages before the first one of the user, where the target gives them. `findings` are the texts
    that analysis found. `left` is why the tester ended the conversation, None while it has not.
    `facts_asked` has, by number of turns, the facts that the target had asked for according to a judge.
    `withheld` are the facts in messages that were not sent, each with the restriction.
    `tester_failures` are the latest failures of its model in a row, and `tester_gone` says that no answer can come.
    """

    __test__: ClassVar[bool] = False

    context: TestContext
    stateless: bool = False
    opening: Sequence[AnyMessage] = ()
    turns: list[Turn] = field(default_factory=list[Turn])
    steps: list[Step] = field(default_factory=list[Step])
    findings: list[str] = field(default_factory=list[str])
    progress: list[GoalProgress] = field(default_factory=list[GoalProgress])
    metrics_history: list[TurnMetrics] = field(default_factory=list[TurnMetrics])
    usage: dict[str, Usage] = field(default_factory=dict[str, Usage])
    counts: Counter[str] = field(default_factory=Counter[str])
    objections: Counter[str] = field(default_factory=Counter[str])
    facts_asked: dict[int, dict[str, bool]] = field(default_factory=dict[int, dict[str, bool]])
    withheld: dict[str, str] = field(default_factory=dict[str, str])
    began: float = field(default_factory=time.monotonic)
    guidance: str = ""
    phase: str = ""
    covered: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    guarded: MetricResult | None = None
    left: str | None = None
    tester_failures: list[Failure] = field(default_factory=list[Failure])
    tester_gone: bool = False
    visible_calls: CallVisibility | None = None

    @property
    def explores_rules(self) -> bool:
        """Whether the goal is reached by the latest judgement, so the other turns test the rules."""
        return self.context.tries_rules and bool(self.progress) and self.progress[-1].goal_achieved

    @property
    def last_reply(self) -> str:
        """What the target said last, empty before it said anything."""
        return self.turns[-1].reply if self.turns else ""

    @property
    def seconds(self) -> float:
        """How long the test has taken so far."""
        return time.monotonic() - self.began

    @property
    def cost(self) -> float | None:
        """What tester, judge and target cost so far in US dollars, None where a price is unknown."""
        return sum(self.usage.values(), Usage()).cost

    def spend(self, role: str, usage: Usage | None) -> None:
        """Count what a call used; roles are `tester`, `judge` and `target`."""
        if usage is not None:
            self.usage[role] = self.usage.get(role, Usage()) + usage
