"""Assertions: what can be expected of a turn, of a conversation, or of its state at the end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, TypeVar, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    StrictBool,
    StrictInt,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from vivavoce.comparing.json_values import same_json
from vivavoce.comparing.numbers import Locale, show_number, width_of
from vivavoce.comparing.text import FoldedText, GuardedText, encoding_note, is_blank
from vivavoce.errors import GraderFault, UsageError
from vivavoce.grading.extractors import View
from vivavoce.grading.texts import (
    Answer,
    Distance,
    Take,
    differs_as_json,
    lacks_number,
    may_be_near,
    may_say,
    misfits,
    mismatches,
    misses,
    says,
)
from vivavoce.messages import HumanMessage, ToolCall
from vivavoce.metrics.exact.arguments import at_path, show
from vivavoce.metrics.rules.sameness import may_match, text_in_fence
from vivavoce.models.json_schema import check_test_schema
from vivavoce.plugins import lazy
from vivavoce.records.agents import Agents
from vivavoce.records.run import Severity
from vivavoce.records.score import Score, turn_label
from vivavoce.records.trajectory import CallRecord, answer_of_turn, assistant_texts, call_records, group_by_message
from vivavoce.safe_regex import check_expression
from vivavoce.work_time import counted_work

T = TypeVar("T")
_SHOWN = 5
"""Differences that are named."""
_QUOTED = 50
"""Values of an assertion that its wording quotes."""


@dataclass
class Scene:
    """The turns that an assertion is about, of which the first has the index `first`, and what was said in them.

    `results` are what metrics say about them, by the `id` of the assertion that asks.
    """

    view: View
    first: int = 0
    results: dict[int, Score] = field(default_factory=dict[int, Score])

    @cached_property
    def texts(self) -> list[str]:
        """What the assistant says, message by message."""
        return assistant_texts(self.view.messages)

    @cached_property
    def said(self) -> str:
        """All that the assistant says."""
        return "\n".join(self.texts)

    @cached_property
    def folded(self) -> FoldedText:
        """All that the assistant says, to be searched in any case and encoding."""
        return FoldedText(self.said)

    def says(self, wanted: str | float, locale: str | None = None) -> bool:
        """Return whether the assistant says some words, in any case and encoding, or a number."""
        return says(self.folded, wanted, locale)

    @cached_property
    def guarded(self) -> GuardedText:
        """All that the assistant says, to be searched for what must not be there."""
        return GuardedText(self.said)

    def may_say(self, wanted: str | float, locale: str | None = None) -> bool:
        """Return whether the assistant says some words, or may state a number."""
        return may_say(self.guarded, self.said, wanted, locale)

    @property
    def silent(self) -> bool:
        """Whether the assistant says nothing."""
        return is_blank(self.said)

    @property
    def answer(self) -> str:
        """The answer to the last message of the user; empty where the assistant gives none."""
        return answer_of_turn(self.view.messages)

    @cached_property
    def records(self) -> list[CallRecord]:
        """The tool calls, each with its result and its state."""
        return call_records(self.view.messages)

    @cached_property
    def steps(self) -> list[list[CallRecord]]:
        """The tool calls of each message that makes any."""
        return group_by_message(self.records)

    @property
    def tried(self) -> list[list[ToolCall]]:
        """The tool calls of each message that makes any, those that were refused among them."""
        return [[record.call for record in step] for step in self.steps]

    @cached_property
    def calls(self) -> list[ToolCall]:
        """The tool calls."""
        return [record.call for record in self.records]

    @cached_property
    def agents(self) -> Agents:
        """The agents that speak and act."""
        return Agents(self.view.messages)

    def made_by(self, agent: str, call: ToolCall) -> bool:
        """Say whether one of the calls is that of an agent."""
        return self.agents.of_call(call) == (self.agents.find_agent(agent) or agent)

    def may_be_by(self, agent: str, call: ToolCall) -> bool:
        """Return whether one of the calls may be that of an agent: it is, or nobody is named."""
        return self.agents.of_call(call) is None or self.made_by(agent, call)


@dataclass(frozen=True, slots=True)
class Held:
    """Whether an assertion holds, how much of it from 0 to 1, and what was found; empty where nothing was wrong."""

    passed: bool
    value: float
    found: str = ""


def scene_of(view: View, turn: int | None) -> Scene | None:
    """Return what assertions about a turn, or with None about all turns after the history, look at.

    For a turn that was not held it is None.
    """
    if turn is None:
        return Scene(view.own, view.history_turns)
    if turn >= len(view.turns):
        return None
    messages = view.turns[turn]
    start = next((place for place, one in enumerate(messages) if isinstance(one, HumanMessage)), 0)
    return Scene(View([messages[start:]], view.state, view.seconds[turn : turn + 1], view.test, view.trial), turn)


def held_unless(found: str) -> Held:
    """Return whether an assertion holds that has no part that holds alone: unless something was found."""
    return Held(False, 0.0, found) if found else _HELD


_HELD = Held(True, 1.0)


def listed(value: Any) -> Any:
    """Return a single value as a list of one."""
    return value if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownVariableType]


def _usable(schema: dict[str, Any]) -> dict[str, Any]:
    try:
        check_test_schema(schema)
    except UsageError as error:
        raise ValueError(str(error)) from error
    return schema


Text = Annotated[str, Field(min_length=1)] | StrictInt | Annotated[float, Field(strict=True, allow_inf_nan=False)]
Texts = Annotated[list[Text], Field(min_length=1), BeforeValidator(listed, json_schema_input_type=Text | list[Text])]
Value = Text | StrictBool | dict[str, JsonValue]
"""A text or a number, or what is compared as a JSON value."""


def _exactly(value: Any, check: ValidatorFunctionWrapHandler) -> float:
    """Return a whole number as it is: as a float, a large one would be another number."""
    number = check(value)
    return value if isinstance(value, int) else number


class Assertion(BaseModel, ABC):
    """Fields of every assertion: how much it counts next to the others, and whether a miss only warns."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    weight: float = Field(default=1.0, gt=0, allow_inf_nan=False, strict=True)
    severity: Severity = "fail"

    @property
    def parts(self) -> Sequence[Assertion]:
        """The assertions that it is made of."""
        return ()

    @property
    @abstractmethod
    def wording(self) -> str:
        """What it demands, in words."""

    @abstractmethod
    def held(self, scene: Scene) -> Held:
        """Return whether it holds.

        Raises:
            GraderFault: that cannot be decided.
        """

    def objection(self, scene: Scene) -> str:
        """Say why it cannot be said not to hold; empty where it does not hold.

        Raises:
            GraderFault: that cannot be decided.
        """
        if self.held(scene).passed:
            return f"{self.wording}, which must not be"
        idly = self.holds_idly(scene)
        return f"not: {idly}" if idly else ""

    def holds_idly(self, scene: Scene) -> str:
        """Say that what it demands is so only because the assistant does nothing; empty where it does something."""
        idle = self.idle(scene)
        return f"{self.wording} only because {idle}" if idle else ""

    def idle(self, scene: Scene) -> str:
        """Say that what it is about could not even happen, so that it proves nothing; empty where it could."""
        return "the assistant does nothing at all" if scene.silent and not scene.calls else ""


