"""Who answers the calls of a tool, and how people write it in a suite and in a row."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, Self, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    JsonValue,
    Tag,
    TypeAdapter,
    ValidationError,
    model_serializer,
    model_validator,
)
from pydantic import ValidationError as _ValidationError

from vivavoce.errors import SuiteFault, UsageError, did_you_mean
from vivavoce.messages import AnyMessage, ToolCall, ToolMessage
from vivavoce.metrics.exact.arguments import ArgumentRule
from vivavoce.records.trajectory import Source, notes_of
from vivavoce.validation import StrictInput

if TYPE_CHECKING:  # who only reads a suite loads no target
    from vivavoce.targets.target import Opening, World


if TYPE_CHECKING:  # who only reads a suite loads no target
    from vivavoce.targets.target import World


FAILED = "Error: "
"""The beginning of an answer that tells of a failure."""
_NO_TOOL: tuple[Source, ...] = ("user", "vivavoce")
"""Those who answer a call that was never made."""


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A call of a tool in its conversation; `history` ends with the message that makes the call."""

    name: str
    arguments: Mapping[str, JsonValue]
    history: Sequence[AnyMessage]
    world: World
    opening: Opening


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model reads, who says it, and whether it says that the call failed.

    `passed_over` says why no case of the row was the answer, where the row has some for the tool. `changed_state` says
    whether the call changed the state of the row, or when it was recorded did; None where nothing says so.
    """

    content: str
    source: Source
    failed: bool = False
    passed_over: str | None = None
    changed_state: bool | None = None

    def message(self, call: ToolCall, seconds: float, approval: str | None) -> ToolMessage:
        """Return it as the message of a tool; `seconds` is how long it took, `approval` what the user had said."""
        notes = notes_of(
            self.source,
            seconds,
            approval=approval,
            passed_over=self.passed_over,
            changed_state=self.changed_state,
        )
        fields: dict[str, Any] = {"content": self.content, "metadata": notes}
        if call.id is not None:
            fields["tool_call_id"] = call.id
        if self.source in _NO_TOOL:
            fields["outcome"] = "refused"
        elif self.failed:
            fields["outcome"] = "failed"
        return ToolMessage(**fields)


def failure(text: str, source: Source) -> Answer:
    """Return the answer that tells the model of a failure."""
    return Answer(FAILED + text, source, failed=True)


def result_text(result: JsonValue) -> str:
    """Return a result as the model reads it: a text as it is, anything else as JSON."""
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)


class Handler(Protocol):
    """Answers the calls of one tool."""

    async def answer(self, request: ToolRequest) -> Answer | None:
        """Return the answer, None where it has none for such a call.

        Raises:
            SuiteFault: it should have one, and failed.
        """
        ...


LONGEST_DELAY = 3600.0
"""Seconds that an answer can be held back."""


class Case(StrictInput):
    """What a tool answers: a `result`, or an `error` that the model reads, after `delay` seconds.

    `when` holds the arguments that a call must have, others aside; `arguments` says how they are compared, as for
    expected tool calls. It is given at most `times` in a conversation.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    result: JsonValue = None
    error: Annotated[str, Field(min_length=1)] | None = None
    delay: float = Field(default=0.0, ge=0, le=LONGEST_DELAY)
    when: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    arguments: Literal["exact", "subset", "ignore"] | dict[str, Any] | None = None
    times: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _one_outcome(self) -> Self:
        if ("result" in self.model_fields_set) == (self.error is not None):
            raise ValueError("needs either result or error")
        if self.arguments is not None and not self.when:
            raise ValueError("'arguments' compares the arguments in 'when'; add 'when'")
        try:
            _ = self.rule
        except UsageError as error:
            raise ValueError(str(error)) from error
        return self

    @model_serializer
    def _as_written(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.model_fields_set}

    @cached_property
    def rule(self) -> ArgumentRule:
        """How the arguments of a call are compared with `when`; those that it does not name are free."""
        return ArgumentRule.read(self.arguments or "subset", others="subset")

    @property
    def always(self) -> bool:
        """Whether it fits every call, again and again."""
        return not self.when and self.times is None

    def complaints(self, request: ToolRequest) -> list[str]:
        """Return how a call differs from `when`."""
        return self.rule.complaints(request.arguments, self.when)

    async def wait_and_answer(self) -> Answer:
        """Return the answer, after its delay."""
        await asyncio.sleep(self.delay)
        return Answer(result_text(self.result), "canned") if self.error is None else failure(self.error, "canned")


@dataclass(frozen=True, slots=True)
class Canned:
    """The cases of a tool, of which the first that fits a call answers it; `key` tells them from other cases."""

    cases: Sequence[Case]
    key: str

    async def answer(self, request: ToolRequest) -> Answer | None:
        """Return the answer of the first case that fits, None where none does."""
        for number, case in enumerate(self.cases):
            key = f"{self.key} {number}"
            used_up = case.times is not None and request.world.counts[key] >= case.times
            if not used_up and not case.complaints(request):
                request.world.counts[key] += 1
                return await case.wait_and_answer()
        return None


def check_cases(cases: Sequence[Case]) -> None:
    """Check that each case can be reached.

    Raises:
        ValueError: there is none, or one stands after a case that fits every call.
    """
    if not cases:
        raise ValueError("an empty list of cases answers no call")
    for number, case in enumerate(cases[:-1]):
        if case.always:
            raise ValueError(f"case {number + 1} has no when and matches every call, so later ones never apply")


