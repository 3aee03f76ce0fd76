"""`Access`: which model of which provider, and the key to it."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Unpack, cast

import httpx2
from httpx2 import AsyncBaseTransport, AsyncClient
from pydantic_ai.direct import model_request
from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAPIError,
    ModelConnectionError,
    ModelHTTPError,
    ModelRateLimitError,
    ModelRequestTimeout,
    ModelServerError,
    ModelTimeoutError,
    ModelUnavailableError,
    UnexpectedModelBehavior,
    UserError,
)
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters, infer_model
from pydantic_ai.models import Model as LibraryModel
from pydantic_ai.providers import Provider, infer_provider_class
from pydantic_ai.settings import ModelSettings

from vivavoce.errors import Fault, ModelFault, RateLimited, UsageError, did_you_mean
from vivavoce.models.answers import read_answer
from vivavoce.models.model import ModelReply, Pacing, Request, Schema
from vivavoce.models.modes import asked_again
from vivavoce.models.openai import ANSWERED, EXPECTED_OUTPUT, NOT_CHARGED
from vivavoce.models.prices import VARIABLE, price_of
from vivavoce.models.providers.pydantic_ai.translation import (
    Answer,
    from_library,
    parameters,
    to_library,
    usage_of_response,
)
from vivavoce.models.structured import StructuredAnswer
from vivavoce.pacing.limits import Breaker, Budget, Limiter, retrying
from vivavoce.pacing.loops import PerLoop
from vivavoce.records.score import Usage, charge, shorten, total
from vivavoce.wire.http import Limits


@dataclass(frozen=True, slots=True)
class Access:
    """A provider and its model, as the library calls them; without a key the provider's own tools look for one.

    The key is in no repr.
    """

    provider: str
    model: str
    api_key: str | None = field(default=None, repr=False)

    def check(self) -> None:
        """Find out whether the provider can be asked at all; nothing is sent.

        Raises:
            UsageError: its own package is not installed.
        """
        self._provider_class()

    def connect(self, transport: AsyncBaseTransport | None = None) -> Model:
        """Return the library's model with connections of its own, for one event loop, or with those of a transport.

        Raises:
            UsageError: its package or something in its configuration is missing.
        """
        provider = self._provider_class()
        try:
            over = {} if transport is None else {"http_client": AsyncClient(transport=transport)}
            opened = provider(api_key=self.api_key, **over) if self.api_key else provider(**over)
            return infer_model(f"{self.provider}:{self.model}", lambda _: opened)
        except (UserError, ValueError) as error:
            raise UsageError(f"cannot use a {self.provider} model: {error}") from error

    def hide_key(self, text: str) -> str:
        """Return a text with the key cut out."""
        return text.replace(self.api_key, "***") if self.api_key else text

    def _provider_class(self) -> Callable[..., Provider[Any]]:
        try:
            return infer_provider_class(self.provider)
        except ImportError as error:
            extra = self.provider.partition("-")[0]
            hint = f"pip install 'pydantic-ai-slim[{extra}]'"
            raise UsageError(f"a model of {self.provider} needs another package; install it with: {hint}") from error


def fault_of(error: Exception, name: str) -> Fault:
    """Return the fault that an exception stands for, while the model `name` was asked."""
    if isinstance(error, Fault):
        return error
    if isinstance(error, ModelAPIError):
        return _refused(error, name)
    if isinstance(error, ContentFilterError):
        return ModelFault(f"{name} declined to answer", kind="refusal", evidence=shorten(error.body or str(error)))
    if isinstance(error, UnexpectedModelBehavior):
        return ModelFault(f"{name}: the answer is malformed: {error.message}", kind="format", evidence=error.body)
    if isinstance(error, UserError):
        return ModelFault(f"{name} does not support this request: {error}", kind="unsupported")
    return ModelFault(f"asking {name} raised {type(error).__name__}: {error}")


def _refused(error: ModelAPIError, name: str) -> Fault:
    if isinstance(error, ModelTimeoutError | ModelRequestTimeout):
        return ModelFault(f"{name}: no answer before the timeout", kind="timeout", retryable=True)
    if isinstance(error, ModelConnectionError):
        return ModelFault(f"{name}: the connection broke: {error}", kind="connection", retryable=True)
    evidence = shorten(_text(error.body) if error.body else str(error))
    status = error.status_code if isinstance(error, ModelHTTPError) else None
    message = f"{name} answered {status}" if status else f"{name} refused"
    waits = isinstance(error, ModelUnavailableError) and error.retry_after is not None
    if status is None and type(error) is ModelAPIError:  # without a subclass: the answer could not be read
        return ModelFault(f"{name}: the answer is malformed", kind="format", evidence=evidence)
    if isinstance(error, ModelRateLimitError) or waits:
        wait = error.retry_after
        return RateLimited(message, retry_after=wait, evidence=evidence, blame=ModelFault.blame, status=status)
    may_pass = isinstance(error, ModelUnavailableError | ModelServerError) or (status or 0) >= 500
    return ModelFault(message, kind="http", evidence=evidence, retryable=may_pass, status=status)


def _text(body: object) -> str:
    return body if isinstance(body, str) else json.dumps(body, default=str)


_NOTHING: dict[str, Any] = {"type": "message", "role": "assistant", "content": [], "stop_reason": "end_turn"}
"""An answer that ends the library's work; nobody reads it."""