class OfWords(Assertion, ABC):
    """Fields of an assertion about what the assistant says."""

    def idle(self, scene: Scene) -> str:
        """Say that the assistant says nothing; empty where it says something."""
        return "the assistant says nothing" if scene.silent else ""


class Contains(OfWords):
    """The assistant says each of these texts, in any case and encoding."""

    contains: Texts
    locale: Locale | None = None

    @property
    def wording(self) -> str:
        """What it demands, in words."""
        return f"contains {_quoted(self.contains)}"

    def held(self, scene: Scene) -> Held:
        """Look for each text in all that is said."""
        missing = _where(self.contains, lambda text: not scene.says(text, self.locale))
        return held_unless("; ".join(self._lacks(scene, text) for text in missing[:_SHOWN]) + _more(missing))

    def objection(self, scene: Scene) -> str:
        """Say that it holds, or that it may: a number may be stated in digits that nobody can read."""
        reason = super().objection(scene)
        if reason or _where(self.contains, lambda text: not scene.may_say(text, self.locale)):
            return reason
        return f"may contain {_quoted(self.contains)}, which must not be"

    def _lacks(self, scene: Scene, text: str | float) -> str:
        if not isinstance(text, str):
            return lacks_number(scene.said, text, self.locale)
        return f"does not contain {text!r}"


