"""`OpenAIModel`: any model behind an OpenAI-compatible chat completions endpoint."""

from __future__ import annotations

import json
import re
from collections.abc import Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, Unpack

from vivavoce.errors import Fault, ModelFault, UsageError
from vivavoce.messages import AnyMessage
from vivavoce.models.answers import lacks_keys, read_answer
from vivavoce.models.endpoints import OPENAI, identity_at
from vivavoce.models.model import ModelReply, Pacing, Request, Schema
from vivavoce.models.modes import (
    CAPABILITIES,
    IN_MESSAGES,
    Mode,
    ask_for,
    asked_again,
    json_text,
    refuses_tools,
    step_down,
)
from vivavoce.models.prices import VARIABLE, price_of
from vivavoce.pacing.limits import Breaker, Budget, Limiter, RateLimit, retrying
from vivavoce.records.score import Usage, charge, shorten, total, usage_of
from vivavoce.validation import shows_options
from vivavoce.wire.chat import ChatEndpoint, Completion, checked_settings, wire_messages
from vivavoce.wire.http import Limits

_FIXED_TEMPERATURE = re.compile(r"(?:.*/)?(?:o[134]|gpt-5)(?![0-9a-z])")
"""Families of reasoning models, which refuse a request that sets a temperature."""
EXPECTED_OUTPUT = 4096
"""Tokens that an answer is taken to have at most, for a limit of the cost, where no setting bounds them."""
NOT_CHARGED = frozenset(("http", "rate_limit", "connection"))
"""Kinds of failure for which no tokens are charged; an answer that came too late or was not understood was made."""
ANSWERED = frozenset(("format", "size"))
"""Kinds of failure of an answer that came, and so was a call that counts."""


