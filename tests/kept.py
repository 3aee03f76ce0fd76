"""What a tester leaves of a test, with as little in it as there may be."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from vivavoce.records.trajectory import Test


def kept_step(tool: str | None, content: str, refused: bool = False) -> dict[str, Any]:
    """Return a step of the tester: the tool that it called, and what that returned."""
    calls = [{"function": {"name": tool, "arguments": "{}"}}] if tool else None
    fields = {"role": "assistant", "content": None if tool else content, "tool_calls": calls}
    answer = {"role": "tool", "tool_call_id": "1", "content": content}
    return {"assistant_message": fields, "tool_message": answer, "refused": refused}


def kept_turn(**fields: Any) -> dict[str, Any]:
    """Return a turn that the tester led."""
    return {**kept_step("send_message_to_target", "{}"), "turn_number": 1, "timestamp": datetime.now(UTC), **fields}


def kept_test(**fields: Any) -> Test:
    """Return a test; one that nothing is said of was a success."""
    least = {"status": "success", "goal_achieved": True, "context": {"goal": "g"}}
    return Test.model_validate({**least, **fields})
