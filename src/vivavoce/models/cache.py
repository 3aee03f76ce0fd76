"""Kept replies: a model asks a question once, and later answers it from the store or from a cassette.

It is JSONL. The first line says what it is, `{"vivavoce_replies": 1}`; each other one is a reply with the key of its
question: `{"key", "model", "created_at", "reply": {"text", "parsed", "tool_calls", "usage", "applied"}}`. The questions
are not in it.
"""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import os
import re
import secrets
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from vivavoce.errors import ModelFault, Problem, StoreError, UsageError
from vivavoce.files.rows import read_rows
from vivavoce.messages import AnyMessage, HumanMessage, ToolCall, describe, read_messages
from vivavoce.models.answers import check_answer
from vivavoce.models.model import REPEAT, Model, ModelReply, Request, Schema, identity_of
from vivavoce.models.structured import wire_schema
from vivavoce.records.replies import StoredReply
from vivavoce.records.score import Usage, to_number, usage_of
from vivavoce.safe_text import safe


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
    if reply.applied.get("repaired") and (repair := _repair(reply)):
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
            raise ValueError("the reply must be text, and its parsed value an object")
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
        raise ValueError("it has an unexpected format") from error
    except ValidationError as error:
        raise ValueError(describe(error)) from error


def _repair(reply: ModelReply) -> list[Mapping[str, object]]:
    """Return the last two messages of the request for a repaired answer, where they are those of a chat."""
    raw = cast("Mapping[str, Mapping[str, list[Mapping[str, object]]]]", reply.raw or {})
    last = raw.get("request", {}).get("messages", [])[-2:]
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


FORMAT = 1
_HEAD = "vivavoce_replies"


class AllReplies(Protocol):
    """Replies that can be written to a file, such as `Store.replies()`."""

    def all(self, models: Sequence[str] = ()) -> Iterator[StoredReply]:
        """Yield the cached replies, of these models or of all."""
        ...


class KeptReplies(AllReplies, Protocol):
    """Where the replies are, such as `Store.replies()`."""

    def get(self, key: str) -> str | None:
        """Return the reply of a key, None where there is none."""
        ...

    def add(self, more: Iterable[StoredReply], replacing: Collection[str] = ()) -> int:
        """Keep replies, all or none, and return how many were not there before; those of some keys are replaced."""
        ...


def export_replies(store: AllReplies, path: str | os.PathLike[str], models: Sequence[str] = ()) -> int:
    """Write the replies of a store, or of the models of these names in it, and return how many they are.

    An existing file is replaced once everything is written.

    Raises:
        UsageError: the file cannot be written.
        StoreError: the store cannot be read.
    """
    place = Path(path)
    beside = place.with_name(f".{secrets.token_hex(8)}.part")
    count = 0
    try:
        try:
            with beside.open("w", encoding="utf-8", newline="\n") as file:
                file.write(_line({_HEAD: FORMAT}))
                for reply in store.all(models):
                    file.write(_line({**reply._asdict(), "reply": json.loads(reply.reply)}))
                    count += 1
            os.replace(beside, place)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(Problem(f"cannot be written: {error.strerror or error}", place)) from error
    return count


def import_replies(store: KeptReplies, path: str | os.PathLike[str]) -> int:
    """Keep the replies of a file in a store, all or none, and return how many were not there before.

    A reply to a question that has one already changes nothing.

    Raises:
        UsageError: the file cannot be read, or a line is broken; it names file and line.
        StoreError: the store cannot be written.
    """
    return store.add(read_replies(Path(path)))


def read_replies(path: Path) -> Iterator[StoredReply]:
    """Yield the replies of a file.

    Raises:
        UsageError: the file cannot be read, or a line is broken; it names file and line.
    """
    rows = read_rows(path, "jsonl")
    line, head = next(rows, (1, dict[str, Any]()))
    version = head.get(_HEAD)
    if not isinstance(version, int):
        message = f'is not a file of replies: its first line is not {{"{_HEAD}": {FORMAT}}}'
        raise UsageError(Problem(message, path, line))
    if version > FORMAT:
        raise UsageError(
            Problem("was written by a newer vivavoce; upgrade it: pip install --upgrade vivavoce", path, line)
        )
    for line, row in rows:
        try:
            yield _reply(row)
        except ValueError as error:
            raise UsageError(Problem(str(error), path, line)) from error