class NotContains(OfWords):
    """The assistant says none of these texts, in any case and encoding."""

    not_contains: Texts
    locale: Locale | None = None

    @property
    def wording(self) -> str:
        """What it demands, in words."""
        return f"does not contain {_quoted(self.not_contains)}"

    def held(self, scene: Scene) -> Held:
        """Look for each text in all that is said; a number that may be stated counts, too."""
        contained = _where(self.not_contains, lambda text: scene.says(text, self.locale))
        if contained:
            quotes = ", ".join(_quote_from(scene.said, text) for text in contained[:_SHOWN])
            return held_unless(f"contains {quotes}{_more(contained)}")
        possible = _where(self.not_contains, lambda text: scene.may_say(text, self.locale))
        return held_unless(f"may contain {_quoted(possible)}" if possible else self.holds_idly(scene))

    def objection(self, scene: Scene) -> str:
        """Say that none of them is there for sure: to demand a text is to demand what `contains` does."""
        contained = _where(self.not_contains, lambda text: scene.says(text, self.locale))
        if contained:
            return ""
        idly = self.holds_idly(scene)
        return f"not: {idly}" if idly else f"{self.wording}, which must not be"


class Regex(OfWords):
    """A regular expression matches somewhere in what the assistant says."""

    regex: Annotated[str, Field(min_length=1), AfterValidator(check_expression)]

    @property
    def wording(self) -> str:
        """What it demands, in words."""
        return f"matches /{self.regex}/"

    def held(self, scene: Scene) -> Held:
        """Search all that is said."""
        return held_unless(mismatches(scene.said, self.regex))

    def objection(self, scene: Scene) -> str:
        """Say that it holds, or that it may: markup and special characters hide nothing."""
        reason = super().objection(scene)
        if reason or not may_match(scene.said, self.regex):
            return reason
        return f"{self.wording} in plain characters, which must not be"


class OfAnswer(OfWords, ABC):
    """Fields of an assertion about the answer: the last words of the assistant after the last message of the user."""

    def idle(self, scene: Scene) -> str:
        """Return that there is no answer; empty where there is one."""
        return "the assistant gives no answer" if is_blank(scene.answer) else ""


class Equals(OfAnswer):
    """The answer is this text or number in any encoding, except for white space at its ends, or JSON of this value."""

    equals: Value | list[JsonValue]
    locale: Locale | None = None

    @property
    def wording(self) -> str:
        """What it demands, in words."""
        return f"equals {self.equals!r}" if isinstance(self.equals, str) else f"equals {show(self.equals)}"

    def held(self, scene: Scene) -> Held:
        """Compare the answer."""
        return held_unless(_differs(scene.answer, self.equals, self.locale))

    def objection(self, scene: Scene) -> str:
        """Say that it holds, or that it may."""
        reason = super().objection(scene)
        return reason or _may_be_one_of(scene.answer, [self.equals], self.locale)


def _list_of_values(value: object) -> object:
    if not isinstance(value, list):
        raise ValueError("must be a list such as [yes, no]; write {equals: …} for a single value")
    return cast("object", value)


class OneOf(OfAnswer):
    """The answer is one of these values, each compared as `equals` compares it."""

    one_of: Annotated[list[Value], Field(min_length=1), BeforeValidator(_list_of_values)]
    locale: Locale | None = None

    @property
    def wording(self) -> str:
        """What it demands, in words."""
        return f"is one of {_quoted(self.one_of)}"

    def held(self, scene: Scene) -> Held:
        """Compare the answer with each."""
        passed = _where(self.one_of, Answer(scene.answer, self.locale).is_value)
        return held_unless("" if passed else f"is none of {_quoted(self.one_of)}")

    def objection(self, scene: Scene) -> str:
        """Say that it holds, or that it may."""
        reason = super().objection(scene)
        return reason or _may_be_one_of(scene.answer, self.one_of, self.locale)


