"""Assertions: what can be expected of a turn or of a conversation, each with how it is said and how it is checked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Annotated, Any

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

from vivavoce.comparing.numbers import Locale, show_number, width_of
from vivavoce.comparing.text import encoding_note, is_blank
from vivavoce.errors import GraderFault, UsageError
from vivavoce.expressions import check_expression
from vivavoce.grading.json_truths import differs_as_json
from vivavoce.grading.scene import Held, Scene, held_unless
from vivavoce.grading.texts import Take, lacks_number, misfits, mismatches, misses
from vivavoce.grading.words import is_said
from vivavoce.metrics.exact.arguments import show
from vivavoce.metrics.exact.response_time import time_of
from vivavoce.models.json_schema import check_schema
from vivavoce.records.counting import turn_label
from vivavoce.records.reason import Severity


def listed(value: Any) -> Any:
    """Return a single value as a list of one."""
    return value if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownVariableType]


def _usable(schema: dict[str, Any]) -> dict[str, Any]:
    try:
        check_schema(schema)
    except UsageError as error:
        raise ValueError(str(error)) from error
    for key, kind in _ONLY_FOR.items():
        if key in schema and not schema.keys() & _TYPED:
            raise ValueError(f"has {key} and no type, so that a mere number fits it; add type: {kind}")
    return schema


_ONLY_FOR = {"properties": "object", "required": "object", "items": "array"}
"""Keys of a JSON schema that say nothing about values of other types."""
_TYPED = frozenset(("type", "$ref", "allOf", "anyOf", "oneOf", "enum", "const"))
"""Keys that may say of which type a value is."""


Text = Annotated[str, Field(min_length=1)] | StrictInt | Annotated[float, Field(strict=True, allow_inf_nan=False)]
Texts = Annotated[list[Text], Field(min_length=1), BeforeValidator(listed, json_schema_input_type=Text | list[Text])]
Value = Text | StrictBool | dict[str, JsonValue]
"""A text or a number, or what is compared as a JSON value."""
Distance = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]


def _exactly(value: Any, check: ValidatorFunctionWrapHandler) -> float:
    """Return a whole number as it is: as a float, a large one would be another number."""
    number = check(value)
    return value if isinstance(value, int) else number


class Assertion(BaseModel, ABC):
    """Fields of every assertion: how much it counts beside the others, and whether a miss only warns."""

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
    """The assistant says each of these texts, in any case and encoding."""

    contains: Texts
    locale: Locale | None = None

    @property
    def wording(self) -> str:
        """What it demands, in words."""
        return f"contains {_quoted(self.contains)}"

    def held(self, scene: Scene) -> Held:
        """Look for each text in all that is said."""
        return held_unless("; ".join(filter(None, (self._lacks(scene, text) for text in self.contains))))

    def kept(self, scene: Scene) -> str:
        """Say that it holds, or that it may: a number may be stated in digits that nobody can read."""
        reason = super().kept(scene)
        if reason or not all(scene.may_say(text, self.locale) for text in self.contains):
            return reason
        return f"may contain {_quoted(self.contains)}, which must not be"

    def _lacks(self, scene: Scene, text: str | float) -> str:
        if not isinstance(text, str):
            return lacks_number(scene.said, text, self.locale)
        return "" if scene.says(text) else f"does not contain {text!r}"


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
        contained = [text for text in self.not_contains if scene.says(text, self.locale)]
        if contained:
            return held_unless(f"contains {', '.join(_quote_from(scene.said, text) for text in contained)}")
        possible = [text for text in self.not_contains if scene.may_say(text, self.locale)]
        return held_unless(f"may contain {_quoted(possible)}" if possible else self.holds_idly(scene))


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


class OneOf(OfAnswer):
    """The answer is one of these values, each compared as `equals` compares it."""

    one_of: Annotated[
        list[Value], Field(min_length=1), BeforeValidator(listed, json_schema_input_type=Value | list[Value])
    ]
    locale: Locale | None = None

    @property
    def wording(self) -> str:
        """What it demands, in words."""
        return f"is one of {_quoted(self.one_of)}"

    def held(self, scene: Scene) -> Held:
        """Compare the answer with each."""
        passed = any(not _differs(scene.answer, value, self.locale) for value in self.one_of)
        return held_unless("" if passed else f"is none of {_quoted(self.one_of)}")


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


def _differs(answer: str, wanted: JsonValue, locale: str | None) -> str:
    """Return how an answer differs from a value, in words; empty where it is that value and nothing else."""
    if isinstance(wanted, str | int | float) and not isinstance(wanted, bool):
        return "" if is_said(answer, wanted, locale) else f"is not {wanted!r}"
    return differs_as_json(answer, wanted)


def _quote_from(said: str, wanted: str | float) -> str:
    """Return words as they are wanted, with how the assistant encodes them if that differs."""
    note = encoding_note(said, wanted) if isinstance(wanted, str) else ""
    return f"{wanted!r} ({note})" if note else repr(wanted)


def _quoted(texts: Sequence[Any]) -> str:
    return ", ".join(map(repr, texts))
