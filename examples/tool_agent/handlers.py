"""The tools of the agent, over the state of a row."""

from __future__ import annotations

from typing import Any

from vivavoce.errors import ToolError


def look_up(order: str, state: dict[str, Any]) -> dict[str, Any]:
    """Return the status and the price of an order."""
    return {"order": order, **_found(order, state)}


def refund(order: str, state: dict[str, Any]) -> dict[str, Any]:
    """Pay back the price of a delivered order."""
    found = _found(order, state)
    if found["status"] != "delivered":
        raise ToolError(f"order {order} is {found['status']}")
    found["status"] = "refunded"
    state["paid_back"] += found["price"]
    return {"order": order, "paid_back": found["price"]}


def _found(order: str, state: dict[str, Any]) -> dict[str, Any]:
    if order not in state["orders"]:
        raise ToolError(f"there is no order {order}")
    return state["orders"][order]
