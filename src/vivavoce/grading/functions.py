"""Functions that people write: their options, their results, and calls with a time limit.

A result class of another tool is accepted if it has the attributes `score`, `rationale` and `metadata`. A function that
was written for the messages of a Letta server gets such messages.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CodeType, ModuleType
from typing import Annotated, Any, Self, cast, get_type_hints

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from vivavoce.errors import GraderFault, UsageError, did_you_mean
from vivavoce.models.json_schema import check_test_schema
from vivavoce.pacing.loops import call
from vivavoce.records.score import Failure, Finding, Raw, Score, State, Usage
from vivavoce.safe_regex import expression
from vivavoce.user_code import name_of, plain_number
from vivavoce.validation import find_truth_as_number, number_expected

Function = Callable[..., Any]


def _expression(text: str) -> str:
    pattern = expression(text)
    if (impossibility := pattern.impossibility) is not None:
        raise UsageError(f"/{text}/ {impossibility}")
    return pattern.text


def _schema(schema: dict[str, Any]) -> dict[str, Any]:
    check_test_schema(schema)
    return schema


Pattern = Annotated[str, AfterValidator(_expression)]
"""A regular expression, as text."""

JsonSchema = Annotated[dict[str, Any], AfterValidator(_schema)]
"""A JSON schema."""


def option_names(function: Function) -> list[str]:
    """Return the names of a function's options."""
    return [p.name for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]


def read_options(function: Function, values: Mapping[str, Any]) -> dict[str, Any]:
    """Check options against a function and return them with the types of its parameters.

    Raises:
        UsageError: an option is unknown, missing or of the wrong type.
    """
    names, parameters = option_names(function), inspect.signature(function).parameters
    for name in values:
        if name not in names:
            known = did_you_mean(name, names) or "; it takes none"
            if name == "threshold":
                known = "; to decide which scores pass, write threshold: beside function:"
            raise UsageError(f"'{name_of(function)}' has no option '{name}'{known}")
    for name in names:
        if name not in values and parameters[name].default is inspect.Parameter.empty:
            raise UsageError(f"'{name_of(function)}' needs the option '{name}'")
    hints = get_type_hints(function, include_extras=True)
    return {name: _validated(function, name, hints[name], value) for name, value in values.items()}


def _validated(function: Function, name: str, hint: Any, value: Any) -> Any:
    place = f"option '{name}' of '{name_of(function)}'"
    if (path := find_truth_as_number(hint, value)) is not None:
        raise UsageError(f"{place}: {number_expected(path)}")
    try:
        return TypeAdapter(hint).validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise UsageError(f"{place}: {first['msg']}, got {first['input']!r}") from error
    except UsageError as error:
        raise UsageError(f"{place}: {error}") from error


def check_parameters(function: Function, positional: Sequence[str], named: Sequence[str] = ()) -> list[str]:
    """Return which of `named` a user's function takes; it always gets the `positional` ones.

    Raises:
        UsageError: it cannot be called like this.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError as error:
        raise UsageError(f"{name_of(function)}: its parameters cannot be read; wrap it in a function") from error
    known = [p.name for p in parameters if p.name in named]
    rule = f"it is called with {', '.join((*positional, *(f'{name}=' for name in named)))}"
    try:
        inspect.signature(function).bind(*positional, **dict.fromkeys(known))
    except TypeError as error:
        raise UsageError(f"{name_of(function)}: {error}; {rule}") from error
    return known


class GradeResult(BaseModel):
    """The result of one grader for one conversation.

    `score` is between 0 and 1, None unless `state` is `scored`. `passed` is optional: without it, a score of 1 passes.
    With per-turn grading `metadata` has `per_turn_grades`, whose turns count from 0, `turns_passed` and `turns_total`;
    `turns` has them as scores.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    score: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)
    state: State = "scored"
    passed: StrictBool | None = None
    rationale: str | None = None
    submission: str = ""
    ground_truth: Any = None
    findings: tuple[Finding, ...] = ()
    metadata: dict[str, Any] = Field(default_factory=dict[str, Any])
    turns: tuple[Score, ...] | None = None
    failure: Failure | None = None
    usage: Usage | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.score is None) == (self.state == "scored"):
            raise ValueError(f"a result is scored if and only if it has a score; got {self.state} with {self.score}")
        return self

    @classmethod
    def of(cls, score: Score) -> GradeResult:
        """Convert a score to these fields."""
        return cls.model_construct(
            score=score.value,
            state=score.state,
            passed=score.passed,
            rationale=score.reason,
            submission=score.submission,
            ground_truth=score.ground_truth,
            findings=score.findings,
            metadata=metadata_of(score),
            turns=score.turns,
            failure=score.failure,
            usage=score.usage,
        )

    def as_score(self) -> Score:
        """Return it as a score."""
        return Score(
            value=self.score,
            state=self.state,
            passed=self.passed,
            reason=self.rationale,
            findings=self.findings,
            extra=self.metadata,
            failure=self.failure,
            usage=self.usage,
        )