@dataclass(frozen=True, slots=True)
class Unsent:
    """The body of a request, and the optional features of the provider (`anthropic-beta`) that it needs."""

    body: dict[str, Any]
    features: tuple[str, ...]


KEPT: ContextVar[list[Unsent]] = ContextVar("requests that are kept")
"""Where the requests of the task go."""


class Keeping(httpx2.AsyncBaseTransport):
    """Keeps each request in `KEPT` and sends none."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Keep a request."""
        body = cast("dict[str, Any]", json.loads(await request.aread()))
        body.pop("stream", None)
        features = [one.strip() for one in request.headers.get("anthropic-beta", "").split(",")]
        KEPT.get().append(Unsent(body, tuple(feature for feature in features if feature)))
        empty = {**_NOTHING, "id": "", "model": body.get("model"), "usage": {"input_tokens": 0, "output_tokens": 0}}
        return httpx2.Response(200, json=empty, request=request)


_SPELLINGS = {"max_completion_tokens": "max_tokens", "reasoning_effort": "thinking", "stop": "stop_sequences"}
"""Settings by their names on OpenAI's wire, where the library has another."""
_OURS = frozenset(("timeout", "request_timeout", "first_event_timeout", "max_retries"))
"""Settings of the library that limits and tries decide here."""
_MOVED = frozenset(("thinking", "cache"))
"""Settings that the library takes out when it prepares a request, though they are sent."""
_DEFAULTS: Mapping[str, Mapping[str, Any]] = {"anthropic": {"max_tokens": 16_384}}
"""The settings that are sent by default: Anthropic's wire demands a bound, and answers one below 21,000 tokens in
one piece."""


@dataclass(frozen=True, slots=True)
class _Question:
    """A request in the library's words; `size` is about its bytes, `applied` the record of how it was sent."""

    messages: list[ModelMessage]
    parameters: ModelRequestParameters
    settings: ModelSettings
    applied: dict[str, Any]
    size: int

    def repaired(self, answer: str, problem: str, schema: Schema) -> _Question:
        """Return the question with an answer and its problem added, as a request to repair it."""
        added = asked_again(answer, problem, schema)
        size = self.size + sum(len(message.text) for message in added)
        return replace(self, messages=[*self.messages, *to_library(added)], size=size)


