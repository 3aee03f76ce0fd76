"""How many turns, messages and tool calls a conversation has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Unpack

from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.exact.tool_calls import CallOptions
from vivavoce.metrics.measuring import ExactMetric, Measured, MeasuringOptions, Part


def _config(metric: ExactMetric, name: str, description: str) -> MetricConfig:
    return MetricConfig(
        class_name=type(metric).__name__,
        name=name,
        description=description,
        direction="lower_is_better",
        maximum=None,
    )


class TurnCountMetric(ExactMetric):
    """Counts the turns: user messages, each with everything up to the next one.

    Needs nothing. From 0 up; fewer is better, and, if set, up to `threshold` passes. Known failure: a user who sends
    one thought in two messages makes two turns.
    """

    def __init__(self, **options: Unpack[MeasuringOptions]) -> None:
        super().__init__(_config(self, "turn_count", "How many turns does the conversation have?"), **options)

    def measure(self, part: Part) -> Measured:
        """Count the turns."""
        return Measured(float(len(part.turns)), _counted(len(part.turns), "turn"))


class MessageCountMetric(ExactMetric):
    """Counts the messages of every role; `details["roles"]` has each role's own number.

    Needs nothing. From 0 up; fewer is better, and, if set, up to `threshold` passes. Known failure: it depends on how a
    system cuts what it says into messages.
    """

    def __init__(self, **options: Unpack[MeasuringOptions]) -> None:
        super().__init__(_config(self, "message_count", "How many messages does the conversation have?"), **options)

    def measure(self, part: Part) -> Measured:
        """Count the messages."""
        messages = part.messages
        roles = Counter(str(message.role) for message in messages)
        by_role = ", ".join(f"{count} {role}" for role, count in sorted(roles.items()))
        return Measured(
            float(len(messages)), f"{_counted(len(messages), 'message')}: {by_role}", details={"roles": {**roles}}
        )


class ToolCallCountMetric(ExactMetric):
    """Counts the tool calls that the assistant made; `details["tools"]` has each tool's own number.

    `only` and `ignore` choose tools by name. Needs nothing; no calls: 0. From 0 up; fewer is better, and, if set, up to
    `threshold` passes. A call that the user refused, or that could not be made, does not count. Known failure:
    a call that failed counts like one that worked.
    """

    def __init__(
        self, *, only: Sequence[str] | None = None, ignore: Sequence[str] = (), **options: Unpack[MeasuringOptions]
    ) -> None:
        super().__init__(_config(self, "tool_call_count", "How many tool calls were made?"), **options)
        self.calls = CallOptions(only, ignore, expects=False)

    @property
    def parameters(self) -> Mapping[str, object]:
        """Which tools count."""
        only, ignore = self.calls.only, self.calls.ignore
        return {"only": None if only is None else sorted(only), "ignore": sorted(ignore)}

    def measure(self, part: Part) -> Measured:
        """Count the calls."""
        tools = Counter(call.name for step in self.calls.select(part.messages) for call in step)
        return Measured(float(tools.total()), _counted(tools.total(), "tool call"), details={"tools": {**tools}})


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
