"""Assertions about the tools that the assistant calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
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
from vivavoce.grading.assertions import Assertion, Held, Scene, held_unless, listed
from vivavoce.grading.call_mistakes import unknown_path, unknown_tool
from vivavoce.messages import ToolCall, read_expected_call
from vivavoce.metrics.exact.arguments import ArgumentRule, show
from vivavoce.metrics.exact.tool_calls import (
    ALWAYS_TRUE_WITHOUT_CALLS,
    Pair,
    TrajectoryMode,
    best_ordered_pairs,
    best_pairs,
    check_pairs,
    match_trajectory,
)
from vivavoce.metrics.exact.tool_calls import Calls as PairedCalls
from vivavoce.metrics.rules.possible import BannedArguments, PossibleArguments, may_name, names_of, spellings_of
from vivavoce.records.score import shorten
from vivavoce.records.trajectory import CallRecord, Outcome
from vivavoce.work_time import counted_work

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
        raise ValueError(
            f"'{name}' cannot be the name of a tool; names with * are for rules: {{metric: rule, config: …}}"
        )
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

    A call that was refused or could not be made is none, but where no tool may be called, it counts. With `outcome`,
    only calls with that outcome count.
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
        if self.mode != "superset" and any(call.agent for call in self.calls):
            raise ValueError(f"mode {self.mode} cannot be used with agent; remove mode, or use rules")
        return self

    @property
    def wording(self) -> str:
        """What it demands, in words."""
        if not self.calls:
            return "calls no tool"
        how = f" that {self.outcome}" if self.outcome else ""
        how += "" if self.mode == "superset" else f" ({self.mode})"
        return f"calls {', '.join(call.wording for call in self.calls)}{how}"

    def held(self, scene: Scene) -> Held:
        """Match the calls."""
        if not self.calls and self.mode not in ALWAYS_TRUE_WITHOUT_CALLS and self.outcome is None:
            found = self._reasons(scene, scene.tried)  # a ban on all tools, as `no_call: true` is
        else:
            made = [[record.call for record in step if self._counts(record)] for step in scene.steps]
            if found := self._reasons(scene, made):
                found = [*found, *self._left_out(scene)]
        return held_unless("; ".join(found) or self.holds_idly(scene))

    def objection(self, scene: Scene) -> str:
        """Say that the calls were made, or may have been: only tried, written in another way, or with broken JSON."""
        if reason := super().objection(scene):
            return reason
        made = [[record.call for record in step if self._counts(record)] for step in scene.steps]
        views = [made] if self.outcome is not None else [scene.tried]
        if self.outcome is None and self.mode not in ALWAYS_TRUE_WITHOUT_CALLS:
            views.append(made)  # without what was only tried, too, these may be the calls
        for view in views:
            matched = self._may_match(scene, view)
            if matched is not None:
                calls = ", ".join(map(_shown, matched[:_SHOWN]))
                how = f"perhaps by {calls}" if calls and self._reasons(scene, view) else "it was only tried"
                return f"{self.wording}, which must not be: {how}"
        return ""

    def _may_match(self, scene: Scene, made: Sequence[Sequence[ToolCall]]) -> list[ToolCall] | None:
        """Return the calls that may be the wanted ones, so that the mode is satisfied; None where it surely is not."""
        matched: list[ToolCall] = []
        for agent, wanted in _by_agent(self.calls):
            steps = [[call for call in step if agent is None or scene.may_be_by(agent, call)] for step in made]
            calls = [call for step in steps for call in step]
            pairs = self._possible_pairs(wanted, calls, [len(step) for step in steps])
            if (self.mode != "subset" and len(pairs) < len(wanted)) or (
                self.mode not in ALWAYS_TRUE_WITHOUT_CALLS and len(pairs) < len(calls)
            ):
                return None
            matched += [calls[place] for _, place in pairs]
        return matched

    def _possible_pairs(self, wanted: Sequence[WantedCall], calls: Sequence[ToolCall], sizes: list[int]) -> list[Pair]:
        check_pairs(len(wanted) * len(calls))
        with counted_work() as check_time:
            weights: list[list[float]] = []
            made = list(map(_MadeCall, calls))
            for one in wanted:
                check_time()
                banned = _Banned(one, self.arguments)
                weights.append([float(banned.may_be(call)) for call in made])
            if not weights or not calls:
                return []
            in_order = self.mode in ("strict", "in_order")
            return best_ordered_pairs(weights, sizes) if in_order else best_pairs(weights)

    def _reasons(self, scene: Scene, made: Sequence[Sequence[ToolCall]]) -> Sequence[str]:
        found: list[str] = []
        for agent, wanted in _by_agent(self.calls):
            calls, own = [one.call for one in wanted], [_made_by(scene, agent, step) for step in made]
            reasons = match_trajectory(own, calls, mode=self.mode, arguments=self.arguments).reasons
            found += [f"{agent}: {reason}" if agent else reason for reason in reasons]
        return found

    def _counts(self, record: CallRecord) -> bool:
        return record.has_outcome(self.outcome)

    def _left_out(self, scene: Scene) -> Iterator[str]:
        """Yield for each call of a wanted tool that does not count why it does not."""
        names = {call.name for call in self.calls}
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
        with counted_work() as check_time:
            banned = [call for call in scene.calls if self._forbids(scene, call, check_time)]
        return held_unless(f"calls {', '.join(map(_shown, banned))}" if banned else self.holds_idly(scene))

    def objection(self, scene: Scene) -> str:
        """Say that none of them was made for sure: to demand a call is to demand what `calls` does."""
        made = [record.call for record in scene.records if record.was_made]
        if self.no_call is True:
            return "" if made else f"{self.wording}, which must not be"
        for agent, wanted in _by_agent(self.no_call):
            own = PairedCalls(_made_by(scene, agent, made), [one.call for one in wanted], self.arguments)
            if own.pairs(whole=True):
                return ""
        return f"{self.wording}, which must not be"

    def _forbids(self, scene: Scene, call: ToolCall, check_time: Callable[[], None]) -> bool:
        if self.no_call is True:
            return True
        made = _MadeCall(call)
        for banned in (one for name in spellings_of(call.name) for one in self._by_spelling.get(name, ())):
            check_time()
            agent = banned.wanted.agent
            if (agent is None or scene.may_be_by(agent, call)) and banned.may_be(made):
                return True
        return False

    @cached_property
    def _by_spelling(self) -> Mapping[str, Sequence[_Banned]]:
        """The banned calls by each name that a call of one of them may have."""
        calls = defaultdict[str, list[_Banned]](list)
        for one in cast("list[WantedCall]", self.no_call):
            banned = _Banned(one, self.arguments)
            for name in names_of(one.name):
                calls[name].append(banned)
        return calls


def _by_agent(calls: Sequence[WantedCall]) -> list[tuple[str | None, list[WantedCall]]]:
    """Return the calls that are wanted of each agent, and of whichever; one group where none are."""
    groups = defaultdict[str | None, list[WantedCall]](list)
    for call in calls:
        groups[call.agent].append(call)
    return list(groups.items()) or [(None, [])]


class _Banned:
    """A banned call, which many calls are compared with."""

    def __init__(self, wanted: WantedCall, rule: ArgumentRule) -> None:
        self.wanted = wanted
        self._arguments = BannedArguments(wanted.arguments, rule.for_tool(wanted.name))

    def may_be(self, call: _MadeCall) -> bool:
        """Say whether a call may be the banned one, as one with arguments that are not a JSON object may be."""
        if not may_name(call.name, self.wanted.name):
            return False
        return call.arguments is None or self._arguments.may_be(call.arguments)


class _MadeCall:
    """A call with its arguments in every way to read them, None where they are not a JSON object."""

    def __init__(self, call: ToolCall) -> None:
        self.name = call.name
        try:
            self.arguments = PossibleArguments(call.args)
        except (ValueError, RecursionError):
            self.arguments = None


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


_SHOWN = 3
"""Calls that a reason names."""


def _shown(call: ToolCall) -> str:
    return f"{call.name}({shorten(call.function.arguments, 100) or ''})"
