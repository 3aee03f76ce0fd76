"""`Answer`: what comes back from a call of a tool, and the protocol of who gives it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from pydantic import JsonValue

from vivavoce.messages import AnyMessage, ToolCall, ToolMessage
from vivavoce.targets.target import Opening
from vivavoce.targets.tools import World

Source = Literal["canned", "recording", "function", "mcp", "user", "vivavoce"]
"""Who answered: a value in the suite, a recording, code, a server, the user who refused, or we who found a mistake."""

NO_TOOL: tuple[Source, ...] = ("user", "vivavoce")
"""Those who answer a call that was never made."""
FAILED = "Error: "
"""The beginning of an answer that tells of a failure."""
_MOCKED: dict[str, str] = {"canned": "canned", "recording": "recorded"}
_SAID: dict[str, str] = {"approve": "approved", "refuse": "refused"}


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
    """What the model reads, who says it, and whether it says that the call failed."""

    content: str
    source: Source
    failed: bool = False

    def message(self, call: ToolCall, seconds: float, approval: str | None) -> ToolMessage:
        """Return it as the message of a tool; `seconds` is how long it took, `approval` what the user had said."""
        notes: dict[str, Any] = {"answered_by": self.source, "mocked": self.source in _MOCKED}
        if self.failed:
            notes["failed"] = True
        if approval is not None:
            notes["approval"] = approval
        notes["seconds"] = round(seconds, 3)
        if call.id is None:
            return ToolMessage(content=self.content, metadata=notes)
        return ToolMessage(tool_call_id=call.id, content=self.content, metadata=notes)


def failure(text: str, source: Source) -> Answer:
    """Return the answer that tells the model of a failure."""
    return Answer(FAILED + text, source, failed=True)


def origin(message: ToolMessage) -> str:
    """Return in a word or two what a reader should know of a result: whether it was made up, and what the user said."""
    notes = message.metadata or {}
    words = (_SAID.get(str(notes.get("approval"))), _MOCKED.get(str(notes.get("answered_by"))))
    return ", ".join(word for word in words if word)


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