class Numeric(OfAnswer):
    """The last number of the answer, or its first, is this one within a tolerance, absolute or as a share."""

    numeric: Annotated[float, Field(allow_inf_nan=False, strict=True), WrapValidator(_exactly)]
    tolerance: Distance = 0.0
    relative: Distance = 0.0
    take: Take = "last"
    locale: Locale | None = None

    @property
    def wording(self) -> str:
        """What it demands, in words."""
        width = width_of(self.numeric, self.tolerance, self.relative)
        return f"gives {show_number(self.numeric)}" + (f" ± {show_number(width)}" if width else "")

    def held(self, scene: Scene) -> Held:
        """Compare a number of the answer."""
        complaint = misses(scene.answer, self.numeric, self.tolerance, self.relative, self.take, self.locale)
        return held_unless(complaint)

    def objection(self, scene: Scene) -> str:
        """Say that it holds, or that any number of the answer may be this one."""
        reason = super().objection(scene)
        width = width_of(self.numeric, self.tolerance, self.relative)
        if reason or not may_be_near(scene.answer, self.numeric, width, self.locale):
            return reason
        return f"may give {show_number(self.numeric)}, which must not be"


class JsonSchema(OfAnswer):
    """The answer is JSON that fits a JSON schema."""

    json_schema: Annotated[dict[str, Any], AfterValidator(_usable)]

    @property
    def wording(self) -> str:
        """What it demands, in words."""
        return f"is JSON of the schema {show(self.json_schema)}"

    def held(self, scene: Scene) -> Held:
        """Check the answer."""
        return held_unless(misfits(scene.answer, self.json_schema))

    def objection(self, scene: Scene) -> str:
        """Say that it holds, or that it does for the JSON in a code fence."""
        reason = super().objection(scene)
        fenced = text_in_fence(scene.answer)
        if reason or fenced is None or misfits(fenced, self.json_schema):
            return reason
        return f"{self.wording} in a code fence, which must not be"


class Latency(Assertion):
    """The target takes at most this many seconds for the turn, or for each turn of the conversation."""

    latency: Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]

    @property
    def wording(self) -> str:
        """What it demands, in words."""
        return f"takes at most {self.latency:g} s"

    def held(self, scene: Scene) -> Held:
        """Compare the slowest turn; a turn without a time decides nothing.

        Raises:
            GraderFault: no turn was too slow, and one has no time.
        """
        time_of = lazy("vivavoce.metrics.exact.response_time:time_of")
        times: list[float | None] = [
            time_of(scene.view.seconds, number, turn) for number, turn in enumerate(scene.view.turns)
        ]
        slowest = max((seconds for seconds in times if seconds is not None), default=0.0)
        if slowest <= self.latency and None in times:
            turn = turn_label(scene.first + times.index(None))
            message = f"latency cannot be checked: {turn} has no time, neither measured nor by timestamps"
            raise GraderFault(message, kind="missing")
        too_slow = f"takes {slowest:.3g} s, more than {self.latency:g} s" if slowest > self.latency else ""
        return held_unless(too_slow or self.holds_idly(scene))


def _differs(answer: str, wanted: JsonValue, locale: str | None) -> str:
    """Return how an answer differs from a value, in words; empty where it is that value and nothing else."""
    if isinstance(wanted, str | int | float) and not isinstance(wanted, bool):
        return "" if Answer(answer, locale).is_value(wanted) else f"is not {wanted!r}"
    return differs_as_json(answer, wanted)


def _may_be_one_of(answer: str, values: Sequence[JsonValue], locale: str | None) -> str:
    """Return that an answer may be one of some values that it must not be; empty where it is surely none of them."""
    possible = _where(values, Answer(answer, locale).may_be)
    return f"may be {_quoted(possible)}, which must not be" if possible else ""


