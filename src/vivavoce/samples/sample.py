"""`Sample`: one row of a suite's dataset, what to ask and what is known about the right answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import Any, Self, cast

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticSerializationError

from vivavoce.conversations.own_rows import check_marks
from vivavoce.messages import (
    AIMessage,
    AnyMessage,
    ExpectedCall,
    HumanMessage,
    Messages,
    SessionMark,
    ToolCall,
    said_by_user,
    split_turns,
    unread_text,
)
from vivavoce.plugins import lazy

JsonScalar = str | int | float | bool | None
_OF_RUBRICS = {"input", "ground_truth", "submission", "conversation"}
_NOT_IN_SCENARIO = {"id", "trial", "tags", "metadata", "labels", "messages"}
UserInput = str | HumanMessage
"""What the user says in one turn: text, or a message of several parts."""


class Sample(BaseModel):
    """What to ask a target, or what was recorded, with everything a grader may need.

    `input` is one message, or a list of messages that are sent one after the other, each waiting for the reply.
    With a list `input` and a list `ground_truth` of the same length, each turn is graded against its own truth; None
    in that list skips the turn. `expect` has assertions about each turn, as a list, or about the whole conversation.
    `history` is what was said before, not by this target: the target gets it with the first input, which continues
    it. Lists for turns are about the turns of `input`.
    `messages` is a recorded conversation, to be replayed. `goal`, `instructions`, `context`, `must` and `must_not` are
    for metrics: what the user wants, and what must and must never happen.
    `policy` is what the assistant has to follow; only judges see it.

    `state` is the world that the target's tools find and change. `tool_results` says what tools answer in this
    conversation, by their names, and `approvals` what the user says to tools that ask before they act.

    Where a tester leads the conversation, it works towards the `goal`, and `input` holds what it says first. It plays a
    user in the situation of `scenario`, of the kind that `persona` names or describes, who knows `facts` and tells them
    when asked, and heeds `restrictions`. An `adversarial` goal is one that the target should withstand.

    Where users come back, each message names its session; `secrets` has, by user name, what nobody else may
    know.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", coerce_numbers_to_str=False)

    id: str
    trial: int | None = Field(default=None, ge=0, description="which repetition a recorded conversation is")
    input: UserInput | list[UserInput] | None = None
    history: Messages | None = None
    messages: Messages | None = None
    ground_truth: JsonScalar | dict[str, Any] | list[Any] = None
    reference_tool_calls: list[ExpectedCall] | list[list[ExpectedCall] | None] | None = None
    expect: list[Any] | dict[str, Any] | None = None
    goal: str | None = None
    instructions: str | None = None
    context: dict[str, Any] | list[Any] | str | None = None
    policy: str | None = None
    must: list[str] = Field(default_factory=list)
    must_not: list[str] = Field(default_factory=list)
    scenario: str | None = None
    persona: str | dict[str, str] | None = None
    facts: dict[str, str] = Field(default_factory=dict)
    restrictions: list[str] = Field(default_factory=list)
    adversarial: bool | None = None
    min_turns: int | None = Field(default=None, ge=0)
    max_turns: int | None = Field(default=None, ge=1)
    rubric: str | None = None
    state: dict[str, Any] | None = None
    tool_results: dict[str, Any] = Field(default_factory=dict)
    approvals: str | list[Any] | dict[str, Any] | None = None
    agent_args: dict[str, Any] = Field(default_factory=dict)
    rubric_vars: dict[str, Any] = Field(default_factory=dict)
    extra_vars: dict[str, Any] = Field(default_factory=dict)
    secrets: dict[str, list[str]] = Field(default_factory=dict)
    labels: dict[str, Any] = Field(default_factory=dict)
    tags: list[str] = Field(default_factory=list)
    metadata: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _can_be_asked(self) -> Self:
        if self.input is None and self.messages is None and self.goal is None:
            rule = "a sample needs 'input' (what to ask), 'messages' (a recorded conversation) or a 'goal' for a tester"
            raise ValueError(rule)
        if self.rubric_vars and (reserved := sorted(_OF_RUBRICS & self.rubric_vars.keys())):
            raise ValueError(f"rubric_vars may not set '{reserved[0]}': every rubric has a variable of that name")
        if self.messages is not None and not self.messages:
            raise ValueError("'messages' is empty: nothing was recorded")
        if isinstance(self.input, list) and not self.input:
            raise ValueError("'input' is an empty list: there is nothing to ask")
        if self.history is not None:
            self._check_history(self.history)
        if self.messages is None:
            self._check_said()
        self._check_lengths()
        check_marks(self.messages or self.user_messages)
        if self.secrets and (unknown := self.secrets.keys() - self.users):
            raise ValueError(f"secrets name the user '{min(unknown)}', but no session has this user")
        return self

    def _check_history(self, history: Sequence[AnyMessage]) -> None:
        roles = [message.role for message in history]
        if "user" not in roles:
            raise ValueError("'history' has no user message; remove it, or add one")
        if roles[-1] == "user":
            raise ValueError("'history' ends with a user message; move it to 'input'")
        if "system" in roles:
            raise ValueError("'history' has a system message; write the system prompt in the suite, under 'target'")
        if any(message.session is not None for message in (*history, *self.user_messages)):
            raise ValueError("use either 'history' or sessions, not both")

    def _check_said(self) -> None:
        for place, message in enumerate(self._inputs):
            if not (message.text.strip() or isinstance(message.content, list)):
                rule = f"; its text is under '{key}': write it as 'content'" if (key := unread_text(message)) else ""
                name = f"input {place}" if isinstance(self.input, list) else "'input'"
                raise ValueError(f"{name} is empty{rule}")

    def _check_lengths(self) -> None:
        calls = self.reference_tool_calls
        if calls is None and not isinstance(self.expect, list) and not isinstance(self.ground_truth, list):
            return
        turn_count = self.turn_count - self.history_turns
        if calls is not None and self.calls_per_turn and len(calls) != turn_count:
            raise ValueError(
                f"{self._turn_text} and reference_tool_calls has {len(calls)} lists of calls; "
                "give one list per turn (null skips a turn), or a single list for the whole conversation"
            )
        if isinstance(self.expect, list) and len(self.expect) != turn_count:
            whole = "a mapping such as {all: [...]} for the whole conversation"
            if self.goal is not None and self.messages is None and not turn_count:
                raise ValueError(f"expect is a list of turns, but a tester decides the number of turns; give {whole}")
            rule = f"give one per turn (null skips a turn), or {whole}"
            raise ValueError(f"{self._turn_text} and expect has {len(self.expect)}; {rule}")
        if not isinstance(self.ground_truth, list):
            return
        if self.messages is None and not isinstance(self.input, list):
            raise ValueError(
                "ground_truth is a list and input is one message: list the inputs or give one ground truth"
            )
        if len(self.ground_truth) != turn_count:
            raise ValueError(
                f"{self._turn_text} and ground_truth has {len(self.ground_truth)}; "
                "give one ground truth per turn (null skips a turn), or a single one for the final answer"
            )

    @property
    def _turn_text(self) -> str:
        what = "input" if self.messages is None else "the recorded conversation"
        turns = self.turn_count - self.history_turns
        return f"{what} has {turns} turn{'s' * (turns != 1)}" + (" after the history" if self.history else "")

    def _repr_html_(self) -> str:
        """Return the sample for a notebook, in which every text is escaped."""
        return cast("str", lazy("vivavoce.report.html.notebook:sample_html")(self))

    @cached_property
    def user_messages(self) -> tuple[HumanMessage, ...]:
        """The user's messages in order, those of the history first; none for a recorded conversation."""
        if self.messages is not None:
            return ()
        earlier = (message for message in self.history or () if isinstance(message, HumanMessage))
        return (*earlier, *self._inputs)

    @property
    def _inputs(self) -> tuple[HumanMessage, ...]:
        """The user's messages that a driver sends."""
        if self.messages is not None or self.input is None:
            return ()
        return tuple(
            _as_user_message(message) for message in (self.input if isinstance(self.input, list) else [self.input])
        )

    @cached_property
    def history_turns(self) -> int:
        """How many of the first turns are the history, which the target under test did not answer."""
        return sum([message.role == "user" for message in self.history]) if self.history else 0

    @cached_property
    def _recorded_turns(self) -> list[list[AnyMessage]]:
        return split_turns(self.messages or [])[1]

    @property
    def turn_count(self) -> int:
        """How many turns the conversation is planned to have, or had, including those of the history."""
        return (
            len(self.user_messages)
            if self.messages is None
            else sum([message.role == "user" for message in self.messages])
        )

    @cached_property
    def marks(self) -> tuple[SessionMark, ...]:
        """The sessions in order, none where the conversation is a single one."""
        messages = self.messages or self.user_messages
        return tuple(
            dict.fromkeys(
                mark for message in messages if message.session is not None and (mark := message.mark) is not None
            )
        )

    @property
    def users(self) -> list[str]:
        """The names of the users, in the order in which they first come."""
        return list(dict.fromkeys(mark.user for mark in self.marks if mark.user is not None))

    @cached_property
    def readings(self) -> dict[str, tuple[object, object]]:
        """What was read of a field, by its name, with the value that it was read of; no part of the record."""
        return {}

    def __getstate__(self) -> dict[Any, Any]:
        """Return the fields; whatever was computed of them is computed again elsewhere."""
        state = super().__getstate__()
        fields = {name: value for name, value in vars(self).items() if name in type(self).model_fields}
        return {**state, "__dict__": fields}

    @property
    def per_turn(self) -> bool:
        """Whether each turn has its own ground truth."""
        return isinstance(self.ground_truth, list)

    @property
    def calls_per_turn(self) -> bool:
        """Whether the reference tool calls are listed turn by turn."""
        return any(not isinstance(call, ToolCall) for call in self.reference_tool_calls or ())

    @property
    def expected_calls(self) -> list[ToolCall]:
        """The expected tool calls of all turns."""
        items = self.reference_tool_calls or ()
        return [call for item in items for call in ([item] if isinstance(item, ToolCall) else item or ())]

    @property
    def called_tools(self) -> Iterator[str]:
        """The name of the tool of each call in a recorded conversation."""
        for message in self.messages or ():
            if isinstance(message, AIMessage):
                yield from (call.name for call in message.tool_calls or ())

    @cached_property
    def scenario_hash(self) -> str:
        """A hash of what is asked and known, the same whatever the id; it pairs samples between runs.

        For a recorded conversation it has the goal, or else what the user said: what the target did
        and how that was judged differ from one recording of a scenario to the next.
        """
        text = self.row_text(_NOT_IN_SCENARIO)
        if self.messages is not None and self.goal is None:
            user_texts = [message.text for message in self.messages if message.role == "user"]
            text = "\x00".join((text, *user_texts))
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    def row_text(self, without: Collection[str] = ("messages",)) -> str:
        """Return the row as JSON text; half a surrogate pair, which JSON cannot represent, is escaped."""
        excluded = set(without)
        try:
            return self.model_dump_json(exclude=excluded, exclude_unset=True)
        except PydanticSerializationError:
            return json.dumps(self.model_dump(exclude=excluded, exclude_unset=True), default=str)

    @cached_property
    def turns(self) -> tuple[Sample, ...]:
        """The sample as a grader of each turn sees it: that input and that truth only."""
        return tuple(self._at(turn) for turn in range(self.turn_count))

    @property
    def whole(self) -> Sample:
        """The sample as a grader of the whole conversation sees it: the wanted tool calls of all turns in one list."""
        if not self.reference_tool_calls or not self.calls_per_turn:
            return self
        return self.model_copy(update={"reference_tool_calls": self.expected_calls})

    def with_messages(self, messages: Sequence[AnyMessage]) -> Sample:
        """Return the sample as graders see it after somebody led the conversation: with what was said in it."""
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return Sample.model_construct(
            self.model_fields_set | {"messages"}, **{**fields, "messages": list(messages), "input": None}
        )

    def _at(self, turn: int) -> Sample:
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        place = turn - self.history_turns
        if isinstance(self.ground_truth, list):
            fields["ground_truth"] = self.ground_truth[place] if place >= 0 else None
        if self.messages is None:
            fields["input"] = self.user_messages[turn].text
        else:
            fields["messages"] = self._recorded_turns[turn]
        calls = self.reference_tool_calls
        if calls and isinstance(calls[0], list | None):
            fields["reference_tool_calls"] = calls[place] if place >= 0 else None
        fields["history"] = None
        return Sample.model_construct(self.model_fields_set, **fields)


def _as_user_message(content: UserInput) -> HumanMessage:
    return content if isinstance(content, HumanMessage) else said_by_user(content)