class PydanticAIModel:
    """A model of a provider with a wire of its own, that answers in text, with tool calls, or in JSON.

    JSON is asked for natively where the library knows that the model can, and otherwise as the arguments of a tool. An
    answer outside the schema gets one chance to be repaired. Limits, retries, breaker and budget are those of
    `OpenAIModel`. A setting keeps the name it has on OpenAI's wire; those of one provider begin with its name, as in
    `anthropic_thinking`. Each event loop has connections of its own.

    Raises:
        UsageError: a setting is not known, the provider's package is not installed, or the cost is limited and the
            price of the model unknown.
    """

    def __init__(
        self,
        name: str,
        access: Access,
        *,
        settings: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        **pacing: Unpack[Pacing],
    ) -> None:
        access.check()
        limits = limits or Limits()
        self.name = self.identity = name
        self.access = access
        self.settings = self._checked(settings or {})
        self.limiter = pacing.get("limiter") or Limiter(limits.concurrency)
        self._timeout = limits.timeout
        self._rate = pacing.get("rate")
        self._tries = pacing.get("tries", 4)
        self._budget = pacing.get("budget") or Budget()
        self._breaker = Breaker()
        self._price = price_of(name)
        if self._price is None and self._budget.limits_cost:
            raise UsageError(
                f"the price of {name} is unknown, so its cost cannot be limited; add it to the JSON file in "
                f"{VARIABLE}, or limit the calls instead"
            )
        self._models = PerLoop(access.connect)
        self._keeping = PerLoop(lambda: access.connect(Keeping()))

    async def complete(self, request: Request) -> ModelReply:
        """Answer a request; the first answer counts unless a schema is asked for and missed.

        Raises:
            ModelFault: the provider failed, the model declined, or twice missed the schema (kind `format`); it has the
                usage of the answers that came.
            RateLimited: it asked to slow down, and kept asking.
            BudgetExhausted: it may cost more than is left.
        """
        question = self._question(request)
        usages: list[Usage] = []
        try:
            return await self._answered(question, request.schema, usages)
        except Fault as fault:
            charge(fault, *usages)
            raise

    async def _answered(self, question: _Question, schema: Schema | None, usages: list[Usage]) -> ModelReply:
        response = await self._ask(question, usages)
        answer = self._answer_of(response, question, schema)
        if schema is None or (answer.calls and answer.json is None):
            return _reply(question, response, answer, total(usages))
        try:
            read = read_answer(_json(answer), schema)
            return _reply(question, response, answer, total(usages), read)
        except ValueError as error:
            question = question.repaired(_json(answer), str(error), schema)
        response = await self._ask(question, usages)
        answer = self._answer_of(response, question, schema)
        try:
            read = read_answer(_json(answer), schema)
        except ValueError as error:
            message = f"{self.name} twice answered outside the JSON schema: {error}"
            raise ModelFault(message, kind="format", evidence=_json(answer)) from error
        return _reply(question, response, answer, total(usages), read, repaired=True)

    async def unsent(self, request: Request) -> Unsent:
        """Return what would be sent to ask a request; nothing is.

        Raises:
            ModelFault: the request cannot be put to this model (kind `unsupported`).
        """
        question, kept = self._question(request), list[Unsent]()
        before = KEPT.set(kept)
        try:
            await self._put(self._keeping.get(), question)
        except UsageError:
            raise
        except Exception as error:
            if not kept:  # once it is kept, nothing that becomes of the empty answer counts
                raise fault_of(error, self.name) from error
        finally:
            KEPT.reset(before)
        return kept[0]

    async def close(self) -> None:
        """Close the connections of this event loop; a later request opens new ones."""
        for opened in (self._models.take(), self._keeping.take()):
            if opened is not None:
                async with opened:  # leaving the context closes it
                    pass

    async def _ask(self, question: _Question, usages: list[Usage]) -> ModelResponse:
        """Ask, and add the usage of the answer."""
        response = await retrying(
            lambda: self._once(question), tries=self._tries, limiter=self.limiter, breaker=self._breaker
        )
        usages.append(self._priced(response))
        return response

    async def _once(self, question: _Question) -> ModelResponse:
        estimate = question.size / 4 + (question.settings.get("max_tokens") or 0)
        if self._rate is not None:
            await self._rate.acquire(estimate)
        reservation = await self._budget.admit(self._bound(question))
        cost, tokens = None, estimate
        try:
            response = await self._put(self._models.get(), question)
            if usage_of_response(response):
                usage = self._priced(response)
                cost, tokens = usage.cost, usage.input_tokens + usage.output_tokens
            return response
        except UsageError:
            raise
        except Exception as error:
            fault = fault_of(error, self.name)
            if fault.kind in NOT_CHARGED:
                cost, tokens = 0.0, 0
            elif fault.kind in ANSWERED:
                charge(fault, Usage(calls=1))
            evidence = fault.evidence and self.access.hide_key(fault.evidence)
            raise fault.restate(self.access.hide_key(str(fault)), evidence=evidence) from error
        finally:
            self._budget.settle(reservation, cost)
            if self._rate is not None:
                self._rate.settle(estimate, tokens)

    async def _put(self, model: LibraryModel, question: _Question) -> ModelResponse:
        return await model_request(
            model,
            question.messages,
            model_settings=question.settings,
            model_request_parameters=question.parameters,
            instrument=False,
        )

    def _bound(self, question: _Question) -> float:
        """Return what a request may cost at most, in US dollars: no token is shorter than three bytes on average."""
        if self._price is None or not self._budget.limits_cost:
            return 0.0
        output = question.settings.get("max_tokens") or EXPECTED_OUTPUT
        return self._price.cost(Usage(input_tokens=-(-question.size // 3), output_tokens=output))

    def _priced(self, response: ModelResponse) -> Usage:
        """Return the usage of one answer with its cost; one call where the answer has no usage."""
        usage = usage_of_response(response)
        if usage is None:
            return Usage(calls=1)
        return usage if self._price is None else usage.model_copy(update={"cost": self._price.cost(usage)})

    def _question(self, request: Request) -> _Question:
        model = self._models.get()
        native = model.profile.get("supports_json_schema_output", False) and not request.tools
        request_parameters = parameters(request, native)
        settings_given = {
            **_DEFAULTS.get(self.access.provider, {}),
            **self.settings,
            **self._checked(request.settings),
        }
        settings_sent = _accepted(model, settings_given, request_parameters)
        mode = ("json_schema" if native else "tool") if request.schema else "tools" if request.tools else "text"
        applied = {
            "mode": mode,
            **{key: value if _library_name(key) in settings_sent else None for key, value in settings_given.items()},
        }
        if "max_retries" not in model.unsupported_settings:
            settings_sent["max_retries"] = 0
        settings = cast("ModelSettings", {**settings_sent, "request_timeout": self._timeout})
        messages = to_library(request.messages)
        size = len(ModelMessagesTypeAdapter.dump_json(messages)) if self._rate or self._budget.limits_cost else 0
        return _Question(messages, request_parameters, settings, applied, size)

    def _checked(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        known = {*ModelSettings.__annotations__, *_SPELLINGS} - _OURS
        prefix = self.access.provider.partition("-")[0] + "_"
        for key in settings:
            if key not in known and not key.startswith(prefix):
                raise UsageError(f"{self.name}: '{key}' is not a request setting{did_you_mean(key, known)}")
        return dict(settings)

    def _answer_of(self, response: ModelResponse, question: _Question, schema: Schema | None) -> Answer:
        answer = from_library(response, question.parameters)
        if response.finish_reason == "content_filter":
            raise ModelFault(f"{self.name} declined to answer", kind="refusal", evidence=shorten(answer.text))
        if response.finish_reason == "length" and schema is not None:
            message = f"the answer of {self.name} was cut off at the token limit"
            raise ModelFault(message, kind="format", evidence=shorten(_json(answer)))
        return answer


def _library_name(key: str) -> str:
    return _SPELLINGS.get(key, key)


def _accepted(
    model: LibraryModel, settings: Mapping[str, Any], request_parameters: ModelRequestParameters
) -> dict[str, Any]:
    """Return the settings that the model takes, by their names in the library, which drops the others."""
    renamed = {_library_name(key): value for key, value in settings.items()}
    if isinstance(stop := renamed.get("stop_sequences"), str):
        renamed["stop_sequences"] = [stop]
    if not renamed:
        return renamed
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # dropped settings are in the record of the request
        prepared, _ = model.prepare_request(cast("ModelSettings", renamed), request_parameters)
    accepted = (set(prepared or ()) | _MOVED) - model.unsupported_settings
    return {key: value for key, value in renamed.items() if key in accepted}


def _json(answer: Answer) -> str:
    return answer.text if answer.json is None else answer.json


def _reply(
    question: _Question,
    response: ModelResponse,
    answer: Answer,
    usage: Usage | None,
    read: StructuredAnswer | None = None,
    repaired: bool = False,
) -> ModelReply:
    *sent, received = ModelMessagesTypeAdapter.dump_python([*question.messages, response], mode="json")
    return ModelReply(
        text=answer.text if read is None else _json(answer),
        parsed=read and read.parsed,
        tool_calls=() if read is not None else answer.calls,
        usage=usage,
        applied=question.applied if read is None else read.noted({**question.applied, "repaired": repaired}),
        raw={"request": {"messages": sent, "settings": dict(question.settings)}, "response": received},
        checked=read and read.checked,
    )
