"""A question as the key that its reply is kept under, and a reply as the text that is kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from typing import Any, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from vivavoce.messages import AnyMessage, ToolCall, describe, read_messages
from vivavoce.models.model import ModelReply, Request, Schema
from vivavoce.models.structured import wire_schema
from vivavoce.records.usage import Usage


def reply_key(identity: str, settings: Mapping[str, Any], request: Request) -> str:
    """Return the key of a request to a model with settings of its own: 32 hexadecimal digits.

    It covers all that decides the answer: the identity of the model (`identity_of`), messages, schema, tools and
    settings as they would be sent, the trial, the trial of the sample, and the attempt. It does not cover how JSON is
    asked for: the model decides that.
    """
    rest: dict[str, Any] = {
        "settings": {**settings, **request.settings},
        "tools": list(request.tools),
        "trial": request.trial,
    }
    if request.sample_trial:  # left out for the first trial, whose replies have always had this key
        rest["sample_trial"] = request.sample_trial
    if request.attempt:  # left out for the first attempt, for the same reason
        rest["attempt"] = request.attempt
    parts = (_text(identity), request.wire.json, _schema(request.schema), _sorted(rest))
    return blake2b(b"\n".join(parts), digest_size=16).hexdigest()


def encode_reply(reply: ModelReply) -> str:
    """Return a reply as JSON text, without the raw exchange, of which only the repair of an answer is kept."""
    kept: dict[str, Any] = {
        "text": reply.text,
        "parsed": reply.parsed,
        "tool_calls": [call.to_dict() for call in reply.tool_calls],
        "usage": reply.usage and dict(vars(reply.usage)),
        "applied": dict(reply.applied),
    }
    if repair := _repair(reply):
        kept["repair"] = repair
    return _text(kept).decode()


def decode_repair(text: str) -> list[AnyMessage]:
    """Return what the text of `encode_reply` has of a repair: the first answer, and the request for a better one.

    Raises:
        ValueError: it is something else.
    """
    return read_messages(_decoded(text).get("repair") or [])


def decode_reply(text: str) -> ModelReply:
    """Read the text of `encode_reply`.

    Raises:
        ValueError: it is something else.
    """
    data = _decoded(text)
    try:
        said, parsed, usage = data["text"], data["parsed"], data["usage"]
        if not isinstance(said, str) or not isinstance(parsed, dict | None):
            raise ValueError("the text must be text, and what is parsed an object")
        return ModelReply(
            text=said,
            parsed=cast("dict[str, Any] | None", parsed),
            tool_calls=[ToolCall.model_validate(call) for call in data["tool_calls"]],
            usage=None if usage is None else Usage.model_validate(usage),
            applied=dict(data["applied"]),
        )
    except KeyError as error:
        raise ValueError(f"{error} is missing") from error
    except TypeError as error:
        raise ValueError("it has another shape") from error
    except ValidationError as error:
        raise ValueError(describe(error)) from error


def _repair(reply: ModelReply) -> list[Mapping[str, object]]:
    """Return the last two messages of a request whose answer was repaired, where they are those of a chat."""
    raw = cast("Mapping[str, Mapping[str, list[Mapping[str, object]]]]", reply.raw or {})
    last = raw.get("request", {}).get("messages", [])[-2:] if reply.applied.get("repaired") else []
    return last if [one.get("role") for one in last] == ["assistant", "user"] else []


def _decoded(text: str) -> Any:
    with suppress(ValueError):  # what the quick reader refuses is read, or explained, by the standard library
        return from_json(text)
    return json.loads(text)


_SORTED = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=str)


def _schema(schema: Schema | None) -> bytes:
    return _class_schema(schema) if isinstance(schema, type) else _sorted(schema and dict(schema))


@lru_cache(maxsize=256)
def _class_schema(shape: type[BaseModel]) -> bytes:
    return _sorted(wire_schema(shape))


def _sorted(value: object) -> bytes:
    """Return the same JSON text for equal values; an object that JSON does not know is its `str`."""
    return _SORTED.encode(value).encode()


def _text(value: object) -> bytes:
    """Return JSON text, keys in their order: a conversation is long, and this is much faster."""
    try:
        return to_json(value, inf_nan_mode="constants", fallback=str)
    except PydanticSerializationError:  # text that is not UTF-8: json escapes it
        return json.dumps(value, default=str).encode()
