"""`Test`: what a tester that led a conversation leaves of it, besides the messages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from vivavoce.errors import Blame
from vivavoce.messages import AIMessage, AnyMessage, StoredMessages, ToolMessage
from vivavoce.prohibitions import act_text
from vivavoce.records.counting import to_number
from vivavoce.records.design_names import score_fields
from vivavoce.records.failure import Failure
from vivavoce.records.score import Evidence, FindingState, Score
from vivavoce.records.turn import Turn
from vivavoce.records.usage import Usage

AnyContext = TypeVar("AnyContext")
AnyTurn = TypeVar("AnyTurn", bound="TesterTurn")
AnyScore = TypeVar("AnyScore", bound=Score)
AnyTurnScores = TypeVar("AnyTurnScores", bound=BaseModel)

Refused = Literal["yes", "partly", "no"]
"""Whether a target refuses what it is asked for: all of it, some, nothing."""

SCRIPTED = "scripted_"
"""With this begins the id of a call whose message the test prescribes."""


def meets_goal(reached: bool, is_attack: bool) -> bool:
    """Say whether a target did what it should about a goal: it reached it, or withstood an attack."""
    return reached != is_attack


Explore = Literal["goal", "rules"]
"""What a test is used for once its goal is reached: with `goal` it ends, with `rules` the rules are tried."""


class TestStatus(StrEnum):
    """How a test ended. Only `SUCCESS` means that the goal was achieved, `INCONCLUSIVE` that this is unknown."""

    __test__ = False

    SUCCESS = "success"
    FAILURE = "failure"
    IMPOSSIBLE = "impossible"
    MAX_TURNS = "max_turns"
    TIMEOUT = "timeout"
    ERROR = "error"
    INCONCLUSIVE = "inconclusive"
    ABORTED = "aborted"


class Step(BaseModel):
    """One call of a tool inside a turn; `refused` says that it was not carried out, and the tool message says why."""

    model_config = ConfigDict(frozen=True)

    assistant_message: AIMessage
    tool_message: ToolMessage
    reasoning: str = ""
    refused: bool = False

    @property
    def tool_name(self) -> str:
        """The tool that was called, empty where none was."""
        calls = self.assistant_message.tool_calls
        return calls[0].name if calls else ""

    @cached_property
    def tool_arguments(self) -> dict[str, Any]:
        """What it was called with; empty where that is not a JSON object, see `arguments_valid`."""
        return _arguments(self.assistant_message) or {}

    @property
    def arguments_valid(self) -> bool:
        """Whether the arguments are a JSON object."""
        return _arguments(self.assistant_message) is not None

    @cached_property
    def tool_result(self) -> dict[str, Any]:
        """What the tool returned: `success`, `output` and `error`."""
        try:
            value = json.loads(self.tool_message.text)
        except ValueError:
            value = self.tool_message.text
        if isinstance(value, dict) and "success" in value:
            return {"output": None, "error": None, **cast("dict[str, Any]", value)}
        return {"success": not self.refused, "output": value, "error": None}


class TesterTurn(Step):
    """One exchange with the target as the tester led it, with the steps before it; turns count from 1.

    `assistant_message` is the tester's call of `send_message_to_target`, `tool_message` its result. `evaluation` is the
    reasoning of the goal's judge, where this turn was judged, and `guidance` what the strategy told the tester. `fresh`
    marks the first turn of a new session, and `forgotten` one that was taken back: later messages were sent without it.
    `target_refused` is what a judge said of the target's reply, where a strategy had to know.
    """

    turn_number: int
    timestamp: datetime
    evaluation: str | None = None
    guidance: str | None = None
    retrieval_context: list[str | dict[str, Any]] | None = None
    steps: list[Step] = Field(default_factory=list[Step])
    fresh: bool = False
    forgotten: bool = False
    target_refused: Refused | None = None

    @property
    def scripted(self) -> bool:
        """Whether the test prescribes the message, word for word."""
        return any((call.id or "").startswith(SCRIPTED) for call in self.assistant_message.tool_calls or ())


class KeptTurn(TesterTurn):
    """One exchange as it is kept: `exchange` is None where the trajectory holds it."""

    exchange: Turn | None = None


class Criterion(BaseModel):
    """Something that the target must do (`met` when it did), or must not (`met` when it never did).

    `met` is None where there was no occasion for it.
    """

    model_config = ConfigDict(frozen=True)

    text: str
    must: bool
    met: bool | None = None
    evidence: tuple[Evidence, ...] = ()

    @property
    def sentence(self) -> str:
        """The rule with what it demands: `must: …` or `must not: …`, followed by the act."""
        return f"must: {self.act}" if self.must else f"must not: {self.act}"

    @property
    def act(self) -> str:
        """What has to happen, or what a rule of `must_not` forbids."""
        return self.text if self.must else act_text(self.text)

    @property
    def verdict(self) -> str:
        """Whether the rule was kept, in words; of what must not happen, whether it was done, and in which turn."""
        if not self.must:
            turn = next((quote.turn for quote in self.evidence if quote.verified and quote.turn is not None), None)
            return (
                "not done" if self.met is not False else "done" if turn is None else f"done in turn {to_number(turn)}"
            )
        return {True: "kept", False: "not kept", None: "no occasion"}[self.met]

    @property
    def state(self) -> FindingState:
        """The verdict as the state of a finding."""
        states: Mapping[bool | None, FindingState] = {True: "pass", False: "fail", None: "skip"}
        return states[self.met]


class Phase(BaseModel):
    """A phase of a strategy that explores, and the turns that it took, which count from 1; none was not reached."""

    model_config = ConfigDict(frozen=True)

    name: str
    turns: tuple[int, ...] = ()

    def __str__(self) -> str:
        if not self.turns:
            return f"{self.name}: not reached"
        return f"{self.name}: turn{'s' * (len(self.turns) > 1)} {', '.join(map(str, self.turns))}"


def _score(data: Any) -> Any:
    return score_fields(cast("Mapping[str, Any]", data)) if isinstance(data, Mapping) else data


KeptScore = Annotated[Score, BeforeValidator(_score)]
"""A score, also as older stores hold those of a test: under the names of the design document."""


class TurnScores(BaseModel):
    """The scores of metrics after a turn; `turn` counts from 1."""

    model_config = ConfigDict(frozen=True)

    turn: int
    results: dict[str, KeptScore]


class TestOutcome(BaseModel, Generic[AnyContext, AnyTurn, AnyScore, AnyTurnScores]):
    """What a test came to, in whatever types its context, its turns and its scores have.

    `goal_achieved` is the last judgement of the goal. `target_passed` follows from it: the goal was reached, or, where
    the target should withstand it, was not; and none of `criteria` was broken and no guard failed. It is None where
    that cannot be decided, or no target could have passed. `blame` names who caused a target not to pass, and
    `blame_reason` why. `review` is what a judge said of the tester, where somebody asked.
    `coverage` is what a strategy that explores tried, and in which turns.
    `usage` is by role: tester, judge, target. Both kinds of outcome have `discarded` besides: earlier tries that the
    tester itself spoilt, whose usage is counted too.
    """

    __test__: ClassVar[bool] = False
    model_config = ConfigDict(frozen=True)

    status: TestStatus
    goal_achieved: bool
    target_passed: bool | None = None
    stop_reason: str = ""
    stopped_by: str = ""
    context: AnyContext
    opening: StoredMessages = Field(default_factory=lambda: list[AnyMessage]())
    history: list[AnyTurn] = Field(default_factory=list[AnyTurn])
    unfinished: list[Step] = Field(default_factory=list[Step])
    findings: list[str] = Field(default_factory=list[str])
    evaluation: dict[str, AnyScore] = Field(default_factory=dict[str, AnyScore])
    criteria: list[Criterion] = Field(default_factory=list[Criterion])
    coverage: list[Phase] = Field(default_factory=list[Phase])
    metrics_history: list[AnyTurnScores] = Field(default_factory=list[AnyTurnScores])
    blame: Blame | None = None
    blame_reason: str = ""
    failure: Failure | None = None
    review: AnyScore | None = None
    usage: dict[str, Usage] = Field(default_factory=dict[str, Usage])
    metadata: dict[str, Any] = Field(default_factory=dict[str, Any])
    start_time: datetime | None = None
    end_time: datetime | None = None

    @property
    def is_attack(self) -> bool:
        """Whether the target should withstand the goal."""
        context: object = self.context
        if isinstance(context, Mapping):
            return cast("Mapping[str, object]", context).get("adversarial") is True
        return getattr(context, "adversarial", False) is True

    @property
    def met_goal(self) -> bool | None:
        """Whether the target did what it should about the goal; None where that was not judged, or is undecided.

        An attack that nobody tried was not withstood.
        """
        goal = self.evaluation.get("goal_achievement")
        if goal is None or goal.state != "scored":
            return None
        met = meets_goal(self.goal_achieved, self.is_attack)
        return None if met and self.is_attack and self.target_passed is None else met

    @property
    def outcome(self) -> str:
        """How the test ended and whether the target passed, in the words that every report uses."""
        passed = {True: "target passed", False: "target failed", None: "undecided"}[self.target_passed]
        return f"{self.ending} · {passed}"

    @property
    def ending(self) -> str:
        """How the test ended, in words: the status, or for an attack whether it succeeded."""
        if self.is_attack and self.goal_achieved:
            return "attack succeeded"
        if self.is_attack and self.target_passed:
            return "attack withstood"
        if self.status is TestStatus.IMPOSSIBLE and self.target_passed is None:
            return "goal impossible"
        return str(self.status)

    @property
    def verdicts(self) -> Mapping[str, AnyScore]:
        """What was judged at the end, by name: every metric, and the tester, where there was a review."""
        review = self.review
        return self.evaluation if review is None else {**self.evaluation, review.name or "review": review}


class Test(TestOutcome[dict[str, Any], KeptTurn, KeptScore, TurnScores]):
    """A test as it is kept with the conversation that it led.

    `opening` and the exchanges of `history` are those of the trajectory and are kept here only for `discarded`.
    """

    discarded: list[Test] = Field(default_factory=lambda: list[Test]())


def _arguments(message: AIMessage) -> dict[str, Any] | None:
    try:
        return message.tool_calls[0].args if message.tool_calls else {}
    except (ValueError, RecursionError):
        return None
