"""`Turn` and `Step`: what the tester did and what came back, in the messages of the one schema."""

from __future__ import annotations

import json
from datetime import datetime
from functools import cached_property
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field

from vivavoce.messages import AIMessage, ToolMessage
from vivavoce.records import trajectory
from vivavoce.records.trajectory import assistant_texts


class Step(BaseModel):
    """One call of a tool inside a turn; `refused` says that it was not carried out, and the tool message says why."""

    model_config = ConfigDict(frozen=True)

    assistant_message: AIMessage
    tool_message: ToolMessage
    reasoning: str = ""
    refused: bool = False

    @property
    def tool_name(self) -> str:
        """The tool that was called, empty where none was."""
        calls = self.assistant_message.tool_calls
        return calls[0].name if calls else ""

    @cached_property
    def tool_arguments(self) -> dict[str, Any]:
        """What it was called with; empty where that is not a JSON object, see `arguments_valid`."""
        return _arguments(self.assistant_message) or {}

    @property
    def arguments_valid(self) -> bool:
        """Whether the arguments are a JSON object."""
        return _arguments(self.assistant_message) is not None

    @cached_property
    def tool_result(self) -> dict[str, Any]:
        """What the tool returned: `success`, `output` and `error`."""
        try:
            value = json.loads(self.tool_message.text)
        except ValueError:
            value = self.tool_message.text
        if isinstance(value, dict) and "success" in value:
            return {"output": None, "error": None, **cast("dict[str, Any]", value)}
        return {"success": not self.refused, "output": value, "error": None}


class Turn(Step):
    """One exchange with the target, and the steps that the tester took before it, counted from 1.

    `assistant_message` is the tester's call of `send_message_to_target`, `tool_message` what it was told of the reply,
    and `exchange` the exchange itself: what was said to the target and everything it did. `evaluation` is the reasoning
    of the judge of the goal, where it judged this turn. `fresh` marks the first turn of a new session, and `forgotten`
    one that was taken back: a later message was sent as if this one had never been.
    """

    turn_number: int
    timestamp: datetime
    exchange: trajectory.Turn
    evaluation: str | None = None
    retrieval_context: list[str | dict[str, Any]] | None = None
    steps: list[Step] = Field(default_factory=list[Step])
    fresh: bool = False
    forgotten: bool = False

    @property
    def message(self) -> str:
        """What was said to the target."""
        return self.exchange.messages[0].text

    @property
    def reply(self) -> str:
        """The words of the target, empty where it failed or said nothing."""
        return "\n".join(filter(None, assistant_texts(self.exchange.messages)))

    @property
    def answered(self) -> bool:
        """Whether the target answered, be it with nothing."""
        return self.exchange.failure is None

    @property
    def action(self) -> str:
        """The tool's name, as older interfaces call it."""
        return self.tool_name

    @property
    def action_params(self) -> dict[str, Any]:
        """The tool's arguments, as older interfaces call them."""
        return self.tool_arguments

    @property
    def action_input(self) -> dict[str, Any]:
        """The tool's arguments, as older interfaces call them."""
        return self.tool_arguments

    @property
    def action_output(self) -> dict[str, Any]:
        """The tool's result, as older interfaces call it."""
        return self.tool_result


def _arguments(message: AIMessage) -> dict[str, Any] | None:
    try:
        return message.tool_calls[0].args if message.tool_calls else {}
    except (ValueError, RecursionError):
        return None
