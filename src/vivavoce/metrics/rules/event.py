"""`Event`: what a rule is about, as people write it, and the moments of a conversation that fit it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import cached_property
from math import inf, isfinite
from typing import Annotated, Any, Literal, Self, cast

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from vivavoce.comparing.json_values import same_json
from vivavoce.comparing.numbers import show_number
from vivavoce.comparing.text import fold, is_blank
from vivavoce.errors import UsageError, did_you_mean
from vivavoce.messages import AIMessage, AnyMessage, SystemMessage, ToolCall
from vivavoce.metrics.exact.arguments import Arguments, at_path, show
from vivavoce.metrics.rules.possible import PossibleArguments, may_include, names_of, spellings_of
from vivavoce.metrics.rules.sameness import (
    alike,
    is_missing,
    lies_above,
    lies_below,
    may_lie_above,
    may_lie_below,
    may_match,
    may_match_whole,
    mentions,
)
from vivavoce.metrics.transcript import named
from vivavoce.records.agents import Agents, key_of
from vivavoce.records.score import shorten
from vivavoce.records.trajectory import CallRecord, CallState, Outcome, call_records
from vivavoce.safe_regex import expression
from vivavoce.safe_text import quoted
from vivavoce.validation import AS_WRITTEN, StrictInput

Speaker = Literal["user", "assistant", "tool"]
_SHOWN = 80
"""Characters of a message that are shown in a sentence."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A call or the words of a message; `turn` counts from 0, None for what precedes the first user message.

    `message` and `end` are indexes of messages from 0: a call lasts from the message that makes it to that with its
    result. `args` are None where they are not a JSON object. `state` is that of a call. `agent` is
    the one of several that acts, as far as it is named; a moment with a `receiver` is that of a handoff to it.
    """

    turn: int | None
    message: int
    end: int
    speaker: Speaker = "assistant"
    text: str = ""
    call: ToolCall | None = None
    reference: str = ""
    args: Arguments | None = None
    result: str | None = None
    state: CallState | None = None
    agent: str | None = None
    receiver: str | None = None

    @property
    def was_made(self) -> bool:
        """Whether this is more than a call that was only tried."""
        return self.state != "refused"

    def before(self, other: Moment) -> bool:
        """Say whether this was over when the other began."""
        return self.end < other.message

    def turns_from(self, other: Moment) -> int:
        """Return how many turns lie between the two, 0 in the same turn."""
        return abs(self.turn_number - other.turn_number)

    @property
    def turn_number(self) -> int:
        """The turn, where -1 is what precedes the first user message."""
        return -1 if self.turn is None else self.turn

    def argument(self, path: str) -> tuple[JsonValue] | None:
        """Return an argument of the call, alone in a tuple, or a value inside of one; None where it is not there."""
        return None if self.args is None else at_path(dict(self.args), path)

    @property
    def possible_arguments(self) -> PossibleArguments:
        """The arguments of the call in every way to read them, none where they are not a JSON object."""
        return PossibleArguments(self.args or {})

    @property
    def is_unread(self) -> bool:
        """Whether it is a call with arguments that are not a JSON object."""
        return self.call is not None and self.args is None

    @property
    def line(self) -> str:
        """What happened, with all that others wrote in it quoted."""
        if self.receiver is not None:
            return f"handoff to {named(self.receiver)}"
        if self.call is None:
            return f"{self.speaker}: {quoted(shorten(self.text, _SHOWN))}"
        arguments = show(self.args) if self.args is not None else quoted(shorten(self.call.function.arguments, _SHOWN))
        return f"{named(self.call.name)}({arguments})"


def moments(messages: Sequence[AnyMessage]) -> Iterator[Moment]:
    """Yield the moments of a conversation in their order: the words of a message, its calls, and a handoff."""
    agents = Agents(messages)
    over = {one.message: one for one in agents.handoffs() if one.how != "unstated"}
    places = {id(message): place for place, message in enumerate(messages)}
    records = iter(call_records(messages))
    turn, count = None, 0
    for place, message in enumerate(messages):
        if message.role == "user":
            turn = 0 if turn is None else turn + 1
        if not isinstance(message, SystemMessage) and (words := _words(message)):
            yield Moment(turn, place, place, message.role, words, agent=agents.acting[place])
        for _ in (message.tool_calls or ()) if isinstance(message, AIMessage) else ():
            record = next(records)
            end = place if record.result is None else places[id(record.result)]
            yield _of_call(record, turn, end, f"c{count}", agents.acting[place])
            count += 1
        if (handoff := over.get(place)) is not None:
            made = message.tool_calls or [] if isinstance(message, AIMessage) else []
            at = next((number for number, call in enumerate(made) if call is handoff.call), None)
            reference = "" if at is None else f"c{count - len(made) + at}"
            yield Moment(turn, place, place, reference=reference, agent=handoff.sender, receiver=handoff.receiver)


def _of_call(record: CallRecord, turn: int | None, end: int, reference: str, agent: str | None) -> Moment:
    try:
        args = record.call.args
    except (ValueError, RecursionError):  # a model may have written invalid JSON, or nested it too deeply
        args = None
    return Moment(
        turn,
        record.message,
        end,
        call=record.call,
        reference=reference,
        args=args,
        result=None if record.result is None else record.result.text,
        state=record.state,
        agent=agent,
    )


def _words(message: AnyMessage) -> str:
    """Return the words of a message, which for a marked refusal stand elsewhere."""
    words = message.words if isinstance(message, AIMessage) else message.text
    return "" if is_blank(words) else words


_WORDS: Mapping[str, Speaker] = {"user_says": "user", "assistant_says": "assistant", "tool_says": "tool"}
_CONDITIONS = ("regex", "above", "below")


def _expression(value: object) -> object:
    if isinstance(value, str):
        try:
            pattern = expression(value)
        except UsageError as error:
            raise ValueError(str(error)) from error
        if pattern.impossibility is not None:
            raise ValueError(f"/{value}/ {pattern.impossibility}")
        if pattern.found_in(""):
            raise ValueError(
                f"/{value}/ matches an empty text too; write an expression that needs at least one character"
            )
    return value


def _tools(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _pairs(value: object) -> object:
    names = cast("list[object]", value) if isinstance(value, list) else [value]
    return {name: name for name in names} if all(isinstance(name, str) for name in names) else cast("object", value)


def _conditions(value: object, info: ValidationInfo) -> object:
    if value == {} and info.context == AS_WRITTEN:
        raise ValueError("is empty; remove it to allow any arguments, or write {amount: {above: 100}}")
    for name, wanted in cast("Mapping[str, object]", value if isinstance(value, Mapping) else {}).items():
        _check_condition(name, wanted)
    return cast("object", value)


def _check_condition(name: str, wanted: object) -> None:
    if wanted is None:
        raise ValueError(f"{name} needs a value, or one of {', '.join(_CONDITIONS)}")
    if not isinstance(wanted, Mapping):
        return
    conditions = cast("Mapping[str, object]", wanted)
    if not conditions:
        raise ValueError(f"{name} needs a value, or one of {', '.join(_CONDITIONS)}")
    for condition, value in conditions.items():
        if condition not in _CONDITIONS:
            raise ValueError(f"{name}: no condition '{condition}'{did_you_mean(condition, _CONDITIONS)}")
        if condition == "regex":
            if not isinstance(value, str):
                raise ValueError(f"{name}: regex needs a text, got {value!r}")
            _expression(value)
        elif not (_is_number(value) and isfinite(cast("float", value))):
            raise ValueError(f"{name}: {condition} needs a number, got {value!r}")
    above, below = cast("float", conditions.get("above", -inf)), cast("float", conditions.get("below", inf))
    if above >= below:
        raise ValueError(f"{name}: no number is above {show_number(above)} and below {show_number(below)}")


def _is_number(value: object) -> Any:
    return isinstance(value, int | float) and not isinstance(value, bool)


_ONE_OR_MORE: dict[str, Any] = {
    "anyOf": [{"type": "string", "minLength": 1}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]
}
_SAME: dict[str, Any] = {
    "anyOf": [*_ONE_OR_MORE["anyOf"], {"type": "object", "additionalProperties": {"type": "string"}}]
}
Name = Annotated[str, Field(min_length=1)]
Tools = Annotated[list[Name], Field(min_length=1), BeforeValidator(_tools), WithJsonSchema(_ONE_OR_MORE)]
Pairs = Annotated[dict[Name, Name], Field(min_length=1), BeforeValidator(_pairs), WithJsonSchema(_SAME)]
Regex = Annotated[str, BeforeValidator(_expression)]


class Event(StrictInput):
    """Something that happens in a conversation: a call of a tool, or a message of the user, the assistant or a tool.

    `call` is the name of a tool or a list of names, in which `*` stands for any letters. `where` says what arguments
    of the call are, or a value inside of one (`order.id`): a value, or `regex` (the whole text), `above` and `below`.
    `outcome` is that of its result. The words of a message are what an expression finds anywhere in them. `same` names
    arguments with the value that they have in the call that the rule is about, `{order_id: order}` where they are
    called otherwise; a message has the same when it mentions the value. `within_turns` is the largest distance in
    turns, 0 for the same turn. Of several agents, `agent` is the one that calls, speaks or hands over, and `handoff`
    the one that it hands over to, or a list of them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    call: Tools | None = None
    where: Annotated[dict[Name, Any] | None, BeforeValidator(_conditions)] = None
    outcome: Outcome | None = None
    user_says: Regex | None = None
    assistant_says: Regex | None = None
    tool_says: Regex | None = None
    handoff: Tools | None = None
    agent: Name | None = None
    same: Pairs | None = None
    within_turns: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _one_thing(self) -> Self:
        kinds = [name for name in ("call", *_WORDS, "handoff") if getattr(self, name) is not None]
        if len(kinds) != 1:
            found = f", got {' and '.join(kinds)}" if kinds else ""
            raise ValueError(f"an event is one of call, {', '.join(_WORDS)}, handoff{found}")
        if self.agent is not None and kinds[0] in ("user_says", "tool_says"):
            raise ValueError(f"agent cannot be used with {kinds[0]}, which is not an agent event")
        if self.handoff is not None and self.same:
            raise ValueError("same cannot compare a handoff, which has no arguments; use the call that hands over")
        if self.call is None and (self.where or self.outcome):
            other = "has neither arguments nor a result" if self.handoff else "has words only"
            raise ValueError(f"{'where' if self.where else 'outcome'} is for a call; {kinds[0]} {other}")
        if self.call is None and any(name != other for name, other in (self.same or {}).items()):
            raise ValueError("a message has no arguments; in same, use argument names of the rule's call")
        return self

    def may_happen_in(self, moment: Moment) -> bool:
        """Say whether a moment is one of these or may be, which is what a rule against it has to assume.

        A call with arguments that are not a JSON object fits any, NaN may be above 100, and "1042" may be 1042.

        Raises:
            GraderFault: an expression takes too long on it.
        """
        return self._happens(moment, worst=True)

    def happens_in(self, moment: Moment) -> bool:
        """Say whether a moment is one of these, whatever other moments there are.

        Raises:
            GraderFault: an expression takes too long on it.
        """
        return self._happens(moment, worst=False)

    def _happens(self, moment: Moment, *, worst: bool) -> bool:
        if self.agent is not None and not (
            worst if moment.agent is None else key_of(moment.agent) == key_of(self.agent)
        ):
            return False
        if self.handoff is not None:
            return moment.receiver is not None and key_of(moment.receiver) in map(key_of, self.handoff)
        if self.call is None:
            if moment.call is not None or moment.speaker != self.speaker:
                return False
            return may_match(moment.text, self.words) if worst else expression(self.words).found_in(moment.text)
        if moment.call is None or self.outcome not in (None, moment.state):
            return False
        if not worst:
            return self._tool_names.include(moment.call.name) and all(
                (value := moment.argument(name)) is not None and _meets(value[0], wanted)
                for name, wanted in (self.where or {}).items()
            )
        if not self._tool_names.may_include(moment.call.name):
            return False
        return moment.args is None or self._may_have_arguments(moment.possible_arguments)

    def _may_have_arguments(self, arguments: PossibleArguments) -> bool:
        for name, wanted in (self.where or {}).items():
            there = arguments.at(name)
            if not there.is_unread and not any(_may_meet(value, wanted) for value in there.values):
                return False
        return True

    @cached_property
    def _tool_names(self) -> ToolNames:
        return ToolNames(self.call or ())

    def belongs_to(self, moment: Moment, head: Moment) -> bool:
        """Say whether one of these is near enough to that which the rule is about, and has the same arguments."""
        return self.is_near(moment, head) and all(
            self._is_same(moment, head, name, other) for name, other in (self.same or {}).items()
        )

    def is_near(self, moment: Moment, head: Moment) -> bool:
        """Return whether a moment is near enough to that which the rule is about."""
        return self.within_turns is None or moment.turns_from(head) <= self.within_turns

    def _is_same(self, moment: Moment, head: Moment, name: str, other: str) -> bool:
        wanted = head.argument(other)
        if wanted is None or is_missing(wanted[0]):
            return False
        if moment.call is None:
            return mentions(moment.text, wanted[0])
        value = moment.argument(name)
        return value is not None and alike(value[0], wanted[0])

    @property
    def speaker(self) -> Speaker:
        """Who says the words, or hands over."""
        for name, speaker in _WORDS.items():
            if getattr(self, name) is not None:
                return speaker
        return "assistant"

    @property
    def words(self) -> str:
        """The expression for the words."""
        return next(words for name in _WORDS if (words := getattr(self, name)) is not None)

    @property
    def phrase(self) -> str:
        """The event in words, without an article: `call of refund where amount is above 100`."""
        by = f" by {self.agent}" if self.agent else ""
        if self.handoff is not None:
            return f"handoff to {' or '.join(self.handoff)}{by}"
        if self.call is None:
            speaker = self.agent or f"the {self.speaker}"
            return f"message of {speaker} matching /{self.words}/{self.sameness}"
        parts = [f"call of {' or '.join(self.call)}{by}"]
        if self.where:
            parts.append(
                " where " + " and ".join(f"{name} {_said(wanted)}" for name, wanted in (self.where or {}).items())
            )
        return "".join([*parts, self.sameness, f" that {self.outcome}" if self.outcome else ""])

    @property
    def sameness(self) -> str:
        """Which arguments have to be the same, in words; empty where all are free."""
        names = " and ".join(
            name if name == other else f"{name} as {other}" for name, other in (self.same or {}).items()
        )
        return f" with the same {names}" if names else ""

    @property
    def reach(self) -> str:
        """How near it has to be, in words; empty where that is free."""
        if self.within_turns is None:
            return ""
        turns = self.within_turns
        return " in the same turn" if turns == 0 else f" within {turns} turn{'s' * (turns != 1)}"


