"""`TargetInteractionTool`: the one tool that reaches the target."""

from __future__ import annotations

import base64
import mimetypes
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from vivavoce.errors import UsageError
from vivavoce.messages import FilePart, FileReference, HumanMessage, ImagePart, ImageURL, TextPart
from vivavoce.pacing.limits import Budget
from vivavoce.pacing.loops import wait_for
from vivavoce.penelope.tools.tool import Tool, ToolResult
from vivavoce.records.score import shorten
from vivavoce.records.trajectory import Turn, assistant_texts
from vivavoce.safe_text import quoted
from vivavoce.targets.dialogue import Dialogue, open_channel
from vivavoce.targets.function import as_target
from vivavoce.targets.target import Opening, Target

NAME = "send_message_to_target"

REPLY_LIMIT = 20_000
"""Characters of a reply that the tester reads; judges and reports have all of it."""


class TargetInteractionTool(Tool):
    """Sends a message to the target and returns its answer.

    With only a target, it has one conversation with it, for manual tests.
    """

    name = NAME
    description = "Type a message to the assistant, as the user, and read its answer; it ends your turn."
    when_to_use = "for everything that the user says."
    when_not_to_use = "for thoughts, or to speak of the conversation from outside."
    examples = '{"message": "Hi, I ordered a lamp and it came broken."}'

    def __init__(self, target: Dialogue | Target | Callable[..., Any], files: Mapping[str, Path] | None = None) -> None:
        self.dialogue = target if isinstance(target, Dialogue) else _dialogue(target)
        self._files = dict(files or {})
        properties: dict[str, Any] = {"message": {"type": "string"}}
        if self._files:
            properties["files"] = {"type": "array", "items": {"type": "string", "enum": sorted(self._files)}}
        self.parameters = {
            "type": "object",
            "properties": properties,
            "required": ["message"],
            "additionalProperties": False,
        }

    def message(self, message: str, files: Sequence[str] = ()) -> HumanMessage:
        """Return the message with its attached files.

        Raises:
            UsageError: a file cannot be read.
        """
        if not files:
            return HumanMessage(content=message)
        return HumanMessage(content=[TextPart(text=message), *(_part(name, self._files[name]) for name in files)])

    def execute(self, message: str, files: Sequence[str] = (), **more: Any) -> ToolResult:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Send a message and wait for the answer."""
        return wait_for(self.aexecute(message, files, **more))

    async def aexecute(self, message: str, files: Sequence[str] = (), **more: Any) -> ToolResult:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Send a message; a target that fails is a result, not an exception."""
        del more
        return tool_result_of(await self.dialogue.say(self.message(message, files)))


def tool_result_of(exchange: Turn) -> ToolResult:
    """Return the result of an exchange for the tester: the words of the target, or its failure."""
    if exchange.failure is not None:
        return ToolResult(success=False, error=shorten(exchange.failure.message, 500))
    reply = "\n".join(filter(None, assistant_texts(exchange.messages)))
    return ToolResult(success=True, output={"response": shorten(reply, REPLY_LIMIT)})


def result_text(result: ToolResult) -> str:
    """Return a result as the JSON text that the tester's model reads."""
    return quoted(result.model_dump(exclude_none=True))


def _dialogue(target: Target | Callable[..., Any]) -> Dialogue:
    channel = open_channel(as_target(target), limit=1, budget=Budget(), timeout=300.0, retries=2)
    return Dialogue(channel, lambda: Opening(uuid.uuid4().hex, "tool"))


def _part(name: str, path: Path) -> FilePart | ImagePart:
    try:
        data = base64.b64encode(path.read_bytes()).decode()
    except OSError as error:
        raise UsageError(f"the file {name} cannot be read: {error}") from error
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    address = f"data:{kind};base64,{data}"
    if kind.startswith("image/"):
        return ImagePart(image_url=ImageURL(url=address))
    return FilePart(file=FileReference(file_data=address, filename=path.name))
