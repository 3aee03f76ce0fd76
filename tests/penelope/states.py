"""Tests under way, made of the turns they have had."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from vivavoce.messages import AIMessage, HumanMessage, ToolCall, ToolMessage
from vivavoce.penelope.context import TestContext, TestState
from vivavoce.penelope.turn import Turn
from vivavoce.records import trajectory
from vivavoce.records.score import Failure

Exchange = tuple[str, str] | Turn
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
DOWN = Failure(blame="target", kind="timeout", message="did not answer within 30 s")


def turn(
    text: str,
    replied: str | AIMessage | None = "",
    *,
    number: int = 1,
    fresh: bool = False,
    forgotten: bool = False,
) -> Turn:
    """One exchange, as the tester's loop records it; the target failed where it `replied` None."""
    reply = AIMessage(content=replied) if isinstance(replied, str) else replied
    call = ToolCall(id=f"call-{number}", name="send_message_to_target", args={"message": text})
    content = json.dumps({"success": reply is not None, "output": {"response": reply.text if reply else None}})
    exchange = trajectory.Turn(
        index=number - 1,
        messages=[HumanMessage(content=text), *([reply] if reply else [])],
        failure=None if reply else DOWN,
    )
    return Turn(
        turn_number=number,
        timestamp=BEGAN,
        assistant_message=AIMessage(content=None, tool_calls=[call]),
        tool_message=ToolMessage(content=content, tool_call_id=call.id),
        exchange=exchange,
        fresh=fresh,
        forgotten=forgotten,
    )


def state(*exchanges: Exchange, stateless: bool = False, **context: Any) -> TestState:
    """A test after these exchanges, each a turn or what was said and replied; more says what the test is about."""
    turns = [
        exchange.model_copy(update={"turn_number": number})
        if isinstance(exchange, Turn)
        else turn(*exchange, number=number)
        for number, exchange in enumerate(exchanges, 1)
    ]
    about = TestContext.model_validate({"goal": "Learn how to return a lamp", **context})
    return TestState(context=about, stateless=stateless, turns=turns)
