"""`Answer`: what comes back from a call of a tool, and the protocol of who gives it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import JsonValue

from vivavoce.messages import AnyMessage, ToolCall, ToolMessage
from vivavoce.records.call_states import Source, notes_of

if TYPE_CHECKING:  # who only reads a suite loads no target
    from vivavoce.targets.target import Opening
    from vivavoce.targets.tools import World

FAILED = "Error: "
"""The beginning of an answer that tells of a failure."""
_NO_TOOL: tuple[Source, ...] = ("user", "vivavoce")
"""Those who answer a call that was never made."""


@dataclass(frozen=True, slots=True)
class Asked:
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


def written(result: JsonValue) -> str:
    """Return a result as the model reads it: a text as it is, anything else as JSON."""
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)


class Handler(Protocol):
    """Answers the calls of one tool."""

    async def answer(self, asked: Asked) -> Answer | None:
        """Return the answer, None where it has none for such a call.

        Raises:
            SuiteFault: it should have one, and failed.
        """
        ...
