"""What a row expects, as people write it under `expect`: assertions about its turns, or about the whole conversation.

An assertion is a mapping with one of the keys below, its options and perhaps a `weight`. A list has one entry for each
turn: an assertion, a list of them, or null. A mapping holds for the whole conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, NamedTuple, TypeGuard, TypeVar, cast

from pydantic import BeforeValidator, Discriminator, Field, Tag, TypeAdapter, ValidationError

from vivavoce.comparing.thresholds import mean
from vivavoce.errors import GraderFault, UsageError, did_you_mean
from vivavoce.grading.asked import Asked, Judged, Passes
from vivavoce.grading.assertions import (
    Assertion,
    Contains,
    Equals,
    FinalState,
    Held,
    JsonSchema,
    Latency,
    NotContains,
    Numeric,
    OneOf,
    Regex,
    Scene,
    State,
    held_unless,
    listed,
)
from vivavoce.grading.calls import Calls, NoCall
from vivavoce.metrics.exact.tool_calls import ALWAYS_TRUE_WITHOUT_CALLS
from vivavoce.records.score import shorten
from vivavoce.samples.sample import Sample

T = TypeVar("T")
Part = TypeVar("Part")


class All(Assertion):
    """Every one of these assertions holds."""

    all: list[AnyAssertion] = Field(min_length=1)

    @property
    def parts(self) -> Sequence[Assertion]:
        """The assertions of the list."""
        return self.all

    @property
    def wording(self) -> str:
        """What it demands, in words."""
        return f"all of: {'; '.join(one.wording for one in self.all)}"

    def held(self, scene: Scene) -> Held:
        """Check every one; the value is the mean by weight. A miss decides, whatever cannot be decided.

        Raises:
            GraderFault: one cannot be decided, and no other is missed.
        """
        results = decided(self.all, lambda one: one.held(scene), lambda held: not held.passed)
        found = "; ".join(held.found for _, held in results if held.found)
        undecided = parts_left(self.all, results)
        return Held(all(held.passed for _, held in results), mean_held(results, undecided), found)

    def objection(self, scene: Scene) -> str:
        """Say why none of them can be said not to hold; empty where one does not.

        Raises:
            GraderFault: that cannot be decided.
        """
        results = decided(self.all, lambda one: one.objection(scene), lambda reason: not reason)
        found = [reason for _, reason in results]
        return " and ".join(found) if all(found) else ""


class Either(Assertion):
    """At least one of these assertions holds."""

    any: list[AnyAssertion] = Field(min_length=1)

    @property
    def parts(self) -> Sequence[Assertion]:
        """The assertions of the list."""
        return self.any

    @property
    def wording(self) -> str:
        """What it demands, in words."""
        return f"any of: {'; '.join(one.wording for one in self.any)}"

    def held(self, scene: Scene) -> Held:
        """Check every one; the best decides, also next to one that cannot be decided.

        Raises:
            GraderFault: one cannot be decided, and no other holds.
        """
        results = [held for _, held in decided(self.any, lambda one: one.held(scene), lambda held: held.passed)]
        passed = any(result.passed for result in results)
        found = "" if passed else " and ".join(result.found for result in results)
        return Held(passed, max(result.value for result in results), found)

    def objection(self, scene: Scene) -> str:
        """Say which of them cannot be said not to hold; empty where none holds.

        Raises:
            GraderFault: that cannot be decided.
        """
        found = decided(self.any, lambda one: one.objection(scene), bool)
        return next((reason for _, reason in found if reason), "")


class Not(Assertion):
    """This assertion does not hold."""

    negated: AnyAssertion = Field(alias="not")

    @property
    def parts(self) -> Sequence[Assertion]:
        """The assertion that must not hold."""
        return (self.negated,)

    @property
    def wording(self) -> str:
        """What it demands, in words."""
        return f"not: {self.negated.wording}"

    def held(self, scene: Scene) -> Held:
        """Check it."""
        return held_unless(self.negated.objection(scene))

    def objection(self, scene: Scene) -> str:
        """Say why it cannot be said not to hold; empty where what it forbids is there."""
        return "" if self.negated.held(scene).passed else f"{self.wording}, which must not be"


def decided(parts: Sequence[Part], check: Callable[[Part], T], decides: Callable[[T], bool]) -> list[tuple[Part, T]]:
    """Return each part with what is found of it; one that cannot be decided is left out where another decides.

    Raises:
        GraderFault: one cannot be decided, and no other decides.
    """
    results: list[tuple[Part, T]] = []
    fault: GraderFault | None = None
    for part in parts:
        try:
            results.append((part, check(part)))
        except GraderFault as error:
            fault = fault or error
    if fault is not None and not any(decides(result) for _, result in results):
        raise fault
    return results


def parts_left(parts: Sequence[Part], results: Sequence[tuple[Part, T]]) -> list[Part]:
    """Return the parts that have no result, by identity: assertions may be equal."""
    known = {id(part) for part, _ in results}
    return [part for part in parts if id(part) not in known]


MAX_ASSERTIONS = 10_000
"""Assertions of one row, with those inside others."""

KINDS: Mapping[str, type[Assertion]] = {
    "contains": Contains,
    "not_contains": NotContains,
    "equals": Equals,
    "regex": Regex,
    "numeric": Numeric,
    "one_of": OneOf,
    "json_schema": JsonSchema,
    "state": State,
    "final_state": FinalState,
    "calls": Calls,
    "no_call": NoCall,
    "latency": Latency,
    "judged": Judged,
    "metric": Passes,
    "all": All,
    "any": Either,
    "not": Not,
}
_EXACT = frozenset(kind for kind in KINDS.values() if not issubclass(kind, All | Either | Not | Asked))
_OPTIONS = (
    "weight",
    "severity",
    "tolerance",
    "relative",
    "take",
    "locale",
    "mode",
    "arguments",
    "outcome",
    "threshold",
    "config",
)


def _of_one_kind(value: Any) -> Any:
    """Check that a value is a mapping with one assertion that can hold and can fail."""
    if not isinstance(value, dict):
        raise ValueError("expected a mapping such as {contains: EUR 24.90}" + _such_as(value))
    written: dict[object, object] = value  # pyright: ignore[reportUnknownVariableType]  # a cast is a call, made for each
    kind = _kind_of(written)
    if kind is None or not written.keys() <= _fields(kind):
        raise _malformed([str(key) for key in written])
    mode = written.get("mode", "superset")
    if kind == "calls" and written["calls"] == [] and mode in ALWAYS_TRUE_WITHOUT_CALLS:
        raise ValueError("an empty list of calls cannot fail; write no_call: true where no tool may be called")
    return written


def _malformed(keys: Sequence[str]) -> ValueError:
    """Return what is wrong with a mapping of these keys, which is not an assertion."""
    kinds = [key for key in keys if key in KINDS]
    if len(kinds) > 1:
        return ValueError(f"has two assertions, {kinds[0]} and {kinds[1]}; write a list, or {{all: [...]}}")
    unknown = [key for key in keys if key not in KINDS and key not in _OPTIONS]
    if not kinds and unknown:
        return ValueError(f"no assertion '{unknown[0]}'{did_you_mean(unknown[0], KINDS)}")
    if not kinds:
        return ValueError(f"has no assertion; known: {', '.join(KINDS)}")
    if "model" in keys and issubclass(KINDS[kinds[0]], Asked):
        return ValueError("an assertion cannot name a judge; set it in the grader 'expect'")
    known = _fields(kinds[0])
    wrong = next(key for key in keys if key not in known)
    return ValueError(f"{kinds[0]} has no option '{wrong}'{did_you_mean(wrong, known - {kinds[0]})}")


def _such_as(value: object) -> str:
    return f"; for this text write {{contains: {value}}}" if isinstance(value, str) else f", got {value!r}"


@cache
def _fields(kind: str) -> set[str]:
    return {field.alias or name for name, field in KINDS[kind].model_fields.items()}


def _kind_of(value: Any) -> str | None:
    for key in value:
        if key in KINDS:
            return key
    return None


AnyAssertion = Annotated[
    Annotated[Contains, Tag("contains")]
    | Annotated[NotContains, Tag("not_contains")]
    | Annotated[Equals, Tag("equals")]
    | Annotated[Regex, Tag("regex")]
    | Annotated[Numeric, Tag("numeric")]
    | Annotated[OneOf, Tag("one_of")]
    | Annotated[JsonSchema, Tag("json_schema")]
    | Annotated[State, Tag("state")]
    | Annotated[FinalState, Tag("final_state")]
    | Annotated[Calls, Tag("calls")]
    | Annotated[NoCall, Tag("no_call")]
    | Annotated[Latency, Tag("latency")]
    | Annotated[Judged, Tag("judged")]
    | Annotated[Passes, Tag("metric")]
    | Annotated[All, Tag("all")]
    | Annotated[Either, Tag("any")]
    | Annotated[Not, Tag("not")],
    Discriminator(_kind_of),
    BeforeValidator(_of_one_kind),
]
"""An assertion of any kind, chosen by its key."""

for _kind in (All, Either, Not):
    _kind.model_rebuild()

AtTurn = Annotated[
    Annotated[list[AnyAssertion], Field(min_length=1)],
    BeforeValidator(listed, json_schema_input_type=AnyAssertion | list[AnyAssertion]),
]
ExpectField = AnyAssertion | list[AtTurn | None]
"""What may stand under `expect` of a row."""

_WHOLE: TypeAdapter[Any] = TypeAdapter(AnyAssertion)
_TURNS: TypeAdapter[Any] = TypeAdapter(list[AtTurn | None])


class Expected(NamedTuple):
    """One assertion of a row, about a turn, an index from 0, or with None about the whole conversation."""

    assertion: Assertion
    turn: int | None = None

    @property
    def asked(self) -> Sequence[Asked]:
        """The parts of it that metrics decide."""
        return () if type(self.assertion) in _EXACT else list(_asked(self.assertion))

    @property
    def schemas(self) -> Iterator[Mapping[str, Any]]:
        """The JSON schemas in it."""
        return _schemas(self.assertion)

    @property
    def tools(self) -> Iterator[str]:
        """The names of the tools that it is about."""
        return _tools(self.assertion)


def _tools(assertion: Assertion) -> Iterator[str]:
    if isinstance(assertion, Calls):
        yield from (call.name for call in assertion.calls)
    elif isinstance(assertion, NoCall) and assertion.no_call is not True:
        yield from (one.name for one in assertion.no_call)
    for part in assertion.parts:
        yield from _tools(part)


def _schemas(assertion: Assertion) -> Iterator[Mapping[str, Any]]:
    if isinstance(assertion, JsonSchema):
        yield assertion.json_schema
    for part in assertion.parts:
        yield from _schemas(part)


def _asked(assertion: Assertion) -> Iterator[Asked]:
    if isinstance(assertion, Asked):
        yield assertion
    for part in assertion.parts:
        yield from _asked(part)


def mean_held(parts: Sequence[tuple[Assertion, Held]], undecided: Sequence[Assertion] = ()) -> float:
    """Return the mean value of assertions by weight, the least that it can be where some could not be decided."""
    values = [result.value for _, result in parts] + [0.0] * len(undecided)
    weights = [part.weight for part, _ in parts]
    return float(mean(values, weights + [part.weight for part in undecided] if undecided else weights))


def read_expect(value: Sequence[Any] | Mapping[str, Any]) -> list[Expected]:
    """Read the assertions of a row.

    Raises:
        UsageError: one is unknown, malformed, or cannot fail or hold; the text begins with its path.
    """
    try:
        parsed = (_TURNS if isinstance(value, list) else _WHOLE).validate_python(value)
    except ValidationError as error:
        mistakes: dict[str, str] = {}
        for one in error.errors(include_url=False):
            mistakes.setdefault(_path(value, one["loc"], one["type"]), _rule(one["type"], one["msg"]))
        raise UsageError(*(f"{path}: {rule}" for path, rule in mistakes.items())) from error
    except UsageError as error:
        raise UsageError(*(f"expect: {problem.message}" for problem in error.problems)) from error
    if not isinstance(parsed, list):
        whole = cast("Assertion", parsed)
        _check_number([[whole]])
        _check_demands([[whole]], turns=False)
        return _with_whole_severities([Expected(one) for one in (whole.all if _is_plain_list(whole) else [whole])])
    turns = cast("list[list[Assertion] | None]", parsed)
    _check_number(turns)
    _check_demands(turns, turns=True)
    expected = [Expected(one, turn) for turn, listed in enumerate(turns) for one in listed or ()]
    early = [one for one in expected if one.turn != len(turns) - 1 and _about_state(one.assertion)]
    if early:
        rule = "the state is that at the end; write it at the last turn, or in a mapping such as {all: [...]}"
        raise UsageError(*(f"expect.{one.turn}: {rule}" for one in early))
    if not expected:
        raise UsageError("expect: no turn has an assertion; remove expect, or write an assertion")
    return _with_whole_severities(expected)


def _check_number(turns: Sequence[Sequence[Assertion] | None]) -> None:
    left = [one for listed in turns for one in listed or ()]
    count = 0
    while left:
        count += 1
        left.extend(left.pop().parts)
        if count + len(left) > MAX_ASSERTIONS:
            raise UsageError(f"expect: has more than {MAX_ASSERTIONS:,} assertions")


def _check_demands(listed: Sequence[Sequence[Assertion] | None], *, turns: bool) -> None:
    """Check that a turn, or the whole conversation, is missed by an assistant that only talks about something else.

    Raises:
        UsageError: all that is expected of it is which tools may be called at most.
    """
    rule = (
        "calls with mode: subset holds where no tool is called, so alone it tests nothing; write another assertion "
        "beside it, such as {calls: …} without a mode, or no_call"
    )
    idle = [turn for turn, each in enumerate(listed) if each and all(map(_holds_without_calls, each))]
    if idle:
        raise UsageError(*(f"expect.{turn}: {rule}" if turns else f"expect: {rule}" for turn in idle))


def _holds_without_calls(assertion: Assertion) -> bool:
    if isinstance(assertion, Calls):
        return assertion.mode == "subset" and bool(assertion.calls)
    if isinstance(assertion, Either):
        return any(map(_holds_without_calls, assertion.any))
    return isinstance(assertion, All) and all(map(_holds_without_calls, assertion.all))


def written_in(sample: Sample) -> list[Expected]:
    """Return the assertions of a row as they are written; those of each sample are read once.

    Raises:
        UsageError: as of `read_expect`.
    """
    row_value = sample.expect
    if row_value is None:
        return []
    known, assertions = sample.readings.get("expect", (None, None))
    if known is not row_value:
        assertions = read_expect(row_value)
        sample.readings["expect"] = row_value, assertions
    return cast("list[Expected]", assertions)


def expected_of(sample: Sample) -> list[Expected]:
    """Return the assertions of a row, each with its turn in the whole conversation; those of a history have none.

    Raises:
        UsageError: as of `read_expect`.
    """
    listed = written_in(sample)
    before = sample.history_turns
    return [one if one.turn is None or not before else one._replace(turn=one.turn + before) for one in listed]


def _is_plain_list(whole: Assertion) -> TypeGuard[All]:
    """Return whether an assertion is no more than a list, so that each of its parts counts for itself."""
    return isinstance(whole, All) and whole.weight == 1 and whole.severity == "fail"


def _with_whole_severities(expected: list[Expected]) -> list[Expected]:
    """Return assertions of which no inner part has a severity of its own.

    Raises:
        UsageError: one has, although only the whole holds or is missed.
    """
    for one in expected:
        if any(map(_has_severity, _parts_of(one.assertion))):
            place = "expect" if one.turn is None else f"expect.{one.turn}"
            raise UsageError(f"{place}: severity is not allowed inside all, any or not; write it next to them")
    return expected


def _parts_of(assertion: Assertion) -> Iterator[Assertion]:
    for part in assertion.parts:
        yield part
        yield from _parts_of(part)


def _has_severity(assertion: Assertion) -> bool:
    return "severity" in assertion.model_fields_set


def _about_state(assertion: Assertion) -> bool:
    if type(assertion) in _EXACT:
        return type(assertion) in (State, FinalState)
    return any(map(_about_state, assertion.parts))


def _path(data: object, loc: tuple[str | int, ...], kind: str) -> str:
    """Return the path of a mistake in what was written; the other parts of `loc` are steps of the schema."""
    path, tagged = ["expect"], False
    for part in loc:
        here = cast("dict[str | int, object]", data) if isinstance(data, dict) else dict[str | int, object]()
        items = cast("list[object]", data) if isinstance(data, list) else list[object]()
        if not tagged and part in KINDS and here:  # the kind of the assertion; its field of that name comes next
            tagged = True
            continue
        tagged = False
        if part in here or (isinstance(part, int) and part < len(items)):
            data = here[part] if here else items[int(part)]
            path.append(str(part))
        elif kind == "missing" and part == loc[-1]:
            path.append(str(part))
    return shorten(".".join(path), 200) or ""


def _rule(kind: str, message: str) -> str:
    plain = message.removeprefix("Value error, ").replace("Input should be", "must be")
    return _RULES.get(kind, plain)


_RULES = {
    "too_short": "is empty",
    "string_too_short": "is empty",
    "missing": "is missing",
    "extra_forbidden": "unknown key",
}