def metadata_of(score: Score) -> dict[str, Any]:
    """Return the metadata of a grade as letta-evals has it, with the grades of its turns."""
    metadata = dict(score.extra)
    known: dict[str, Raw | None] = {"score": score.raw, "passed": score.passed, "confidence": score.confidence}
    if score.raw is not None:
        metadata |= {name: value for name, value in known.items() if value is not None}
    if score.turns is not None:
        counted = [turn for turn in score.turns if turn.state != "skipped"]
        metadata |= {
            "turns_passed": sum(turn.passed is True for turn in counted),
            "turns_total": len(counted),
            "per_turn_grades": [turn_grade(turn) for turn in score.turns],
        }
    return metadata


def turn_grade(turn: Score) -> dict[str, Any]:
    """Return the score of a turn, which counts from 0, as an entry of `per_turn_grades`."""
    entry = {
        "turn": turn.turn,
        "score": turn.value,
        "state": turn.state,
        "rationale": turn.reason,
        "submission": turn.submission,
        "ground_truth": turn.ground_truth,
    }
    if turn.extra:
        entry["metadata"] = turn.extra
    if turn.failure is not None:
        entry["failure"] = turn.failure.model_dump(mode="json", exclude_none=True)
    return entry


TIME_LIMIT = 60.0
"""Default time limit of a user's function, in seconds."""


async def call_user(function: Callable[..., Any], *args: Any, seconds: float = TIME_LIMIT, **kwargs: Any) -> Any:
    """Return what a user's function returns, sync or async.

    Raises:
        GraderFault: it takes longer than the time limit.
    """
    scope = asyncio.timeout(seconds)
    try:
        async with scope:
            return await call(function, *args, **kwargs)
    except TimeoutError as error:
        if not scope.expired():
            raise
        name = name_of(function)
        raise GraderFault(f"{name} took longer than {seconds:g} s", kind="timeout") from error


LETTA = "_reads_letta"
"""The mark of a function that was decorated as one of letta-evals, where that is not installed."""
_MARKS = ("_is_extractor", "_is_reward_composer")
"""The marks of its own decorators."""
_OF_MESSAGES = ("letta_client", "letta_evals.extractors")
"""Packages whose functions and classes read trajectories of Letta's own messages."""
_FIELDS = frozenset(("message_type", "tool_return"))
"""Fields that only Letta's messages have."""


def from_foreign(value: Any) -> Any:
    """Return the result of another tool as a dict with `score`, `rationale` and `metadata`; any other value unchanged.

    Raises:
        GraderFault: the result reports an error, or its score is not a number.
    """
    kind = type(cast("object", value))
    plain = issubclass(kind, type | Mapping) or kind.__module__.partition(".")[0] == "vivavoce"
    if plain or plain_number(value) is not None or not hasattr(value, "score"):
        return value
    name = f"{kind.__module__}.{kind.__qualname__}"
    score = plain_number(value.score)
    if score is None:
        raise GraderFault(f"a grader returned a {name} whose score is {value.score!r}, not a number", kind="format")
    metadata = getattr(value, "metadata", None)
    known = dict(cast("Mapping[str, Any]", metadata)) if isinstance(metadata, Mapping) else {}
    if known.get("error"):  # letta-evals reports errors so, with a score of 0
        raise GraderFault(f"a grader returned a {name} with the error: {known['error']}")
    rationale = getattr(value, "rationale", None)
    return {
        "score": score,
        "rationale": None if rationale is None else str(rationale),
        "metadata": known,
    }


def reads_letta(function: Callable[..., Any]) -> bool:
    """Return whether a user's function was written for the messages of a Letta server.

    It is marked by a decorator of letta-evals, or it uses their classes or their fields.
    """
    marked = any(getattr(function, mark, False) for mark in (LETTA, *_MARKS))
    return marked or next(_foreign_names(inspect.unwrap(function), set()), None) is not None


def _foreign_names(function: Any, seen: set[int]) -> Iterator[str]:
    """Yield the names from other tools that a function uses, itself or in the functions that it calls."""
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType) or id(code) in seen:
        return
    seen.add(id(code))
    for name in _names(code):
        if name in _FIELDS:
            yield name
        used = function.__globals__.get(name)
        origin = used.__name__ if isinstance(used, ModuleType) else str(getattr(used, "__module__", ""))
        if used is None:
            origin = name  # of an import inside the function
        if any(origin == package or origin.startswith(f"{package}.") for package in _OF_MESSAGES):
            yield origin if origin.endswith(name) else f"{origin}.{name}"
        elif callable(used):
            yield from _foreign_names(inspect.unwrap(used), seen)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _names(part)
