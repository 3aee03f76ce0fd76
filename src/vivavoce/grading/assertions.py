"""Assertions: what can be expected of a turn or of a conversation, each with how it is said and how it is checked."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    PlainValidator,
    StrictFloat,
    StrictInt,
)

from vivavoce.errors import GraderFault, UsageError
from vivavoce.expressions import check_expression
from vivavoce.grading.scene import Held, Scene, held_unless
from vivavoce.grading.texts import Take, differs, lacks, misfits, mismatches, misses
from vivavoce.messages import ToolCall
from vivavoce.metrics.exact.arguments import ArgumentRule, show
from vivavoce.metrics.exact.response_time import time_of
from vivavoce.metrics.exact.tool_calls import TrajectoryMode, match_trajectory
from vivavoce.models.json_schema import mismatch
from vivavoce.records.counting import turn_label
from vivavoce.records.failure import shorten


def listed(value: Any) -> Any:
    """Return a single value as a list of one."""
    return cast("Any", value) if isinstance(value, list) else [value]


def _usable(schema: dict[str, Any]) -> dict[str, Any]:
    try:
        mismatch(None, schema)
    except UsageError as error:
        raise ValueError(str(error)) from error
    return schema


def _call(value: Any) -> Any:
    """Return a call that is only named as one with any arguments."""
    if not isinstance(value, str | Mapping | BaseModel):
        raise ValueError(f"must be the name of a tool, or {{name: …, arguments: {{…}}}}; got {value!r:.60}")
    return {"name": value} if isinstance(value, str) else cast("Any", value)


def _plain_name(name: str) -> str:
    if "*" in name:
        raise ValueError(f"'{name}' is the name of no tool; names with * are for rules: {{metric: rule, config: …}}")
    return name


class WantedCall(BaseModel):
    """A tool call: the name of the tool, and those of its arguments that matter."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(min_length=1), AfterValidator(_plain_name)]
    arguments: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])

    @property
    def call(self) -> ToolCall:
        """It as a call."""
        return ToolCall(name=self.name, args=self.arguments)

    @property
    def wording(self) -> str:
        """It in words."""
        return self.name + (f"({show(self.arguments)})" if self.arguments else "")


Text = Annotated[str, Field(min_length=1)] | StrictInt | StrictFloat
Texts = Annotated[list[Text], Field(min_length=1), BeforeValidator(listed, json_schema_input_type=Text | list[Text])]
Call = Annotated[WantedCall, BeforeValidator(_call, json_schema_input_type=str | WantedCall)]
CallList = Annotated[list[Call], BeforeValidator(listed, json_schema_input_type=Call | list[Call])]
Distance = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]
_SUBSET = ArgumentRule(others="subset")


def _rule(written: Any) -> ArgumentRule:
    return ArgumentRule.read(written, others="subset")


ArgumentsOfCall = Annotated[ArgumentRule, PlainValidator(_rule)]


def _subset() -> ArgumentRule:
    return _SUBSET  # a default that is given as such would be copied deeply for each assertion


