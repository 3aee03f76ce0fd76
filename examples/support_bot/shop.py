"""The shop behind the bot: its orders, its shipping times, and the two tools that an agent may call."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

TODAY = date(2025, 6, 30)
RETURN_DAYS = 30
SHIPPING = {"germany": "2 to 3 working days", "france": "4 working days", "norway": "7 working days"}


@dataclass(frozen=True)
class Order:
    """An order of so many pieces of one thing; `price` is in euros for one piece."""

    item: str
    pieces: int
    price: float
    delivered: date | None


ORDERS = {
    "1042": Order("mug", 2, 12.45, date(2025, 6, 20)),
    "1043": Order("desk lamp", 1, 49.00, date(2025, 5, 2)),
    "1044": Order("rain jacket", 1, 89.90, None),
    "1045": Order("teapot", 1, 35.50, date(2025, 5, 31)),
    "1046": Order("candle", 4, 6.25, date(2025, 6, 27)),
}


def look_up_order(order: str) -> dict[str, Any]:
    """Return what the shop knows of an order."""
    found = ORDERS.get(order)
    if found is None:
        return {"error": "no such order"}
    status = f"delivered on {found.delivered.day} {found.delivered:%B}" if found.delivered else "on its way"
    return {"order": order, "item": found.item, "pieces": found.pieces, "status": status}


def refund_order(order: str, amount: float) -> dict[str, Any]:
    """Pay money back; a real shop would not undo this."""
    return {"order": order, "refunded": amount}
