"""`Turn`: what the tester did and what came back, in the messages of the one schema."""

from __future__ import annotations

from typing import Any

from vivavoce.records.trajectory import Step as Step
from vivavoce.records.trajectory import TesterTurn, assistant_texts
from vivavoce.records.trajectory import Turn as Exchange


class Turn(TesterTurn):
    """One exchange with the target: the message to it, and everything it did."""

    exchange: Exchange

    @property
    def message(self) -> str:
        """The message to the target."""
        return self.exchange.messages[0].text

    @property
    def reply(self) -> str:
        """The text of the target's reply, empty where it failed or sent none."""
        return "\n".join(filter(None, assistant_texts(self.exchange.messages)))

    @property
    def answered(self) -> bool:
        """Whether the target answered, even if with an empty reply."""
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
