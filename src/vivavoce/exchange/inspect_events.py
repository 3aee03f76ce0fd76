"""What a sample of Inspect holds beside its messages and scores: its events and its output, which repeat them."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from typing import Any

from vivavoce.exchange.format import Row
from vivavoce.exchange.loss import Loss
from vivavoce.exchange.repeats import Repeats
from vivavoce.exchange.shapes import fields_in, filled, objects_in, text_in, without

_POSITIONS = ("input_refs", "call_refs")
"""Where in a pool of its own a log keeps what an event holds."""


def more_than_messages(sample: Row, said: list[Row], loss: Loss) -> Row:
    """Return what is to be kept of the events and the output of a sample; `said` are its messages."""
    scores = [fields_in(score) for score in fields_in(sample.get("scores")).values()]
    repeats = Repeats(_key_of, [*said, *scores])
    results = {text_in(item.get("tool_call_id")): item.get("content") for item in said if item.get("role") == "tool"}
    events = [_event(event, sample, results) for event in objects_in(sample.get("events"))]
    found = {
        "output": repeats.rest_of(without(fields_in(sample.get("output")), ("completion",))),
        "events": repeats.rest_of(events),
        "events_data": filled(repeats.rest_of(fields_in(sample.get("events_data")))),
    }
    repeats.tell(loss, len(events))
    return found


def _event(event: Row, sample: Row, results: Mapping[str | None, Any]) -> Row:
    """Return an event without what the messages and its sample say of it."""
    rest = without(event, _POSITIONS)
    match event.get("event"):
        case "tool" if event.get("result") is not None and results.get(text_in(event.get("id"))) == event["result"]:
            return without(rest, ("arguments", "result"))
        case "sample_init":
            begun = {key: value for key, value in fields_in(event.get("sample")).items() if value != sample.get(key)}
            return {**rest, "sample": begun}
        case _:
            return rest


def _key_of(fields: Row) -> Hashable | None:
    if isinstance(fields.get("role"), str) and "content" in fields:
        return ("message", fields["role"], _json(fields["content"]), _json(_calls(fields)))
    if "parameters" in fields and "name" in fields:
        return ("tool", _json(fields))
    if "value" in fields and "explanation" in fields:
        return ("score", _json({key: fields.get(key) for key in ("value", "answer", "explanation", "metadata")}))
    return None


def _calls(fields: Row) -> list[Any]:
    return [(call.get("function"), call.get("arguments")) for call in objects_in(fields.get("tool_calls"))]


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
