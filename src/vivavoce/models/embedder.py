"""The port to embeddings: texts become vectors, and texts that mean alike get vectors of like direction."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Protocol, cast

from pydantic import BaseModel, Field, FiniteFloat, ValidationError

from vivavoce.errors import Fault, ModelFault, UsageError, did_you_mean
from vivavoce.messages import describe
from vivavoce.models.endpoints import ENDPOINTS, OPENAI
from vivavoce.models.openai import NOT_CHARGED
from vivavoce.models.prices import Price, price_of
from vivavoce.pacing.limits import Breaker, Budget, Limiter, retrying
from vivavoce.plugins import lazy
from vivavoce.records.score import Usage
from vivavoce.wire.chat import read_usage
from vivavoce.wire.http import Answer, Client, Limits, checked_url

Vector = Sequence[float]

TEXTS_PER_REQUEST = 256
"""Below what every known endpoint takes at once."""


class Embedder(Protocol):
    """Makes vectors of texts; `name` is that of the model, with its provider."""

    name: str

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return a vector for each text, in their order and all of one length.

        Raises:
            ModelFault: there is no answer, or it does not fit.
        """
        ...

    async def close(self) -> None:
        """Release what it holds."""
        ...


EmbedderLike = str | Embedder
"""The types that are accepted wherever an embedder is needed."""


def as_embedder(thing: EmbedderLike) -> Embedder:
    """Return an embedder as it is, or open the one of a name; nothing is sent before it is asked something.

    `local` runs on this machine. `PROVIDER:NAME` takes address and key from the environment; `http://host/v1#NAME` asks
    that endpoint, without a key.

    Raises:
        UsageError: the name has no known form, or an address or a key is missing.
        MissingExtra: `local` needs `vivavoce[embed]`.
    """
    if not isinstance(thing, str):
        return thing
    if thing == "local":
        return cast("Embedder", lazy("vivavoce.models.local_embedder:LocalEmbedder")())
    if thing.startswith(("http://", "https://")):
        base_url, _, model = thing.partition("#")
        if not model:
            raise UsageError(f"embedder '{thing}': the model is missing; write {base_url}#NAME")
        return OpenAIEmbedder(model, base_url=base_url)
    provider, _, model = thing.partition(":")
    if not model:
        raise UsageError(f"embedder '{thing}': a name is local, PROVIDER:NAME or http://host/v1#NAME")
    if provider not in ENDPOINTS:
        raise UsageError(f"embedder '{thing}': no provider '{provider}'{did_you_mean(provider, ENDPOINTS)}")
    endpoint = ENDPOINTS[provider]
    base_url = endpoint.base_url(thing)
    return OpenAIEmbedder(model, base_url=base_url, api_key=endpoint.key(thing, base_url))


async def vectors_of(embedder: Embedder, texts: Sequence[str]) -> list[Vector]:
    """Return a vector for each text, from whatever embedder, which is not asked for none.

    Raises:
        ModelFault: it failed, or gave another number of vectors, vectors of two lengths, or what is not a number.
    """
    vectors = await embedder.embed(texts) if texts else []
    if len(vectors) != len(texts):
        raise ModelFault(f"{embedder.name} returned {len(vectors)} vectors for {len(texts)} texts", kind="format")
    if len({len(vector) for vector in vectors}) > 1 or not all(math.isfinite(x) for v in vectors for x in v):
        raise ModelFault(
            f"{embedder.name} returned vectors that cannot be compared: different lengths, or not numbers",
            kind="format",
        )
    return vectors


class _Row(BaseModel):
    index: int
    embedding: list[FiniteFloat] = Field(min_length=1)


class _Payload(BaseModel):
    data: list[_Row]
    usage: object = None


class OpenAIEmbedder:
    """An embedding model behind an OpenAI-compatible `/embeddings` endpoint.

    Failures that may pass are tried `tries` times in all. Each request holds a slot of its limiter and counts against
    `budget`; what the endpoint cannot take, such as a text that is too long, is a failure and never cut.

    Source of the format: OpenAI's reference of `POST /embeddings`.

    Raises:
        UsageError: `base_url` is not a web address, or the cost is limited and the price of the model unknown.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str = OPENAI,
        api_key: str | None = None,
        limits: Limits | None = None,
        budget: Budget | None = None,
        tries: int = 4,
    ) -> None:
        limits, key = limits or Limits(), (api_key or "").strip()
        self.model = model
        self.name = f"openai:{model}" if base_url == OPENAI else f"{base_url}#{model}"
        self._url = checked_url(base_url, "base_url").rstrip("/") + "/embeddings"
        self._client = Client(limits, [key], ModelFault)
        self._headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
        self._limiter, self._breaker, self._tries = Limiter(limits.concurrency), Breaker(), tries
        self._budget = budget or Budget()
        self._price: Price | None = price_of(self.name)
        if self._price is None and self._budget.limits_cost:
            raise UsageError(f"the price of {self.name} is unknown, so its cost cannot be limited; limit the calls")

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return a vector for each text, asking for `TEXTS_PER_REQUEST` at a time.

        Raises:
            ModelFault: the endpoint failed, or its answer does not fit (kind `format`).
            RateLimited: it asked to slow down, and kept asking.
            BudgetExhausted: it may cost more than is left.
        """
        vectors: list[Vector] = []
        for start in range(0, len(texts), TEXTS_PER_REQUEST):
            some = [_encodable(text) for text in texts[start : start + TEXTS_PER_REQUEST]]
            answer = await retrying(
                lambda some=some: self._once(some), tries=self._tries, limiter=self._limiter, breaker=self._breaker
            )
            vectors += answer
        if len({len(vector) for vector in vectors}) > 1:
            raise ModelFault(f"{self.name} returned vectors of different lengths", kind="format")
        return vectors

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _once(self, texts: Sequence[str]) -> list[Vector]:
        body = json.dumps({"model": self.model, "input": texts, "encoding_format": "float"}).encode()
        bound = None if self._price is None else self._price.cost(Usage(input_tokens=-(-len(body) // 3)))
        reservation = await self._budget.admit(bound if self._budget.limits_cost else 0.0)
        cost = None
        try:
            answer = await self._client.request("POST", self._url, body, self._headers, repeatable=True)
            vectors, usage = _vectors_of(answer, len(texts))
            cost = self._price and usage and self._price.cost(usage)
            return vectors
        except Fault as fault:
            if fault.kind in NOT_CHARGED:
                cost = 0.0
            raise
        finally:
            self._budget.settle(reservation, cost)


def _vectors_of(answer: Answer, count: int) -> tuple[list[Vector], Usage | None]:
    try:
        payload = _Payload.model_validate(answer.json())
    except ValidationError as error:
        raise answer.malformed_fault(f"is not a list of embeddings: {describe(error)}") from error
    rows = sorted(payload.data, key=lambda row: row.index)
    if [row.index for row in rows] != list(range(count)):
        raise answer.malformed_fault(f"does not have {count} embeddings, one for each text")
    return [row.embedding for row in rows], read_usage(payload.usage)


def _encodable(text: str) -> str:
    """Return a text with half characters replaced, which no endpoint reads."""
    return text.encode("utf-8", "replace").decode()
