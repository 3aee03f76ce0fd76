"""Which agent sends a message, its tools, and to whom it hands over, where a format has this outside of messages."""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, cast

from vivavoce.conversations.messages_of_formats import Message, taken_back
from vivavoce.conversations.shapes import name_of, objects_in, text_in
from vivavoce.features.formats.steps import STEP, Step

OF_AGENTS = ("agent_tools", "handoff_to")
"""What a message of ours has in addition to the name of its agent."""


def name_agents(messages: Sequence[Message], steps: Sequence[Step]) -> None:
    """Say which agent speaks, with which tools, and when it hands over, where the steps tell of several agents."""
    by_place = {(step.trace, step.id): step for step in steps}
    made: list[tuple[Message, Step]] = []
    for message in messages:
        told = taken_back(message, STEP)
        step = by_place.get((str(told.get("trace")), str(told.get("id"))))
        if message["role"] == "assistant" and step is not None and step.agent is not None:
            made.append((message, step))
    over = [step for step in steps if step.handoff is not None]
    if len({step.agent for _, step in made}) < 2 and not over:
        return
    for message, step in made:
        message.setdefault("name", step.agent)
        if step.tools is not None:
            message.setdefault("agent_tools", step.tools)
    said = _Said(made)
    for handing in over:
        assert handing.handoff is not None
        sender, receiver = handing.handoff
        last = said.last_before(handing, sender)
        if last is not None:
            last["handoff_to"] = receiver


class _Said:
    """What each agent said in each trace, by time: who hands over is found without looking at all messages."""

    def __init__(self, made: Sequence[tuple[Message, Step]]) -> None:
        self._messages = [message for message, _ in made]
        self._places: dict[tuple[str, str | None], list[tuple[float, int]]] = {}
        for place, (_, step) in enumerate(made):
            when = -math.inf if step.start is None else step.start
            self._places.setdefault((step.trace, step.agent), []).append((when, place))
        for places in self._places.values():
            places.sort()
        self._last = {key: [*accumulate((place for _, place in of), max)] for key, of in self._places.items()}

    def last_before(self, step: Step, agent: str) -> Message | None:
        """Return the last message of an agent in the trace of a step that was not made after it began."""
        key = (step.trace, agent)
        until = math.inf if step.start is None else step.start
        count = bisect_right(self._places.get(key, ()), (until, math.inf))
        return self._messages[self._last[key][count - 1]] if count else None


def hand_over(messages: Sequence[Message], receiver: str, sender: str | None = None) -> bool:
    """Say of the latest message of the assistant in this turn that it hands over, and whether there was one.

    With `sender` it is the latest of that agent.
    """
    for message in reversed(messages):
        if message["role"] == "user":
            return False
        if message["role"] == "assistant" and sender in (None, message.get("name")):
            message["handoff_to"] = receiver
            return True
    return False


def taken_over(result: Message, messages: Sequence[Message]) -> str | None:
    """Return the agent that took over, as the result of a call of the OpenAI Agents SDK says; else None.

    The call is `transfer_to_` and something, and the result an object with the name of the `assistant`.
    """
    content: object = result.get("content")
    if not isinstance(content, str) or not content.startswith("{"):
        return None
    calls = (call for message in messages for call in objects_in(message.get("tool_calls")))
    called = next((call for call in calls if call.get("id") == result.get("tool_call_id")), None)
    if called is None or not name_of(called).startswith("transfer_to_"):
        return None
    try:
        told: Any = json.loads(content)
    except ValueError:
        return None
    fields = cast("dict[str, Any]", told) if isinstance(told, dict) else {}
    return text_in(fields.get("assistant")) if fields.keys() == {"assistant"} else None
