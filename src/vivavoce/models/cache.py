"""`CachedModel`: asks a question once, and from then on answers it from what was kept."""

from __future__ import annotations

import asyncio
import copy
import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol, cast

from vivavoce.errors import ModelFault, StoreError
from vivavoce.messages import HumanMessage
from vivavoce.models.answers import check_answer
from vivavoce.models.attempts import REPEAT
from vivavoce.models.model import Model, ModelReply, Request, Schema, identity_of
from vivavoce.models.recording import decode_reply, encode_reply, reply_key
from vivavoce.records.counting import to_number
from vivavoce.records.reply import StoredReply
from vivavoce.records.usage import Usage, usage_of
from vivavoce.safe_text import safe

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
    """A model whose replies are kept, and given again to the same question; `trial` tells repetitions apart.

    A cached reply has `cached` in `applied`, and a usage of no calls, no tokens and no cost, for nothing was spent.
    What failed is never kept, nor is an empty reply, which is how some endpoints decline, nor one without the JSON that
    was asked for. A cached reply outside its schema, which a file may have brought, is asked for again and replaced.

    Of identical questions asked at the same time one is sent, and all get its reply or its failure. When the task that
    sent it is cancelled, the next one sends it again. `offline` never asks the model: see `OfflineModel`. One that is
    `anonymous` is always asked, for nobody knows whose a reply of that name would be.
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
        """Answer from what is kept, or ask.

        Raises:
            ModelFault: the model failed; offline, no such question was asked before (kind `not_recorded`), or what is
                kept is outside the schema (kind `format`).
            RateLimited: it asked to slow down, and kept asking.
            StoreError: what is kept cannot be read, or the reply cannot be kept.
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
        return await self._ask(place, request)

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
            log.warning("%s: the second try of a test is replayed with replies to the first one", safe(self.name))
        return kept

    async def close(self) -> None:
        """Close the model; the replies belong to whoever opened them."""
        await self._model.close()

    async def _ask(self, place: tuple[asyncio.AbstractEventLoop, str], request: Request) -> ModelReply:
        asked = self._asking[place] = place[0].create_future()
        outcome: str | Exception | None = None
        try:
            reply = await self._model.complete(request)
            outcome = encode_reply(reply)
            if _answers(request, reply):
                await self._replies.put(StoredReply(place[1], self.name, outcome, time.time()))
            return reply
        except Exception as error:
            outcome = error
            raise
        finally:
            del self._asking[place]
            asked.set_result(outcome)  # None where this task was cancelled: another one goes on


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
    parsed, applied = reply.parsed, reply.applied
    if schema is not None and parsed is not None:
        try:
            answer = check_answer(parsed, schema)
            parsed, applied = answer.parsed, answer.noted(applied)
        except ValueError as error:
            said = f"a cached reply of {name} is outside the JSON schema: {error}; ask or export it again"
            raise ModelFault(said, kind="format", evidence=reply.text) from error
    return ModelReply(
        reply.text, parsed, reply.tool_calls, Usage(cached_calls=1, cost=0.0), {**applied, "cached": True}
    )


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
