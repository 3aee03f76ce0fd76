"""Spans of a small bot, as an exporter sends them, and whoever sends them."""

from __future__ import annotations

import base64
import copy
import json
from typing import Any

from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from vivavoce.features.watch.receiver import Receiver

Json = dict[str, Any]
START = 1_800_000_000


def attribute(key: str, value: str) -> Json:
    return {"key": key, "value": {"stringValue": value}}


def message(role: str, text: str, **more: Any) -> Json:
    return {"role": role, "parts": [{"type": "text", "content": text}], **more}


def turn(conversation: str, number: int, answer: str = "yes", trace: str = "", **more: Any) -> Json:
    """Return the span of a turn, in a trace of its own, in which the model is given all turns before."""
    history = [message("user", "question 0")]
    for at in range(number):
        history += [message("assistant", answer), message("user", f"question {at + 1}")]
    name = f"{conversation[:40]}/{number}".encode("utf-8", "replace")
    known = {
        "gen_ai.operation.name": "chat",
        "gen_ai.conversation.id": conversation,
        "gen_ai.input.messages": json.dumps(history),
        "gen_ai.output.messages": json.dumps([message("assistant", answer, finish_reason="stop")]),
    }
    return {
        "traceId": trace or name.hex().rjust(32, "0")[-32:],
        "spanId": name.hex().rjust(16, "0")[-16:],
        "name": "chat",
        "startTimeUnixNano": str((START + number) * 10**9),
        "endTimeUnixNano": str((START + number + 1) * 10**9),
        "attributes": [attribute(key, value) for key, value in known.items()],
        **more,
    }


def export(*spans: Json, **resource: str) -> Json:
    about = {"attributes": [attribute(key, value) for key, value in resource.items()]}
    return {"resourceSpans": [{"resource": about, "scopeSpans": [{"scope": {"name": "bot"}, "spans": list(spans)}]}]}


def in_protobuf(exported: Json) -> bytes:
    """Return an export as protocol buffers, made by OpenTelemetry's own classes."""
    copied = copy.deepcopy(exported)
    for resource in copied["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for key in ("traceId", "spanId", "parentSpanId"):
                    if key in span:
                        span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
    return ParseDict(copied, ExportTraceServiceRequest()).SerializeToString()


class Answer:
    """What the receiver answered."""

    def __init__(self) -> None:
        self.status, self.headers, self.body = 0, dict[str, str](), b""

    def json(self) -> Any:
        return json.loads(self.body)


async def post(
    receiver: Receiver, body: bytes | Json, path: str = "/v1/traces", method: str = "POST", **headers: str
) -> Answer:
    """Send a request to a receiver and return its answer; names of headers have `_` for `-`."""
    answer = Answer()
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = {"host": "127.0.0.1:4318", "content_type": "application/json", **headers}
    pieces = [data[at : at + 65_536] for at in range(0, len(data), 65_536)] or [b""]

    async def receive() -> Json:
        return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

    async def send(sent: Any) -> None:
        if sent["type"] == "http.response.start":
            answer.status = sent["status"]
            answer.headers = {name.decode(): value.decode() for name, value in sent["headers"]}
        else:
            answer.body += sent["body"]

    known = [(name.replace("_", "-").encode(), value.encode()) for name, value in lines.items()]
    scope: Json = {"type": "http", "path": path, "method": method, "headers": known, "client": ("127.0.0.1", 1)}
    await receiver(scope, receive, send)
    return answer
