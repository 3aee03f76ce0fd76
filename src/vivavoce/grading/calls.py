"""Assertions about the tools that the assistant calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Self, TypeVar, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    PlainValidator,
    model_validator,
)

from vivavoce.comparing.json_values import read_strict_json
from vivavoce.comparing.text import same_text
from vivavoce.grading.assertions import Assertion, Held, Scene, held_unless, listed
from vivavoce.grading.call_mistakes import unknown_path, unknown_tool
from vivavoce.messages import ToolCall, read_expected_call
from vivavoce.metrics.exact.arguments import ArgumentRule, at_path, includes, show
from vivavoce.metrics.exact.tool_calls import ALWAYS_TRUE_WITHOUT_CALLS, TrajectoryMode, match_trajectory
from vivavoce.metrics.exact.tool_calls import Calls as PairedCalls
from vivavoce.metrics.rules.sameness import may_equal, opened
from vivavoce.records.call_states import CallRecord, Outcome
from vivavoce.records.score import shorten

T = TypeVar("T", bound=BaseModel)


def _call(value: Any) -> Any:
    """Return a call that is only named as one with any arguments."""
    if not isinstance(value, str | Mapping | BaseModel):
        raise ValueError(f"must be the name of a tool, or {{name: …, arguments: {{…}}}}; got {value!r:.60}")
    if not isinstance(value, Mapping):
        return {"name": value} if isinstance(value, str) else cast("Any", value)
    call = cast("Mapping[str, Any]", read_expected_call(cast("object", value), "agent"))
    if isinstance(call.get("function"), Mapping):
        call = {**call, **call["function"]}
    arguments = call.get("arguments", {})
    if isinstance(arguments, str):
        arguments = read_strict_json(arguments or "{}")
    kept = {key: item for key, item in call.items() if key not in ("id", "type", "index", "function")}
    return {**kept, "arguments": arguments}


def _plain_name(name: str) -> str:
    if "*" in name:
        raise ValueError(f"'{name}' is the name of no tool; names with * are for rules: {{metric: rule, config: …}}")
    return name


class WantedCall(BaseModel):
    """A tool call: the name of the tool, those of its arguments that matter, and the agent, where there are several."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(min_length=1), AfterValidator(_plain_name)]
    arguments: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    agent: Annotated[str, Field(min_length=1)] | None = None

    @property
    def call(self) -> ToolCall:
        """It as a call."""
        return ToolCall(name=self.name, args=self.arguments)

    @property
    def wording(self) -> str:
        """It in words."""
        given = f"({show(self.arguments)})" if self.arguments else ""
        return f"{self.name}{given}{f' by {self.agent}' if self.agent else ''}"


Call = Annotated[WantedCall, BeforeValidator(_call, json_schema_input_type=str | WantedCall)]
CallList = Annotated[list[Call], BeforeValidator(listed, json_schema_input_type=Call | list[Call])]
_SUBSET = ArgumentRule(others="subset")


def _rule(written: Any) -> ArgumentRule:
    return ArgumentRule.read(written, others="subset")


ArgumentsOfCall = Annotated[ArgumentRule, PlainValidator(_rule)]


def _subset() -> ArgumentRule:
    return _SUBSET  # a default that is given as such would be copied deeply for each assertion


def _check_paths(assertion: T, arguments: ArgumentRule, calls: Sequence[WantedCall]) -> T:
    """Return an assertion whose rule for arguments names only tools and arguments that its calls have."""
    names = [call.name for call in calls]
    mistakes = [unknown_tool(tool, names) for tool in arguments.tools if tool not in names]
    mistakes += map(unknown_path, arguments.unknown_paths((call.name, call.arguments) for call in calls))
    if mistakes:
        raise ValueError("; ".join(mistakes))
    return assertion