def _reply(row: dict[str, Any]) -> StoredReply:
    key, model, created_at = row.get("key"), row.get("model"), row.get("created_at")
    if not isinstance(key, str) or not re.fullmatch("[0-9a-f]{32}", key):
        raise ValueError(f"key: expected 32 hexadecimal digits, got {key!r:.60}")
    if not isinstance(model, str):
        raise ValueError(f"model: expected a name, got {model!r:.60}")
    if not isinstance(created_at, int | float) or isinstance(created_at, bool):
        raise ValueError(f"created_at: expected seconds, got {created_at!r:.60}")
    text = json.dumps(row.get("reply"))
    try:
        decode_reply(text)
    except ValueError as error:
        raise ValueError(f"reply: {error}") from error
    return StoredReply(key, model, text, float(created_at))


def _line(data: dict[str, Any]) -> str:
    return json.dumps(data, separators=(",", ":")) + "\n"


log = logging.getLogger("vivavoce")

_SHOWN = 60
"""Characters of a question that an error shows."""


class Replies(Protocol):
    """Where replies are kept, such as `Store.replies()`.

    `next_step` says what to do about a question that has none while no model may be asked, empty where nothing can be
    said. `of_any_model` is whether replies of models in users' files are kept as well, although a file may change.
    """

    @property
    def next_step(self) -> str:
        """What to do about a question without a reply, in words."""
        ...

    @property
    def of_any_model(self) -> bool:
        """Whether replies of models in users' files are kept as well."""
        ...

    def get(self, key: str) -> str | None:
        """Return the reply of a key, None where there is none."""
        ...

    async def put(self, reply: StoredReply) -> None:
        """Keep a reply."""
        ...

    def reject(self, key: str) -> None:
        """Take note that the reply of a key cannot be used, so that the next one replaces it."""
        ...


class CachedModel:
    """A model whose replies are cached and reused for the same question; `trial` tells repetitions apart.

    A cached reply has `cached` in `applied`, and a usage of no calls, no tokens and no cost, as nothing was spent.
    Failures are never kept, nor is an empty reply, which is how some endpoints decline, nor one without the requested
    JSON. A cached reply outside its schema, such as one from a file, is requested again and replaced.

    Of identical concurrent questions one is sent, and all get its reply or its failure. When the task that
    sent it is cancelled, the next one sends it again. `offline` never asks the model: see `OfflineModel`. One that is
    `anonymous` is always asked, as its name does not say which model replied.
    """

    def __init__(self, model: Model, replies: Replies, *, offline: bool = False) -> None:
        self.name = model.name
        self.identity = identity_of(model)
        self.settings = cast("Mapping[str, Any]", getattr(model, "settings", {}))
        self._model = model
        self._replies = replies
        self._offline = offline
        self._warned = False
        self._anonymous = bool(getattr(model, "anonymous", False))
        self._asking: dict[tuple[asyncio.AbstractEventLoop, str], asyncio.Future[str | Exception | None]] = {}

    async def complete(self, request: Request) -> ModelReply:
        """Answer from the cache, or ask.

        Raises:
            ModelFault: the model failed; offline, no such question was asked before (kind `not_recorded`), or what is
                kept is outside the schema (kind `format`).
            RateLimited: it kept asking to slow down.
            StoreError: the cache cannot be read or written.
        """
        if self._anonymous and not self._offline:
            return await self._model.complete(request)
        key = reply_key(self.identity, self.settings, request)
        kept = self._replies.get(key)
        if kept is None and self._offline:
            kept = self._of_older_repeat(request)
        if kept is not None:
            try:
                return kept_reply(self.name, kept, request.schema)
            except ModelFault:
                self._replies.reject(key)
                if self._offline:
                    raise
        elif self._offline:
            raise not_recorded(self.name, request, self._replies.next_step)
        place = (asyncio.get_running_loop(), key)
        while (asked := self._asking.get(place)) is not None:
            outcome = await asyncio.shield(asked)
            if isinstance(outcome, Exception):
                raise _unpaid(outcome)
            if outcome is not None:
                return kept_reply(self.name, outcome, request.schema)
        asked = self._asking[place] = place[0].create_future()
        outcome: str | Exception | None = None
        try:
            reply = await self._model.complete(request)
            outcome = encode_reply(reply)
            if _answers(request, reply):
                await self._replies.put(StoredReply(key, self.name, outcome, time.time()))
            return reply
        except Exception as error:
            outcome = error
            raise
        finally:
            del self._asking[place]
            asked.set_result(outcome)  # None where this task was cancelled: another one goes on

    def _of_older_repeat(self, request: Request) -> str | None:
        """Return the reply to the same question in the first try of a test, None where there is none.

        Older runs kept one reply for both tries, and only so can they be replayed. Where a model may be asked, a repeat
        never gets it.
        """
        if request.attempt != REPEAT:
            return None
        kept = self._replies.get(reply_key(self.identity, self.settings, replace(request, attempt="")))
        if kept is not None and not self._warned:
            self._warned = True
            log.warning("%s: replaying the second attempt of a test with replies of the first", safe(self.name))
        return kept

    async def close(self) -> None:
        """Close the model; the opener of the cache closes it."""
        await self._model.close()