def _quote_from(said: str, wanted: str | float) -> str:
    """Return words as they are wanted, with how the assistant encodes them if that differs."""
    note = encoding_note(said, wanted) if isinstance(wanted, str) else ""
    return f"{wanted!r} ({note})" if note else repr(wanted)


def _quoted(texts: Sequence[Any]) -> str:
    return ", ".join(map(repr, texts[:_QUOTED])) + _more(texts, _QUOTED)


def _more(items: Sequence[Any], shown: int = _SHOWN) -> str:
    """Return how many items there are besides those that are shown."""
    return f"; and {len(items) - shown} more" if len(items) > shown else ""


def _where(items: Sequence[T], holds: Callable[[T], bool]) -> list[T]:
    """Return the items for which something holds; a long list is work that counts."""
    chosen: list[T] = []
    with counted_work() as check_time:
        for item in items:
            check_time()
            if holds(item):
                chosen.append(item)
    return chosen


class OfState(Assertion, ABC):
    """Fields of an assertion about the state at the end."""

    def idle(self, scene: Scene) -> str:
        """Return nothing: what was done before the turn counts, too."""
        return ""


class State(OfState):
    """At the end, the state has these values at these paths, such as `orders.A-17.status`; the rest is free."""

    state: Annotated[dict[str, JsonValue], Field(min_length=1)]

    @property
    def wording(self) -> str:
        """What it demands, in words."""
        return f"leaves the state with {show(self.state)}"

    def held(self, scene: Scene) -> Held:
        """Look at each path.

        Raises:
            GraderFault: nothing says what the state is.
        """
        state = _state_of(scene)
        found = [list(_at(state, path, wanted)) for path, wanted in self.state.items()]
        right = sum(not differences for differences in found)
        differences = [line for lines in found for line in lines]
        return Held(not differences, right / len(found), _listed(differences))


class FinalState(OfState):
    """At the end, the state is exactly this one."""

    final_state: dict[str, JsonValue]

    @property
    def wording(self) -> str:
        """What it demands, in words."""
        return f"leaves exactly the state {show(self.final_state)}"

    def held(self, scene: Scene) -> Held:
        """Compare the whole state.

        Raises:
            GraderFault: nothing says what the state is.
        """
        differences = list(differing(cast("JsonValue", dict(_state_of(scene))), self.final_state))
        return held_unless(_listed(differences))


def _state_of(scene: Scene) -> Mapping[str, JsonValue]:
    if scene.view.state is None:
        hint = (
            "give the row a state, which a target of kind openai or function changes; "
            "where a recording answers the tools, it is known after the recorded calls alone"
        )
        raise GraderFault(f"the state cannot be checked: the target does not report it; {hint}", kind="missing")
    return scene.view.state


def _at(state: Mapping[str, JsonValue], path: str, wanted: JsonValue) -> Iterator[str]:
    """Yield how the value at a path differs."""
    found = at_path(dict(state), path)
    if found is None:
        yield f"{path}: wanted {show(wanted)}, is not there"
    else:
        yield from differing(found[0], wanted, path)


def differing(actual: JsonValue, wanted: JsonValue, path: str = "") -> Iterator[str]:
    """Yield a line for each place where two values differ: `orders.A-17.status: wanted "refunded", is "sent"`."""
    if same_json(actual, wanted):
        return
    if isinstance(actual, dict) and isinstance(wanted, dict):
        for key in {**wanted, **actual}:
            place = f"{path}.{key}" if path else key
            if key not in actual:
                yield f"{place}: wanted {show(wanted[key])}, is not there"
            elif key not in wanted:
                yield f"{place}: not wanted, is {show(actual[key])}"
            else:
                yield from differing(actual[key], wanted[key], place)
    elif isinstance(actual, list) and isinstance(wanted, list) and len(actual) == len(wanted):
        for number, (one, other) in enumerate(zip(actual, wanted, strict=True)):
            yield from differing(one, other, f"{path}.{number}" if path else str(number))
    else:
        yield f"{path or 'the state'}: wanted {show(wanted)}, is {show(actual)}"


def _listed(differences: list[str]) -> str:
    return "; ".join(differences[:_SHOWN]) + _more(differences)