class FunctionForm(StrictInput):
    """A Python function, `file.py:name`, which may take `timeout` seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    function: str
    timeout: float | None = Field(default=None, gt=0)


class RecordingForm(BaseModel):
    """A file of recordings, from which the results of calls with the same arguments are taken."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    recordings: str


def _reachable(cases: list[Case]) -> list[Case]:
    check_cases(cases)
    return cases


def _as_cases(value: Any) -> Any:
    return [value] if isinstance(value, Mapping) else value


def _kind_of(value: object) -> str:
    if isinstance(value, FunctionForm | RecordingForm):
        return "function" if isinstance(value, FunctionForm) else "recordings"
    fields = cast("Mapping[str, object]", value if isinstance(value, Mapping) else {})
    return next((kind for kind in ("function", "recordings") if kind in fields), "cases")


def _read_form(value: Any) -> Any:
    if isinstance(value, str):
        return {"function": value}
    if not isinstance(value, list | Mapping | BaseModel):
        raise ValueError(f"must be one of {', '.join(_KINDS)}, or a list of cases; got {value!r:.60}")
    keys = [str(key) for key in cast("Mapping[object, object]", value)] if isinstance(value, Mapping) else []
    if keys and not {*_KINDS, "when"} & {*keys}:
        raise ValueError(f"no handler '{keys[0]}'{did_you_mean(keys[0], _KINDS)}")
    return cast("Any", value)


_KINDS = ("result", "error", "function", "recordings")

Cases = Annotated[
    list[Case],
    AfterValidator(_reachable),
    BeforeValidator(_as_cases, json_schema_input_type=Case | list[Case]),
]
"""One result or error, or several for different calls."""

HandlerForm = Annotated[
    Annotated[FunctionForm, Tag("function")]
    | Annotated[RecordingForm, Tag("recordings")]
    | Annotated[Cases, Tag("cases")],
    Discriminator(_kind_of),
    BeforeValidator(_read_form, json_schema_input_type=str | FunctionForm | RecordingForm | Case | list[Case]),
]
"""Who answers the calls of a tool: a function (also its name alone), recordings, or what is written down."""

_CASES: TypeAdapter[list[Case]] = TypeAdapter(Cases)


def read_cases(form: object, where: str) -> list[Case]:
    """Read the answers of a tool that are written down.

    Raises:
        UsageError: with each mistake; the text begins with `where` and the path below it.
    """
    if isinstance(form, Mapping) and (
        handler_keys := {"function", "recordings"} & cast("Mapping[str, Any]", form).keys()
    ):
        raise UsageError(
            f"{where}: {min(handler_keys)} belongs to the handlers of the target; a row gives result or error"
        )
    try:
        return _CASES.validate_python(form)
    except _ValidationError as error:
        single = isinstance(form, Mapping)
        raise UsageError(*_mistakes(error, where, single=single)) from error


def _mistakes(error: _ValidationError, where: str, *, single: bool) -> list[str]:
    rule_by_path: dict[str, str] = {}
    for detail in error.errors(include_url=False):
        steps = detail["loc"][1:] if single else detail["loc"]
        rule = "unknown key" if detail["type"] == "extra_forbidden" else detail["msg"].removeprefix("Value error, ")
        rule_by_path.setdefault(".".join([where, *map(str, steps)]), rule)
    return [f"{path}: {rule}" for path, rule in rule_by_path.items()]


Decision = Literal["approve", "refuse"]
Decisions = Decision | Annotated[list[Decision], Field(min_length=1)]
Approvals = Decisions | dict[str, Decisions]
"""What the user says to every call, to one call after the other, or to the calls of each tool."""

REFUSED = "the user refused this call, it was not made"
_APPROVALS: TypeAdapter[Any] = TypeAdapter(Approvals)


def read_approvals(form: object, asking: Collection[str], where: str = "approvals") -> Approvals:
    """Read what the user says to the tools that ask.

    Raises:
        UsageError: it is something else, or names a tool that does not ask; the text begins with `where`.
    """
    try:
        approvals: Approvals = _APPROVALS.validate_python(form)
    except ValidationError as error:
        rule = "approve, refuse, a list of these for one call after the other, or one of these for each tool"
        raise UsageError(f"{where}: must be {rule}; got {form!r:.60}") from error
    if not asking:
        raise UsageError(f"{where}: no tool needs approval; list such tools under needs_approval of the target")
    for name in approvals if isinstance(approvals, dict) else ():
        if name not in asking:
            raise UsageError(f"{where}.{name}: this tool does not ask for approval{did_you_mean(name, asking)}")
    return approvals


def next_decision(approvals: Approvals | None, name: str, world: World) -> Decision:
    """Return what the user says to the next call of a tool that asks.

    Raises:
        SuiteFault: nothing says it.
    """
    decisions: Decisions | None = approvals.get(name) if isinstance(approvals, Mapping) else approvals
    if decisions is None:
        hint = "write approvals: approve, or refuse, in the target or in the row"
        raise SuiteFault(f"the tool '{name}' needs approval, but no user answer is defined; {hint}", kind="unanswered")
    if isinstance(decisions, str):
        return decisions
    scripted = cast("Sequence[Decision]", decisions)
    key = f"approvals {name if isinstance(approvals, Mapping) else ''}"
    number = world.counts[key]
    if number >= len(scripted):
        message = f"the tool '{name}' asks {number + 1} times, and approvals has {len(scripted)} of the answers"
        raise SuiteFault(message, kind="unanswered")
    world.counts[key] += 1
    return scripted[number]