class Calls(Assertion):
    """Tools are called: these and perhaps others, or as `mode` says; only the arguments given here count.

    A call that was refused or could not be made is none. With `outcome`, only calls with that outcome count.
    """

    calls: CallList
    mode: TrajectoryMode = "superset"
    arguments: ArgumentsOfCall = Field(default_factory=_subset)
    outcome: Outcome | None = None

    @model_validator(mode="after")
    def _known_arguments(self) -> Self:
        return _check_paths(self, self.arguments, self.calls)

    @model_validator(mode="after")
    def _agents_beside_others(self) -> Self:
        if self.mode != "superset" and any(one.agent for one in self.calls):
            raise ValueError(
                f"a call of an agent may stand among others; leave out mode, or write rules; got {self.mode}"
            )
        return self

    @property
    def wording(self) -> str:
        """What it demands, in words."""
        if not self.calls:
            return "calls no tool"
        how = f" that {self.outcome}" if self.outcome else ""
        how += "" if self.mode == "superset" else f" ({self.mode})"
        return f"calls {', '.join(one.wording for one in self.calls)}{how}"

    def held(self, scene: Scene) -> Held:
        """Match the calls."""
        made = [[record.call for record in step if self._counts(record)] for step in scene.steps]
        found = self._reasons(scene, made)
        if (
            self.mode not in ALWAYS_TRUE_WITHOUT_CALLS and self.outcome is None
        ):  # what was only tried is more than was wanted
            found = self._reasons(scene, scene.tried) or (found if self.mode != "subset" else ())
        elif found:
            found = [*found, *self._left_out(scene)]
        return held_unless("; ".join(found) or self.holds_idly(scene))

    def _may_have_been_made(self, scene: Scene, wanted: WantedCall) -> bool:
        made = _made_by(scene, wanted.agent, scene.calls)
        return any(_may_be(call, wanted, self.arguments) for call in made)

    def objection(self, scene: Scene) -> str:
        """Say that the calls were made, or may have been: also one that is written in another way."""
        if reason := self._objection_as_written(scene):
            return reason
        if len(self.calls) != 1 or self.mode not in ALWAYS_TRUE_WITHOUT_CALLS or self.outcome is not None:
            return ""
        if not self._may_have_been_made(scene, self.calls[0]):
            return ""
        return f"{self.wording}, perhaps written in another way, which must not be"

    def _objection_as_written(self, scene: Scene) -> str:
        """Say that the calls were made, or which may be one of them: it was only tried, or its arguments are broken."""
        reason = super().objection(scene)
        if reason or self.mode not in ALWAYS_TRUE_WITHOUT_CALLS or self.outcome is not None:
            return reason
        if self.mode == "in_order":
            doubtful = [call for call in scene.calls if call.name in {one.name for one in self.calls} and _broken(call)]
            if not doubtful and self._reasons(scene, scene.tried):
                return ""
        else:
            unmatched = [one for agent, each in self._by_agent() for one in self._unmatched(scene, agent, each)]
            missing = Counter(one.name for one in unmatched)
            doubtful = [call for call in scene.calls if call.name in missing and _broken(call)]
            if missing - Counter(call.name for call in doubtful):
                return ""
        tried = ", ".join(map(_shown, doubtful)) or "it was only tried"
        return f"{self.wording}, which must not be: {tried}"

    def _by_agent(self) -> list[tuple[str | None, list[WantedCall]]]:
        """Return the calls that are wanted of each agent, and of whichever; one group where none are."""
        found: dict[str | None, list[WantedCall]] = {}
        for one in self.calls:
            found.setdefault(one.agent, []).append(one)
        return list(found.items()) or [(None, [])]

    def _unmatched(self, scene: Scene, agent: str | None, wanted: Sequence[WantedCall]) -> list[WantedCall]:
        made = _made_by(scene, agent, scene.calls)
        calls = PairedCalls(made, [one.call for one in wanted], self.arguments)
        paired = {expected for expected, _ in calls.pairs(whole=True)}
        return [one for place, one in enumerate(wanted) if place not in paired]

    def _reasons(self, scene: Scene, made: Sequence[Sequence[ToolCall]]) -> Sequence[str]:
        found: list[str] = []
        for agent, wanted in self._by_agent():
            calls, own = [one.call for one in wanted], [_made_by(scene, agent, step) for step in made]
            reasons = match_trajectory(own, calls, mode=self.mode, arguments=self.arguments).reasons
            found += [f"{agent}: {reason}" if agent else reason for reason in reasons]
        return found

    def _counts(self, record: CallRecord) -> bool:
        return record.has_outcome(self.outcome)

    def _left_out(self, scene: Scene) -> Iterator[str]:
        """Yield for each call of a wanted tool that does not count why it does not."""
        names = {one.name for one in self.calls}
        for record in scene.records:
            if record.call.name in names and not self._counts(record):
                yield f"{_shown(record.call)} does not count: {_why(record)}"


