"""`BatchedModel`: a model whose questions are answered in batches, so that an answer may come a day later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol, cast

from vivavoce.errors import Deferred, ModelFault
from vivavoce.features.batches.service import MODE, BatchService
from vivavoce.models.cache import KeptReplies, kept_reply, reply_key
from vivavoce.models.model import Model, ModelReply, Request, identity_of
from vivavoce.records.score import Usage


class RejectableReplies(KeptReplies, Protocol):
    """Where replies are kept, and which takes note of those that cannot be used."""

    def reject(self, key: str) -> None:
        """Take note that the reply of a key cannot be used."""
        ...


class Asking(Protocol):
    """Takes the questions that have no answer yet."""

    async def ask(
        self, model: BatchedModel, key: str, request: Request, unusable: ModelFault | None
    ) -> Deferred | ModelFault:
        """Take a question and return why there is no answer: it will come later, or never.

        `unusable` says what is wrong with the answer that is kept, None where there is none.
        """
        ...

    def is_asking(self, key: str) -> bool:
        """Say whether a question is in a batch that has not been taken back as a whole."""
        ...

    def used(self, key: str) -> Usage | None:
        """Return what the answer to a question used, where that is in no score yet."""
        ...


class BatchedModel:
    """Gives the answers that are there, and hands every other question on, never to the model itself."""

    def __init__(self, model: Model, service: BatchService, replies: RejectableReplies, asking: Asking) -> None:
        self.name = model.name
        self.identity = identity_of(model)
        self.settings = cast("Mapping[str, Any]", getattr(model, "settings", {}))
        self.service = service
        self.replies = replies
        self._asking = asking

    async def complete(self, request: Request) -> ModelReply:
        """Answer from what is kept.

        Raises:
            Deferred: the answer will come later.
            ModelFault: there will be none.
            StoreError: what is kept cannot be read.
        """
        key = reply_key(self.identity, self.settings, request)
        kept = self.replies.get(key)
        if kept is None:
            raise await self._asking.ask(self, key, request, None)
        try:
            reply = kept_reply(self.name, kept, request.schema)
        except ModelFault as unusable:
            self.replies.reject(key)
            raise await self._asking.ask(self, key, request, unusable) from unusable
        if reply.applied.get("mode") == MODE and self._asking.is_asking(key):  # what it used is not known yet
            raise await self._asking.ask(self, key, request, None)
        used = self._asking.used(key)
        return reply if used is None else replace(reply, usage=used)

    async def close(self) -> None:
        """Do nothing: the connections to the service are needed longer than whoever asks."""
