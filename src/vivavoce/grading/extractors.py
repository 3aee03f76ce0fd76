"""Extractors: which part of a conversation is graded, the *submission*.

A user's extractor is a function `(trajectory, config)` or `(trajectory, config, agent_state)` that returns text;
`trajectory` is a list of turns, each a list of messages.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from vivavoce.errors import GraderFault, UsageError
from vivavoce.grading.functions import Pattern, call_user, check_parameters, read_options, reads_letta
from vivavoce.messages import AnyMessage
from vivavoce.metrics.prompts import Wording
from vivavoce.metrics.transcript import transcript as quoted_lines
from vivavoce.plugins import Registry, is_file_reference, lazy, load_object
from vivavoce.records.agents import key_of
from vivavoce.records.trajectory import Test, answer_of_turn, assistant_texts, call_records, last_turn_of, made_calls
from vivavoce.safe_regex import expression
from vivavoce.user_code import check_callable, name_of

_CLASSES = {
    "assistant_message": "letta_client.types.agents:AssistantMessage",
    "reasoning_message": "letta_client.types.agents:ReasoningMessage",
    "system_message": "letta_client.types.agents:SystemMessage",
    "tool_call_message": "letta_client.types.agents:ToolCallMessage",
    "tool_return_message": "letta_client.types:ToolReturnMessage",
    "user_message": "letta_client.types.agents:UserMessage",
}


def letta_messages(turns: Sequence[Sequence[AnyMessage]]) -> list[list[Any]]:
    """Return the messages of each turn: objects of the client's classes, or of the same shape if it is missing."""
    in_letta = lazy("vivavoce.targets.letta_rows:letta_turns")
    return [[_message(row) for row in turn] for turn in in_letta([[one.to_dict() for one in turn] for turn in turns])]


def letta_state(state: Mapping[str, Any] | None) -> Any:
    """Return the memory blocks of an agent as its state has them, None if there are none to see."""
    if state is None:
        return None
    blocks = [SimpleNamespace(label=label, value=value) for label, value in state.items()]
    return SimpleNamespace(blocks=blocks, memory=SimpleNamespace(blocks=blocks))


def _message(row: dict[str, Any]) -> Any:
    try:
        kind = lazy(_CLASSES[row["message_type"]])
    except ImportError:
        return _object(row)
    return kind.construct(**row)


def _object(value: Any) -> Any:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return SimpleNamespace(**{name: _object(one) for name, one in fields.items()})
    return [_object(one) for one in cast("list[Any]", value)] if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class View:
    """What a grader can see: the turns in its scope, the state of the target at the end, and the seconds of each turn.

    The first `history_turns` are the history of the row, which the target did not write. `test` is the record of the
    tester that led the conversation, None if there was none, and `trial` which repetition of the sample the
    conversation is, from 0.
    """

    turns: Sequence[Sequence[AnyMessage]]
    state: Mapping[str, Any] | None = None
    seconds: Sequence[float | None] = ()
    test: Test | None = None
    trial: int = 0
    history_turns: int = 0

    @property
    def own(self) -> View:
        """The turns of this conversation, without the history: what the target said and did."""
        first = self.history_turns
        if not first:
            return self
        return replace(self, turns=self.turns[first:], seconds=self.seconds[first:], history_turns=0)

    @property
    def messages(self) -> list[AnyMessage]:
        """The messages of all turns in view."""
        return [message for turn in self.turns for message in turn]


Extract = Callable[[View], str | Awaitable[str]]
UserExtractor = Callable[..., object]


def last_assistant(view: View, *, agent: str | None = None) -> str:
    """Return the answer to the last message of the user: the last words of the assistant after it.

    An empty message is an answer, too. With `agent`, only messages of the agent with that name count, in the last turn
    in which it acts.
    """
    if agent is None:
        return answer_of_turn(view.messages)
    acting = (messages for turn in reversed(view.turns) if (messages := _of(turn, agent)))
    return answer_of_turn(next(acting, ()))


def first_assistant(view: View, *, agent: str | None = None) -> str:
    """Return the text of the first assistant message, or with `agent` of the first of that agent."""
    return next((text for turn in view.turns for text in assistant_texts(_of(turn, agent))), "")


def all_assistant(view: View, *, separator: str = "\n", agent: str | None = None) -> str:
    """Return the text of all assistant messages, or with `agent` of those of that agent."""
    return separator.join(assistant_texts(_of(view.messages, agent)))


def last_turn(view: View, *, separator: str = "\n", agent: str | None = None) -> str:
    """Return the text of the assistant in the last turn, or with `agent` what that agent says there."""
    return separator.join(assistant_texts(_of(view.turns[-1], agent))) if view.turns else ""


def _of(messages: Sequence[AnyMessage], agent: str | None) -> Sequence[AnyMessage]:
    """Return the messages of an agent, all without one."""
    if agent is None:
        return messages
    return [message for message in messages if message.name and key_of(message.name) == key_of(agent)]