class NoCall(Assertion):
    """None of these tools is called, with the arguments given here if there are any; true stands for any tool."""

    no_call: Annotated[CallList, Field(min_length=1)] | Literal[True]
    arguments: ArgumentsOfCall = Field(default_factory=_subset)

    @model_validator(mode="after")
    def _known_arguments(self) -> Self:
        return _check_paths(self, self.arguments, [] if self.no_call is True else self.no_call)

    @property
    def wording(self) -> str:
        """What it demands, in words."""
        if self.no_call is True:
            return "calls no tool"
        return f"does not call {', '.join(one.wording for one in self.no_call)}"

    def held(self, scene: Scene) -> Held:
        """Look for a call of one of them."""
        made = scene.calls if self.no_call is True else [call for call in scene.calls if self._forbids(scene, call)]
        return held_unless(f"calls {', '.join(map(_shown, made))}" if made else self.holds_idly(scene))

    def _forbids(self, scene: Scene, call: ToolCall) -> bool:
        forbidden = cast("list[WantedCall]", self.no_call)
        return any(
            _may_be(call, one, self.arguments) and (not one.agent or scene.made_by(one.agent, call))
            for one in forbidden
        )


def _may_be(call: ToolCall, forbidden: WantedCall, arguments: Any) -> bool:
    """Say whether a call may be a forbidden one, as one with arguments that are not a JSON object may be."""
    if not same_text(call.name, forbidden.name, ignore_case=True):
        return False
    call = call.model_copy(update={"function": call.function.model_copy(update={"name": forbidden.name})})
    if _broken(call) or not match_trajectory([call], [forbidden.call], arguments=arguments).reasons:
        return True
    wanted = forbidden.arguments
    if not wanted or arguments != _SUBSET:
        return False
    made = {name: opened(value) for name, value in call.args.items()}
    values = {name: at_path(dict(call.args), name) or at_path(made, name) for name in wanted}
    return all(
        value is not None
        and (includes(value[0], wanted[name], may_equal) or includes(opened(value[0]), opened(wanted[name]), may_equal))
        for name, value in values.items()
    )


def _why(record: CallRecord) -> str:
    """Return in words what became of a call that does not count."""
    if record.result is None:
        return "it has no result"
    return (
        f"it {'was' if record.state == 'refused' else 'has'} {record.state}; its result is {record.result.text[:100]!r}"
    )


def _made_by(scene: Scene, agent: str | None, calls: Sequence[ToolCall]) -> Sequence[ToolCall]:
    """Return the calls of an agent, all without one."""
    return calls if agent is None else [call for call in calls if scene.made_by(agent, call)]


def _broken(call: ToolCall) -> bool:
    """Say whether the arguments of a call are not a JSON object."""
    try:
        _ = call.args
    except (ValueError, RecursionError):
        return True
    return False


def _shown(call: ToolCall) -> str:
    return f"{call.name}({shorten(call.function.arguments, 100) or ''})"
