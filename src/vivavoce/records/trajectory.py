"""The result of one sample against one target: its messages by turn, its tool calls, and what a tester left.

Pages, assertions, rules, metrics, ledgers, judges' transcripts, and recordings ask here which tool calls happened, how
each ended, and how many of them the record shows. A field of the result decides; the words of the result decide only
where no field states an outcome.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from itertools import groupby
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar, cast, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from vivavoce.comparing.call_outcomes import CallOutcome, words_say_failed
from vivavoce.comparing.negations import act_text
from vivavoce.errors import Blame
from vivavoce.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    SessionMark,
    StoredMessages,
    ToolCall,
    ToolMessage,
    mark_of,
)
from vivavoce.plugins import lazy
from vivavoce.records.score import Evidence, Failure, FindingState, Score, Usage, score_fields, to_number


class Turn(BaseModel):
    """One exchange: the user's message and everything up to the next one.

    `started_at` is seconds since the epoch and `seconds` how long the target took, both None when unknown.
    """

    model_config = ConfigDict(frozen=True)

    index: int
    messages: StoredMessages
    started_at: float | None = None
    seconds: float | None = None
    usage: Usage | None = None
    failure: Failure | None = None

    @property
    def user_message(self) -> HumanMessage:
        """What the user said."""
        return next(message for message in self.messages if isinstance(message, HumanMessage))

    @property
    def mark(self) -> SessionMark | None:
        """Its session, None where the conversation is a single one."""
        return mark_of(self.messages)


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


class Trajectory(BaseModel):
    """The conversation of one attempt: `opening` is what comes before the first user message.

    `state` is what the target remembered at the end (memory blocks by label), if it can tell, or the row's state as the
    target left it. `test` is the record of a tester that led the conversation: how it ended, what was judged,
    what the tester thought.
    """

    model_config = ConfigDict(frozen=True)

    opening: StoredMessages = Field(default_factory=lambda: list[AnyMessage]())
    turns: list[Turn] = Field(default_factory=lambda: list[Turn]())
    session_id: str | None = None
    state: dict[str, Any] | None = None
    test: Test | None = None
    failure: Failure | None = None
    seconds: float | None = None

    def _repr_html_(self) -> str:
        """Return the conversation for a notebook, in which every text is escaped."""
        return cast("str", lazy("vivavoce.report.html.notebook:trajectory_html")(self))

    @property
    def messages(self) -> list[AnyMessage]:
        """All messages in order."""
        return [*self.opening, *(message for turn in self.turns for message in turn.messages)]

    @property
    def usage(self) -> Usage:
        """What the target used in all turns."""
        return sum((turn.usage for turn in self.turns if turn.usage), Usage())


def assistant_texts(messages: Sequence[AnyMessage]) -> list[str]:
    """Return the words of each assistant message, empty without any; one that only calls tools is left out."""
    return [words for m in messages if m.role == "assistant" if (words := m.words) or not m.tool_calls]


def last_turn_of(messages: Sequence[AnyMessage]) -> Sequence[AnyMessage]:
    """Return the messages from the last one of the user on; all of them where the user says nothing."""
    for place in range(len(messages) - 1, -1, -1):
        if messages[place].role == "user":
            return messages[place:]
    return messages


def answer_of_turn(messages: Sequence[AnyMessage]) -> str:
    """Return the answer to the last message of the user: the last words of the assistant after it.

    A message that only calls tools is not an answer, so the words before it in the same turn are. A turn without words
    has an empty answer; an answer to an earlier message of the user never counts.
    """
    texts = assistant_texts(last_turn_of(messages))
    return texts[-1] if texts else ""


def tool_calls(messages: Sequence[AnyMessage]) -> list[ToolCall]:
    """Return every tool call in order, parallel ones in the order the model wrote them."""
    return [call for m in messages if isinstance(m, AIMessage) for call in m.tool_calls or ()]


def tool_results(messages: Sequence[AnyMessage]) -> list[tuple[ToolCall, ToolMessage | None]]:
    """Pair every tool call with the message that answers it; `records.call_states` says how the call ended.

    A result with an id answers the latest call with that id, wherever it is; of several results, the last one counts.
    Where the result or the call has no id, the results are paired in order with the calls of the assistant message that
    they directly follow. A result with the id of another call, or of none, never answers a call with an id.
    """
    calls: list[ToolCall] = []
    results: dict[int, ToolMessage] = {}
    by_id: dict[str, list[int]] = {}
    block = range(0)
    without_call: list[ToolMessage] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            numbers = by_id.get(message.tool_call_id) if message.tool_call_id else None
            if numbers:
                waiting = (number for number in numbers if number not in results)
                results[next(waiting, numbers[-1])] = message
            elif block:
                without_call.append(message)
            continue
        if without_call:
            _pair_in_order(calls, block, without_call, results)
            without_call = []
        own = (message.tool_calls or ()) if isinstance(message, AIMessage) else ()
        block = range(len(calls), len(calls) + len(own))
        calls += own
        in_message: dict[str, list[int]] = {}
        for number, call in zip(block, own, strict=True):
            if call.id:
                in_message.setdefault(call.id, []).append(number)
        by_id |= in_message
    _pair_in_order(calls, block, without_call, results)
    return [(call, results.get(number)) for number, call in enumerate(calls)]


def _pair_in_order(
    calls: Sequence[ToolCall],
    block: Sequence[int],
    without_call: Sequence[ToolMessage],
    results: dict[int, ToolMessage],
) -> None:
    for result in without_call:
        waiting = (number for number in block if number not in results)
        number = next((number for number in waiting if not (result.tool_call_id and calls[number].id)), None)
        if number is not None:
            results[number] = result


CallState = Literal["requested", "refused", "unanswered", "failed", "succeeded"]
"""How far a call got: `requested` at the end of a conversation, `unanswered` where the conversation went on without a
result, `refused` where the user declined it or it was invalid, else how it ended."""
Outcome = Literal["succeeded", "failed"]
"""The outcomes that assertions and rules ask for."""


@dataclass(frozen=True, slots=True)
class CallRecord:
    """A call, the message that answers it, and its state; `message` is the index of the message that makes the call."""

    call: ToolCall
    result: ToolMessage | None
    state: CallState
    message: int

    @property
    def was_made(self) -> bool:
        """Whether the call counts as made; a log may lack the result of a call that was."""
        return self.state != "refused"

    def has_outcome(self, outcome: Outcome | None) -> bool:
        """Return whether the call was made and ended so; None stands for any end, and for none."""
        return self.was_made if outcome is None else self.state == outcome


def outcome_of(result: ToolMessage) -> CallOutcome:
    """Return how the call with this result ended."""
    return result.stated_outcome or ("failed" if words_say_failed(result.text) else "succeeded")


def call_records(messages: Sequence[AnyMessage]) -> list[CallRecord]:
    """Return every call of a conversation in order, with its result and its state."""
    places = [
        place
        for place, message in enumerate(messages)
        if message.role == "assistant" and message.tool_calls
        for _ in message.tool_calls
    ]
    if not places:
        return []
    last_spoken = max((place for place, message in enumerate(messages) if message.role in _SPEAKERS), default=-1)
    return [
        CallRecord(call, result, _state(result, is_last=place == last_spoken), place)
        for place, (call, result) in zip(places, tool_results(messages), strict=True)
    ]


def group_by_message(records: Sequence[CallRecord]) -> list[list[CallRecord]]:
    """Return the calls of each message that makes any; the order of those in one message means nothing."""
    return [list(group) for _, group in groupby(records, key=lambda record: record.message)]


def made_calls(messages: Sequence[AnyMessage]) -> list[ToolCall]:
    """Return the calls of a conversation that were made, in order."""
    return [record.call for record in call_records(messages) if record.was_made]


_SPEAKERS = ("user", "assistant")


def _state(result: ToolMessage | None, *, is_last: bool) -> CallState:
    if result is not None:
        return outcome_of(result)
    return "requested" if is_last else "unanswered"


Source = Literal["canned", "recording", "function", "mcp", "user", "vivavoce"]
"""Who answered: a value in the suite, a recording, code, a server, the user who refused, or we who found a mistake."""

_MOCKED: dict[str, str] = {"canned": "canned", "recording": "recorded"}
_DECISION_WORDS: dict[str, str] = {"approve": "approved", "refuse": "refused"}


def notes_of(
    source: Source,
    seconds: float,
    *,
    approval: str | None,
    passed_over: str | None = None,
    changed_state: bool | None = None,
) -> dict[str, Any]:
    """Return the metadata of a result.

    `seconds` is how long it took, `approval` what the user had said, `passed_over` why what the row says of the tool
    was not the answer, `changed_state` whether it changed the state of the row, None where it gets none.
    """
    notes: dict[str, Any] = {"answered_by": source, "mocked": source in _MOCKED}
    if approval is not None:
        notes["approval"] = approval
    if passed_over is not None:
        notes["passed_over"] = passed_over
    if changed_state is not None:
        notes["changed_state"] = changed_state
    return {**notes, "seconds": round(seconds, 3)}


def error_of(result: ToolMessage) -> str | None:
    """Return what the result of a failed call says of the error: the `error` of a JSON object, or else its text.

    None stands for a call that did not fail.
    """
    if outcome_of(result) != "failed":
        return None
    text = result.text
    try:
        value: Any = json.loads(text) if '"error"' in text else None
    except (ValueError, RecursionError):
        value = None
    error = cast("dict[str, Any]", value).get("error") if isinstance(value, dict) else None
    if not error:
        return text
    return error if isinstance(error, str) else json.dumps(error, ensure_ascii=False, sort_keys=True)


def origin(message: ToolMessage) -> str:
    """Return in a word or two what a reader should know of a result: whether it was made up, and what the user said.

    A result that the row should perhaps have given says that it did not.
    """
    notes = message.metadata or {}
    refused = "refused" if message.stated_outcome == "refused" else None
    words = (_DECISION_WORDS.get(str(notes.get("approval"))) or refused, _MOCKED.get(str(notes.get("answered_by"))))
    passed_over = "not as in the row" if notes.get("passed_over") else None
    return ", ".join(word for word in (*words, passed_over) if word)


CallVisibility = Literal["all", "some", "none"]
"""With `all`, what has no call was not done. With `some` or `none`, a plain statement that it was done counts, too."""

BY_RECORD = "all where its record has any, else none"
"""What holds where neither the target nor its kind says how many calls are shown."""

_BY_KIND: Mapping[str, CallVisibility] = {
    "a2a": "none",
    "letta": "all",
    "letta_code": "all",
    "mcp": "none",
    "terminal": "none",
}
"""Kinds that reply with text alone, and kinds whose server reports each call that it makes.