class Assertion(BaseModel, ABC):
    """Fields of every assertion: how much it counts beside the others."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    weight: float = Field(default=1.0, gt=0, allow_inf_nan=False)

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

    def kept(self, scene: Scene) -> str:
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
    """The assistant says each of these texts, in any case."""

    contains: Texts

    @property
    def wording(self) -> str:
        """What it demands, in words."""
        return f"contains {_quoted(self.contains)}"

    def held(self, scene: Scene) -> Held:
        """Look for each text in all that is said."""
        return held_unless("; ".join(filter(None, [lacks(scene.said, _written(text)) for text in self.contains])))


class NotContains(OfWords):
    """The assistant says none of these texts, in any case."""

    not_contains: Texts

    @property
    def wording(self) -> str:
        """What it demands, in words."""
        return f"does not contain {_quoted(self.not_contains)}"

    def held(self, scene: Scene) -> Held:
        """Look for each text in all that is said."""
        found = [text for text in self.not_contains if not lacks(scene.said, _written(text))]
        return held_unless(f"contains {_quoted(found)}" if found else self.holds_idly(scene))


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


class Equals(OfWords):
    """The answer is this text, white space at its ends aside."""

    equals: Text

    @property
    def wording(self) -> str:
        """What it demands, in words."""
        return f"equals {self.equals!r}"

    def held(self, scene: Scene) -> Held:
        """Compare the answer."""
        return held_unless(differs(scene.answer, _written(self.equals)))


class OneOf(OfWords):
    """The answer is one of these texts, white space at its ends aside."""

    one_of: Texts

    @property
    def wording(self) -> str:
        """What it demands, in words."""
        return f"is one of {_quoted(self.one_of)}"

    def held(self, scene: Scene) -> Held:
        """Compare the answer with each."""
        passed = any(not differs(scene.answer, _written(text)) for text in self.one_of)
        return held_unless("" if passed else f"is none of {_quoted(self.one_of)}")


class Numeric(OfWords):
    """The last number of the answer, or its first, is this one within a tolerance, absolute or as a share."""

    numeric: Annotated[float, Field(allow_inf_nan=False, strict=True)]
    tolerance: Distance = 0.0
    relative: Distance = 0.0
    take: Take = "last"

    @property
    def wording(self) -> str:
        """What it demands, in words."""
        width = max(self.tolerance, self.relative * abs(self.numeric))
        return f"gives {self.numeric:.12g}" + (f" ± {width:.12g}" if width else "")

    def held(self, scene: Scene) -> Held:
        """Compare a number of the answer."""
        return held_unless(misses(scene.answer, self.numeric, self.tolerance, self.relative, self.take))


class JsonSchema(OfWords):
    """The answer is JSON that fits a JSON schema."""

    json_schema: Annotated[dict[str, Any], AfterValidator(_usable)]

    @property
    def wording(self) -> str:
        """What it demands, in words."""
        return f"is JSON of the schema {show(self.json_schema)}"

    def held(self, scene: Scene) -> Held:
        """Check the answer."""
        return held_unless(misfits(scene.answer, self.json_schema))


class Calls(Assertion):
    """Tools are called: these and perhaps others, or as `mode` says; only the arguments given here count."""

    calls: CallList
    mode: TrajectoryMode = "superset"
    arguments: ArgumentsOfCall = Field(default_factory=_subset)

    @property
    def wording(self) -> str:
        """What it demands, in words."""
        how = "" if self.mode == "superset" else f" ({self.mode})"
        return f"calls {', '.join(one.wording for one in self.calls)}{how}" if self.calls else "calls no tool"

    def held(self, scene: Scene) -> Held:
        """Match the calls."""
        wanted = [one.call for one in self.calls]
        found = match_trajectory(scene.calls, wanted, mode=self.mode, arguments=self.arguments)
        return held_unless("; ".join(found.reasons) or self.holds_idly(scene))


class NoCall(Assertion):
    """None of these tools is called, with the arguments given here if there are any; true stands for any tool."""

    no_call: Annotated[CallList, Field(min_length=1)] | Literal[True]
    arguments: ArgumentsOfCall = Field(default_factory=_subset)

    @property
    def wording(self) -> str:
        """What it demands, in words."""
        if self.no_call is True:
            return "calls no tool"
        return f"does not call {', '.join(one.wording for one in self.no_call)}"

    def held(self, scene: Scene) -> Held:
        """Look for a call of one of them."""
        made = scene.calls if self.no_call is True else [call for call in scene.calls if self._forbids(call)]
        calls = ", ".join(f"{one.name}({_cut(one.function.arguments)})" for one in made)
        return held_unless(f"calls {calls}" if made else self.holds_idly(scene))

    def _forbids(self, call: ToolCall) -> bool:
        return any(self._is(call, one) for one in cast("list[WantedCall]", self.no_call))

    def _is(self, call: ToolCall, forbidden: WantedCall) -> bool:
        """Return whether a call is a forbidden one; where any arguments are, so are those that are no JSON object."""
        if not forbidden.arguments and self.arguments == _SUBSET:
            return call.name == forbidden.name
        return not match_trajectory([call], [forbidden.call], arguments=self.arguments).reasons


class Latency(Assertion):
    """The target takes at most so many seconds for the turn, or for each turn of the conversation."""

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
        times = [time_of(scene.view.seconds, number, turn) for number, turn in enumerate(scene.view.turns)]
        slowest = max((seconds for seconds in times if seconds is not None), default=0.0)
        if slowest <= self.latency and None in times:
            turn = turn_label(scene.first + times.index(None))
            message = f"latency cannot be checked: {turn} has no time, neither measured nor by timestamps"
            raise GraderFault(message, kind="missing")
        too_slow = f"takes {slowest:.3g} s, more than {self.latency:g} s" if slowest > self.latency else ""
        return held_unless(too_slow or self.holds_idly(scene))


def _written(value: str | float) -> str:
    """Return a text; a number as it would be written."""
    return value if isinstance(value, str) else json.dumps(value)


def _quoted(texts: Sequence[Any]) -> str:
    return ", ".join(map(repr, texts))


def _cut(text: str) -> str:
    return shorten(text, 100) or ""
