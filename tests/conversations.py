"""Messages of made-up conversations, as rows hold them."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]


def user(text: str) -> Row:
    return {"role": "user", "content": text}


def says(text: str) -> Row:
    return {"role": "assistant", "content": text}


def calls(*tool_calls: tuple[str, str, Any]) -> Row:
    """Return one message with calls, each an id, a name and arguments."""
    return {"role": "assistant", "tool_calls": [{"id": i, "name": n, "arguments": a} for i, n, a in tool_calls]}


def result(id_: str, text: str = "ok") -> Row:
    return {"role": "tool", "tool_call_id": id_, "content": text}


def by(agent: str, message: Row, **more: Any) -> Row:
    """Return a message as an agent's."""
    return {**message, "name": agent, **more}


REFUND: list[Row] = [
    user("Refund A1, please."),
    by("triage", calls(("h1", "transfer_to_refunds", {"order_id": "A1"})), agent_tools=["find_order"]),
    result("h1", '{"assistant": "refunds"}'),
    by("refunds", calls(("h2", "transfer_to_triage", {})), agent_tools=["refund_order"]),
    result("h2"),
    by("triage", calls(("c1", "refund_order", {"order_id": "A1"})), agent_tools=["find_order"]),
    result("c1", "Error: triage has no such tool"),
    by("triage", says("I hand you over."), handoff_to="refunds"),
    user("Hello?"),
    by("Refunds", calls(("c2", "refund_order", {"order_id": "A1"})), agent_tools=["refund_order"]),
    result("c2", "done"),
    by("Refunds", says("Refunded.")),
]
"""Triage hands over to refunds and gets it back at once, tries a tool that only refunds has, and hands over again."""
