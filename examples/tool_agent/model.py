"""A model that runs offline: it follows a few rules, behind an OpenAI-compatible endpoint on this machine.

    python examples/tool_agent/model.py --port 8766

It listens on 127.0.0.1; port 0 takes a free one. In its place any model can be tested with the same suite.
"""

from __future__ import annotations

import argparse
import json
import re
import threading
from typing import Any

from vivavoce.messages import ToolCall
from vivavoce.testing import LoopbackServer

ORDER = re.compile(r"\bA-\d+\b")


def answer(body: dict[str, Any]) -> str | list[ToolCall]:
    """Answer as a support agent would: look the order up, ask, pay back."""
    messages = body["messages"]
    said = [message["content"] for message in messages if message["role"] == "user"]
    orders = ORDER.findall(" ".join(said))
    last = messages[-1]
    if last["role"] == "tool":
        call = next(message for message in reversed(messages) if message["role"] == "assistant")["tool_calls"][0]
        return after(call["function"]["name"], last["content"], wants_money="money" in said[-1])
    if not orders:
        return "Which order is it?"
    name = "refund" if said[-1].lower().startswith("yes") else "look_up"
    return [ToolCall(id=f"call-{len(messages)}", name=name, args={"order": orders[-1]})]


def after(tool: str, result: str, *, wants_money: bool) -> str:
    """Tell the user what a tool returned."""
    if result.startswith("Error: "):
        return f"I am sorry, that did not work: {result.removeprefix('Error: ')}."
    order = json.loads(result)
    if tool == "refund":
        return f"EUR {order['paid_back']:.2f} is on its way to you."
    status = f"Order {order['order']} is {order['status']}."
    return f"{status} Shall I pay back EUR {order['price']:.2f}?" if wants_money else status


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--port", type=int, default=8766)
    with LoopbackServer(answer, port=options.parse_args().port) as server:
        print(f"listening on {server.base_url}", flush=True)
        threading.Event().wait()
