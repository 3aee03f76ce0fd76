"""A bot behind HTTP: a till that adds up what the customer of a session buys. Standard library only.

    python examples/http_bot/server.py 8765

It listens on 127.0.0.1; port 0 takes a free one. POST /chat {"text": "two apples", "session": null} is answered with
{"session": "…", "answer": {"text": "…"}}; the session has to come back with the next request.
"""

from __future__ import annotations

import json
import re
import sys
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PRICES = {"apple": 0.50, "bread": 3.20, "cheese": 4.75}
NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3}
WANTED = re.compile(rf"\b({'|'.join(NUMBERS)})\s+({'|'.join(PRICES)})s?\b")

baskets: dict[str, float] = {}


def reply(session: str, text: str) -> str:
    """Add what the text names to the basket of a session, or take it out, and say what the basket costs."""
    price = sum(NUMBERS[number] * PRICES[thing] for number, thing in WANTED.findall(text.lower()))
    sign = -1 if "without" in text.lower() else 1
    baskets[session] = baskets.get(session, 0.0) + sign * price
    return f"Certainly. Total: {baskets[session]:.2f} euros."


class Till(BaseHTTPRequestHandler):
    """One request of one customer."""

    def do_POST(self) -> None:
        """Answer a message."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        session = asked["session"] or uuid.uuid4().hex
        self.answer({"session": session, "answer": {"text": reply(session, asked["text"])}})

    def answer(self, body: dict[str, Any]) -> None:
        """Send JSON."""
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Keep the terminal quiet."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 8765), Till)
    print(f"listening on http://127.0.0.1:{server.server_port}/chat", flush=True)
    server.serve_forever()
