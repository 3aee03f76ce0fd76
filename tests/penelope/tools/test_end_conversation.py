"""Leaving a conversation."""

from __future__ import annotations

from vivavoce.models.json_schema import mismatch
from vivavoce.penelope.tools.end_conversation import EndConversationTool


def test_leaving_has_a_reason_and_finds_nothing_out() -> None:
    tool = EndConversationTool()
    result = tool.execute(reason="fed up")
    assert (result.success, result.output, tool.findings(result)) == (True, {"reason": "fed up"}, [])


def test_without_a_reason_nobody_leaves() -> None:
    assert mismatch({}, EndConversationTool.parameters)
    assert not mismatch({"reason": "fed up"}, EndConversationTool.parameters)