class OpenAIModel:
    """A model that answers in text, with tool calls, or in JSON that matches a schema.

    `name` is what records and prices call it, `openai:MODEL` or `http://host/v1#MODEL` unless it is given.
    `structured` is the way to ask for JSON. Unless it is given, the native `json_schema` is tried first, and a weaker
    one when the endpoint says that it does not know it. That is kept for this model at this address as long as the
    process lives, and so is that it knows no tools. An answer outside the schema gets one chance to be repaired; after
    two answers in a row for which the schema had been ignored, it is in the prompt.

    Failures that may pass are retried, up to `tries` (4) in all; each try holds a slot of `limiter`, waits for `rate`,
    and counts against `budget`. After five calls that failed alike for a reason that every call would meet, such as a
    wrong key, the others fail without being made.

    Raises:
        UsageError: `base_url` is not a web address, `settings` hold a part of the request that is made here, or the
            cost is limited and the price of the model unknown.
    """

    @shows_options
    def __init__(
        self,
        model: str,
        *,
        base_url: str = OPENAI,
        api_key: str | None = None,
        settings: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        structured: Mode | None = None,
        name: str | None = None,
        **pacing: Unpack[Pacing],
    ) -> None:
        limits = limits or Limits()
        self.model = model
        self.name = name or (f"openai:{model}" if base_url == OPENAI else f"{base_url}#{model}")
        self.settings = _settings(settings or {}, self.name)
        self.limiter = pacing.get("limiter") or Limiter(limits.concurrency)
        self._mode_chosen: Mode | None = structured
        self._rate = pacing.get("rate")
        self._tries = pacing.get("tries", 4)
        self._budget = pacing.get("budget") or Budget()
        self._breaker = Breaker()
        self._price = price_of(self.name)
        if self._price is None and self._budget.limits_cost:
            raise UsageError(
                f"the price of {self.name} is unknown, so its cost cannot be limited; add it to the JSON file "
                f"in {VARIABLE}, or limit the calls instead"
            )
        self._connect = partial(ChatEndpoint, base_url, api_key, fault=ModelFault)
        self._endpoint = self._connect(limits)
        self.identity = identity_at(base_url, model)

    async def complete(self, request: Request) -> ModelReply:
        """Answer a request; the first answer counts unless a schema is asked for and missed.

        Raises:
            ModelFault: the endpoint failed, the model declined, or twice missed the schema (kind `format`); it has the
                usage of the answers that came.
            RateLimited: it asked to slow down, and kept asking.
            BudgetExhausted: it may cost more than is left.
        """
        body, applied = self._body(request)
        used: list[Usage] = []
        try:
            if request.schema is not None:
                return await self._structured(request.schema, body, applied, used)
            completion = await (self._offer_tools(body, used) if request.tools else self._ask(body, used))
        except Fault as fault:
            charge(fault, *used)
            raise
        return ModelReply(
            text=completion.message.text,
            tool_calls=completion.message.tool_calls or (),
            usage=total(used),
            applied=applied,
            raw={"request": body, "response": completion.payload},
        )

    def body(self, request: Request) -> dict[str, Any]:
        """Return what is sent to ask a request, as long as the endpoint knows the way that JSON is asked for."""
        plain, _ = self._body(request)
        return plain if request.schema is None else ask_for(request.schema, self._mode, plain)

    def endpoint(self, limits: Limits) -> ChatEndpoint:
        """Return its address with the key to it and with other limits, for what is asked there besides."""
        return self._connect(limits)

    async def close(self) -> None:
        """Close the connections."""
        await self._endpoint.close()

    async def _structured(
        self, schema: Schema, plain: dict[str, Any], applied: dict[str, Any], used: list[Usage]
    ) -> ModelReply:
        while True:
            mode = self._mode
            body = ask_for(schema, mode, plain)
            try:
                completion = await self._ask(body, used)
                break
            except ModelFault as fault:
                weaker = step_down(mode, fault) if self._mode_chosen is None else None
                if weaker is None:
                    raise
                CAPABILITIES.weaken(self.identity, mode, weaker)
        applied["mode"], repaired = mode, False
        untold = None if mode in IN_MESSAGES else schema
        ignored = False
        while True:
            text, answer = json_answer(completion, mode, body), None
            if text is None:
                break
            try:
                answer = read_answer(text, schema)
                applied = answer.noted({**applied, "repaired": repaired})
                if untold is not None and self._mode_chosen is None:
                    self._learn(mode, repaired, ignored)
                break
            except ValueError as error:
                if repaired:
                    said = f"{self.name} twice answered outside the JSON schema: {error}"
                    raise ModelFault(said, kind="format", evidence=text) from error
                ignored = lacks_keys(text, schema)
                body, repaired = _with_repair(body, asked_again(text, str(error), untold)), True
            completion = await self._ask(body, used)
        message = completion.message
        return ModelReply(
            text=message.text if text is None else text,
            parsed=answer and answer.parsed,
            tool_calls=(message.tool_calls or ()) if text is None else (),
            usage=total(used),
            applied=applied,
            raw={"request": body, "response": completion.payload},
            checked=answer and answer.checked,
        )

    def _learn(self, mode: Mode, repaired: bool, ignored: bool) -> None:
        """Keep whether a schema that stood in no message was heeded."""
        if not repaired:
            CAPABILITIES.note_heeded(self.identity)
        elif ignored:
            CAPABILITIES.note_ignored(self.identity, mode)

    async def _offer_tools(self, body: Mapping[str, Any], used: list[Usage]) -> Completion:
        """Ask with tools; that an endpoint knows none is kept, and nothing more is sent to it in vain."""
        if CAPABILITIES.lacks_tools(self.identity):
            raise ModelFault(f"{self.name} does not support tool calls", kind="unsupported")
        try:
            return await self._ask(body, used)
        except ModelFault as fault:
            if not refuses_tools(fault):
                raise
            CAPABILITIES.note_no_tools(self.identity)
            raise ModelFault(str(fault), kind="unsupported", evidence=fault.evidence, status=fault.status) from fault

    @property
    def _mode(self) -> Mode:
        """The way to ask for JSON: the one that was chosen, or else the strongest that the endpoint may know."""
        return self._mode_chosen or CAPABILITIES.mode(self.identity)

    def _ask(self, body: Mapping[str, Any], used: list[Usage]) -> Coroutine[Any, Any, Completion]:
        """Ask, and note what the answer used."""
        rate = self._rate
        once = partial(self._paid, body, used) if rate is None else partial(self._rated, body, used, rate)
        return retrying(once, tries=self._tries, limiter=self.limiter, breaker=self._breaker)

    async def _rated(self, body: Mapping[str, Any], used: list[Usage], rate: RateLimit) -> Completion:
        estimate = _size(body) / 4 + (most_output(body) or 0)
        await rate.acquire(estimate)
        try:
            completion = await self._paid(body, used)
        except Fault as fault:
            if fault.kind in NOT_CHARGED:
                rate.settle(estimate, 0)
            raise
        if usage := completion.usage:
            rate.settle(estimate, usage.input_tokens + usage.output_tokens)
        return completion

    async def _paid(self, body: Mapping[str, Any], used: list[Usage]) -> Completion:
        budget, cost = self._budget, None
        reservation = await budget.admit(self._bound(body)) if budget.limits_cost else budget.reserve(0.0)
        try:
            completion = await self._endpoint.complete(body)
            usage = self._priced(completion.usage)
            used.append(usage)
            cost = usage.cost
            return completion
        except Fault as fault:
            if fault.kind in NOT_CHARGED:
                cost = 0.0
            elif fault.kind in ANSWERED:
                fault.usage = paid = self._priced(usage_of(fault))
                cost = paid.cost
            raise self._advised(fault) from fault.__cause__
        finally:
            budget.settle(reservation, cost)

    def _bound(self, body: Mapping[str, Any]) -> float:
        """Return what a request may cost at most, in US dollars: no token is shorter than three bytes on average."""
        if self._price is None:
            return 0.0
        output = most_output(body) or EXPECTED_OUTPUT
        return self._price.cost(Usage(input_tokens=-(-_size(body) // 3), output_tokens=output))

    def _priced(self, usage: Usage | None) -> Usage:
        """Return the usage of one answer with its cost; of one that does not say, that it was a call."""
        if usage is None:
            return Usage(calls=1)
        return usage if self._price is None else usage.model_copy(update={"cost": self._price.cost(usage)})

    def _advised(self, fault: Fault) -> Fault:
        """Return a failure that says what to check where the cause is in the settings."""
        if fault.status in (401, 403):
            return fault.restate(f"{fault}; check the API key: OPENAI_API_KEY, or api_key_env in a suite")
        if fault.status == 404:
            return fault.restate(f"{fault}; check the name of the model, '{self.model}', and the address")
        return fault

    def _body(self, request: Request) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the body to send, and the record of how the request was put."""
        settings = {**self.settings, **_settings(request.settings, self.name)} if request.settings else self.settings
        applied: dict[str, Any] = {"mode": "tools" if request.tools else "text", **settings}
        body: dict[str, Any] = {"model": self.model, "messages": request.wire, **settings}
        if "temperature" in settings and _FIXED_TEMPERATURE.match(self.model):
            del body["temperature"]
            applied["temperature"] = None
        if request.tools:
            body["tools"] = [dict(tool) for tool in request.tools]
        return body, applied


def _settings(settings: Mapping[str, Any], what: str) -> dict[str, Any]:
    if "timeout" in settings:
        raise UsageError(f"{what}: 'timeout' is not a request setting; set it in the limits of the model")
    return checked_settings(settings, what)


def json_answer(completion: Completion, mode: Mode, body: Mapping[str, Any]) -> str | None:
    """Return what should be the JSON of an answer; None for one that calls tools instead.

    Raises:
        ModelFault: the model declined, or was cut off; another try would not help.
    """
    message = completion.message
    if message.refusal or completion.finish_reason == "content_filter":
        raise ModelFault("the model declined to answer", kind="refusal", evidence=message.refusal or message.text)
    text = json_text(message, mode, body)
    if completion.finish_reason == "length" and text is not None:
        raise ModelFault("the answer was cut off at the token limit", kind="format", evidence=shorten(text))
    return text


def _with_repair(body: dict[str, Any], messages: Sequence[AnyMessage]) -> dict[str, Any]:
    return {**body, "messages": [*body["messages"], *wire_messages(messages)]}


def _size(body: Mapping[str, Any]) -> int:
    """Return the bytes of a request."""
    return len(json.dumps(body))


def most_output(body: Mapping[str, Any]) -> int | None:
    """Return the tokens that the answer to a request may have, None where it does not say."""
    return body.get("max_completion_tokens") or body.get("max_tokens")