def pattern(view: View, *, pattern: Pattern, group: int = 0, search_all: bool = False) -> str:
    """Return the match of a regular expression in the newest assistant message of the last turn with a match.

    With `search_all`, all matches in that message are joined by a space; `group` chooses the group, 0 is the whole
    match.
    """
    compiled = expression(pattern)
    for text in reversed(assistant_texts(last_turn_of(view.messages))):
        if found := compiled.matches(text, group):
            return " ".join(found) if search_all else found[0]
    return ""


def after_marker(view: View, *, marker: str, include_marker: bool = False) -> str:
    """Return the text after a marker in the newest assistant message of the last turn that contains it."""
    for text in reversed(assistant_texts(last_turn_of(view.messages))):
        _, found, after = text.partition(marker)
        if found:
            return (found + after if include_marker else after).strip()
    return ""


class NothingToGrade(Exception):
    """What an extractor looks for is not there, so that the grader does not apply; the message says what."""


def tool_arguments(view: View, *, tool_name: str) -> str:
    """Return the arguments, as JSON text, of the first call of a tool that was made.

    Raises:
        NothingToGrade: the tool was not called.
    """
    for call in made_calls(view.messages):
        if call.name == tool_name:
            return call.function.arguments or "{}"
    raise NothingToGrade(f"{tool_name} was not called")


def tool_output(view: View, *, tool_name: str) -> str:
    """Return the result of the first answered call of a tool."""
    for record in call_records(view.messages):
        if record.call.name == tool_name and record.was_made and record.result is not None:
            return record.result.text
    return ""


def calls(view: View) -> str:
    """Return every tool call that was made, as JSON text: a list of objects with `name` and `arguments`."""
    named = [{"name": call.name, "arguments": call.function.arguments} for call in made_calls(view.messages)]
    return json.dumps(named, ensure_ascii=False) if named else ""


def transcript(view: View) -> str:
    """Return the whole conversation, with tool calls, as readable lines."""
    return "\n".join(message.pretty_repr() for message in view.messages)


def quoted_transcript(view: View) -> str:
    """Return the whole conversation as a judge reads it, in lines that no message can forge."""
    return Wording(quoted_lines(view.messages).text())


def memory_block(view: View, *, block_label: str) -> str:
    """Return a memory block of the target at the end; empty if there is no such block."""
    if view.state is None:
        raise GraderFault("this target does not report its memory, so memory_block has nothing to read", kind="state")
    value = view.state.get(block_label, "")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_BUILTIN = (
    last_assistant,
    first_assistant,
    all_assistant,
    last_turn,
    pattern,
    after_marker,
    tool_arguments,
    tool_output,
    memory_block,
    transcript,
)

extractors: Registry[UserExtractor] = Registry(
    "extractor",
    {function.__name__: f"{__name__}:{function.__name__}" for function in _BUILTIN}
    | {"tool_calls": f"{__name__}:calls"},
)


def extractor(function: UserExtractor | None = None, *, name: str | None = None) -> Any:
    """Register a function as an extractor, under its own name or another."""

    def register(found: UserExtractor) -> UserExtractor:
        return extractors.add(name or name_of(found), found)

    return register if function is None else register(function)


def build_extractor(name: str, config: Mapping[str, Any], base: Path) -> Extract:
    """Return the extractor of that name, or of a `file.py:name`, with its options.

    Only `transcript` and extractors of users see the history of a row.

    Raises:
        UsageError: there is no such extractor, or an option is wrong.
    """
    found: UserExtractor = (
        check_callable(load_object(name, base), name, "an extractor")
        if is_file_reference(name)
        else extractors.get(name)
    )
    if getattr(found, "__module__", None) == __name__:
        options = read_options(found, config)
        _check_options(name, options)
        shows_history = found is transcript
        return lambda view: cast("str", found(view if shows_history else view.own, **options))
    return _user_extract(found, dict(config))


def _check_options(name: str, options: Mapping[str, Any]) -> None:
    """Check what the types of options do not say.

    Raises:
        UsageError: a marker is empty, or a pattern has no group of that number.
    """
    if options.get("marker") == "":
        raise UsageError(f"'{name}': marker is empty; expected the text before the answer")
    if "pattern" in options:
        groups, group = expression(options["pattern"]).groups, options.get("group", 0)
        if not 0 <= group <= groups:
            raise UsageError(f"'{name}': there is no group {group}; the pattern has {groups} groups")


def _user_extract(found: UserExtractor, config: dict[str, Any]) -> Extract:
    wants_state = bool(check_parameters(found, ("trajectory", "config"), ("agent_state",)))
    letta = reads_letta(found)

    async def extract(view: View) -> str:
        turns = letta_messages(view.turns) if letta else [list(turn) for turn in view.turns]
        state = letta_state(view.state) if letta else view.state
        function = partial(found, agent_state=state) if wants_state else found
        text = await call_user(function, turns, config)
        if not isinstance(text, str):
            raise GraderFault(
                f"extractor {name_of(found)} must return text; it returned {type(text).__name__}", kind="format"
            )
        return text

    return extract