def kept_reply(name: str, kept: str, schema: Schema | None) -> ModelReply:
    """Return a reply of a model that was kept, as one that costs nothing.

    It may be of a file, so whether it matches the schema is not known before.

    Raises:
        ModelFault: it does not (kind `format`); its cause says why.
        StoreError: it is damaged.
    """
    try:
        reply = decode_reply(kept)
    except ValueError as error:
        raise StoreError(f"a cached reply of {name} is damaged: {error}") from error
    parsed, applied, checked = reply.parsed, reply.applied, None
    if schema is not None and parsed is not None:
        try:
            answer = check_answer(parsed, schema)
            parsed, applied, checked = answer.parsed, answer.noted(applied), answer.checked
        except ValueError as error:
            said = f"a cached reply of {name} is outside the JSON schema: {error}; ask or export it again"
            raise ModelFault(said, kind="format", evidence=reply.text) from error
    usage = Usage(cached_calls=1, cost=0.0)
    return ModelReply(reply.text, parsed, reply.tool_calls, usage, {**applied, "cached": True}, checked=checked)


def _unpaid(error: Exception) -> Exception:
    """Return the failure of a call for one more who waited for it: what it used counts once."""
    if usage_of(error) is None:
        return error
    again = copy.copy(error)
    vars(again)["usage"] = None
    again.__cause__ = error.__cause__
    return again


def _answers(request: Request, reply: ModelReply) -> bool:
    """Say whether a reply is what was asked for: JSON where that was, or else a call of a tool that was offered."""
    if request.schema is not None:
        return reply.parsed is not None or bool(request.tools and reply.tool_calls)
    return bool(reply.text.strip() or reply.parsed is not None or reply.tool_calls)


class OfflineModel:
    """A model that takes no key: its name, its settings and its identity, to answer from a cache offline."""

    def __init__(self, name: str, settings: Mapping[str, Any] | None = None, identity: str | None = None) -> None:
        self.name = name
        self.identity = identity or name
        self.settings = dict(settings or {})

    async def complete(self, request: Request) -> ModelReply:
        """Refuse.

        Raises:
            ModelFault: always, of kind `not_recorded`.
        """
        raise not_recorded(self.name, request)

    async def close(self) -> None:
        """Do nothing."""


def not_recorded(name: str, request: Request, next_step: str = "") -> ModelFault:
    """Return the failure of a question that would have to be asked, and may not be; `next_step` is what to do."""
    said = [message.text for message in request.messages if isinstance(message, HumanMessage)]
    words = " ".join(said[-1].split()) if said else ""
    shown = words if len(words) <= _SHOWN else f"{words[:_SHOWN]}…"
    repeats = [f"trial {to_number(request.sample_trial)} of the sample"] if request.sample_trial else []
    repeats += [f"trial {to_number(request.trial)}"] if request.trial else []
    repeats += [request.attempt] if request.attempt else []
    trial = f" ({', '.join(repeats)})" if repeats else ""
    then = f"; {next_step}" if next_step else ""
    return ModelFault(f"no recorded reply of {name} to {shown!r}{trial}{then}", kind="not_recorded")