class ToolNames:
    """Names of tools, in which * stands for any letters."""

    def __init__(self, names: Sequence[str]) -> None:
        patterns = [name for name in names if _MAGIC.search(name)]
        plain = [name for name in names if not _MAGIC.search(name)]
        self._names = frozenset(plain)
        self._spellings = frozenset[str]().union(*map(names_of, plain))
        self._pattern = _any_of(patterns)
        self._folded_pattern = _any_of([fold(pattern) for pattern in patterns])

    def include(self, tool: str) -> bool:
        """Return whether a tool has one of the names."""
        return tool in self._names or (self._pattern is not None and self._pattern.match(tool) is not None)

    def may_include(self, tool: str) -> bool:
        """Return whether a tool may have one of the names, in any spelling."""
        spellings = spellings_of(tool)
        if self.include(tool) or not spellings.isdisjoint(self._spellings):
            return True
        return self._folded_pattern is not None and any(map(self._folded_pattern.match, spellings))


_MAGIC = re.compile(r"[*?\[]")


def _any_of(patterns: Sequence[str]) -> re.Pattern[str] | None:
    return re.compile("|".join(map(translate, patterns))) if patterns else None


def _meets(value: JsonValue, wanted: Any) -> bool:
    if not isinstance(wanted, Mapping):
        return same_json(value, wanted)
    conditions = cast("Mapping[str, Any]", wanted)
    return all(_holds(value, condition, limit) for condition, limit in conditions.items())


def _holds(value: JsonValue, condition: str, limit: Any) -> bool:
    if condition == "regex":
        return isinstance(value, str) and expression(limit).fits(value)
    return lies_above(value, limit) if condition == "above" else lies_below(value, limit)


def _may_meet(value: JsonValue, wanted: Any) -> bool:
    """Say whether a value may be what a rule forbids: as `_meets`, whatever the type, and where nobody can tell."""
    if not isinstance(wanted, Mapping):
        return same_json(value, wanted) or may_include(value, wanted)
    conditions = cast("Mapping[str, Any]", wanted)
    return all(_may_hold(value, condition, limit) for condition, limit in conditions.items())


def _may_hold(value: JsonValue, condition: str, limit: Any) -> bool:
    if condition == "regex":
        return may_match_whole(value, limit)
    return may_lie_above(value, limit) if condition == "above" else may_lie_below(value, limit)


def _said(wanted: Any) -> str:
    if not isinstance(wanted, Mapping):
        return f"is {show(wanted)}"
    parts = cast("Mapping[str, Any]", wanted).items()
    return " and ".join(
        f"matches /{limit}/" if name == "regex" else f"is {name} {show_number(limit)}" for name, limit in parts
    )