A function, an object of a framework, a recording, and a reply over HTTP or a WebSocket may have messages with calls or
text alone, so their records decide.
"""

VISIBLE_CALLS = "visible_calls"
"""The attribute of a target, and the key in the metadata of a test, that says it."""


def default_calls(kind: str, *, offers_tools: bool = False) -> CallVisibility | None:
    """Return how many calls the record of a kind of target shows, None where the record decides.

    The calls of an `openai` target are all in its replies, for nobody else answers the tools that it is offered.
    """
    if kind == "openai":
        return "all" if offers_tools else "none"
    return _BY_KIND.get(kind)


def visible_calls(target: object) -> CallVisibility | None:
    """Return what a target declares in `visible_calls`, None where it declares nothing.

    Then the record decides: where it has any call it shows all, and where it has none it shows none.
    """
    return _read(getattr(target, VISIBLE_CALLS, None))


def recorded_calls(metadata: Mapping[str, object]) -> CallVisibility | None:
    """Return the same from the metadata of a test, as the target declared it when the test was held."""
    return _read(metadata.get(VISIBLE_CALLS))


def declare_visible_calls(target: object, calls: CallVisibility | None) -> None:
    """Declare it for a target; None changes nothing."""
    if calls is not None:
        setattr(target, VISIBLE_CALLS, calls)


def _read(declared: object) -> CallVisibility | None:
    for calls in get_args(CallVisibility):
        if declared == calls:
            return calls
    return None
