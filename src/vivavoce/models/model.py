"""The port to language models: a request, a reply, and what a model must be able to do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol, TypedDict, TypeVar

from pydantic import BaseModel

from vivavoce.errors import BudgetExhausted, Deferred
from vivavoce.messages import AnyMessage, ToolCall
from vivavoce.pacing.limits import Budget, Limiter, RateLimit
from vivavoce.records.score import Usage, charge, usage_of
from vivavoce.wire.chat import WireMessages, wire_messages

REPEAT = "try 2"
"""The name of the second try of a test, whose first one the tester spoiled."""

_ATTEMPT: ContextVar[str] = ContextVar("attempt", default="")


def current_attempt() -> str:
    """Return the name of the attempt that is under way, empty for the first one."""
    return _ATTEMPT.get()


@contextmanager
def new_attempt(name: str) -> Generator[None]:
    """Name the attempt that all requests within belong to; one within another has both names."""
    outer = _ATTEMPT.get()
    token = _ATTEMPT.set(f"{outer}, {name}" if outer else name)
    try:
        yield
    finally:
        _ATTEMPT.reset(token)


class Pacing(TypedDict, total=False):
    """How the calls of a model are held back; `limiter` and `rate` may be shared by the models of one provider."""

    limiter: Limiter
    """The slots that its calls take."""
    rate: RateLimit | None
    """How many requests and tokens it takes in a minute."""
    budget: Budget | None
    """What the calls count against."""
    tries: int
    """How often a call is made at most, the first time included."""


class Paid(Protocol):
    """Something that has a usage, such as a reply of a model."""

    @property
    def usage(self) -> Usage | None:
        """Its usage."""
        ...


P = TypeVar("P", bound=Paid)
T = TypeVar("T")


async def all_of(waited_for: Iterable[Awaitable[T]]) -> list[T]:
    """Return what several things come to that are waited for at once, in their order, also where one of them fails.

    Raises:
        BudgetExhausted: a limit on calls or cost is reached.
        Deferred: an answer will come later.
        Exception: the first failure, in their order.
    """
    outcomes = await asyncio.gather(*waited_for, return_exceptions=True)
    if (error := _first(outcome for outcome in outcomes if isinstance(outcome, BaseException))) is not None:
        raise error
    return [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]


async def first_then_all(calls: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    """Return what several calls come to, in their order: the first is made alone, then the others at once.

    Where they begin alike, the first one fills the cache of the server, or of the provider, and the others are asked
    while that is still there.

    Raises:
        BudgetExhausted: a limit on calls or cost is reached; by the first one, and the others are not made.
        Deferred: an answer will come later; all calls were made.
        Exception: the first failure, in their order.
    """
    first: list[T] = []
    deferred: Deferred | None = None
    try:
        first = [await call() for call in calls[:1]]
    except Deferred as later:
        deferred = later
    others = await all_of(call() for call in calls[1:])
    if deferred is not None:
        raise deferred
    return first + others


async def ask_all(questions: Iterable[Awaitable[P]]) -> list[P]:
    """Return the answers to questions that are asked at once, in their order.

    Every answer is waited for, also where one question fails; the failure that is raised has the usage of all of them.

    Raises:
        BudgetExhausted: a limit on calls or cost is reached.
        Deferred: an answer will come later.
        Exception: the first failure, in the order of the questions.
    """
    outcomes = await asyncio.gather(*questions, return_exceptions=True)
    answers = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
    failures = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    error = _first(failures)
    if error is None:
        return answers
    charge(error, *(answer.usage for answer in answers), *(usage_of(other) for other in failures if other is not error))
    raise error


def _first(failures: Iterable[BaseException]) -> BaseException | None:
    """Return the failure that counts: a limit that is reached, then an answer that is still to come, then the first."""
    found = list(failures)
    graver = [one for kind in (BudgetExhausted, Deferred) for one in found if isinstance(one, kind)]
    return next(iter([*graver, *found]), None)


Schema = Mapping[str, Any] | type[BaseModel]
"""The schema of a structured reply: a JSON schema, or a class whose fields are the answer."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a question to a judge is about: the metric that asks, and the first and the last turn judged, from 0."""

    metric: str
    first_turn: int
    last_turn: int


@dataclass(frozen=True, slots=True)
class Request:
    """A request to a model: the conversation, the schema that its answer must match, the tools it may call.

    `settings` such as `temperature` override those of the model. `trial` counts repetitions of one question from 0,
    `sample_trial` is the trial of the sample that the question is about, from 0, and `attempt` names a repeated attempt
    at a conversation. None of them is sent, but a cache keeps their answers apart. `subject` is not sent either, and
    decides nothing.
    """

    messages: Sequence[AnyMessage]
    schema: Schema | None = None
    tools: Sequence[Mapping[str, Any]] = ()
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    trial: int = 0
    subject: Subject | None = field(default=None, compare=False)
    sample_trial: int = 0
    attempt: str = field(default_factory=current_attempt)
    _wire: list[WireMessages] = field(init=False, default_factory=list[WireMessages], compare=False, repr=False)

    @property
    def wire(self) -> WireMessages:
        """The messages as an endpoint accepts them, made once for the key of a cache and for the request."""
        if not self._wire:
            self._wire.append(wire_messages(self.messages))
        return self._wire[0]


@dataclass(frozen=True, slots=True)
class ModelReply:
    """The answer of a model: `parsed` is the JSON object of `text` where the request has a schema.

    `applied` is what was actually sent: `mode` (`text`, `tools` or `json_schema`), whether it was `repaired`, and every
    setting, with None for one that the model does not take. Where the answer was not clean JSON, `read` has what was
    cut off or respelled; `text` is the answer as it came. `raw` is the verbatim request and answer, without
    keys. `checked` is `parsed` as an instance of the class that was asked for; a model of your own need not set it.
    """

    text: str
    parsed: dict[str, Any] | None = None
    tool_calls: Sequence[ToolCall] = ()
    usage: Usage | None = None
    applied: Mapping[str, Any] = field(default_factory=dict[str, Any])
    raw: Mapping[str, Any] | None = None
    checked: BaseModel | None = field(default=None, compare=False, repr=False)


class Model(Protocol):
    """A language model; `name` is its name with its provider.

    A model may have an `identity` next to its name: see `identity_of`.
    """

    name: str

    async def complete(self, request: Request) -> ModelReply:
        """Answer a request.

        Raises:
            ModelFault: there is no answer, or it does not match the schema.
            RateLimited: it kept asking to slow down.
        """
        ...

    async def close(self) -> None:
        """Release its resources."""
        ...


def identity_of(model: Model) -> str:
    """Return the unique identity of a model: its `identity`, or its name where it has none.

    Cached replies and fingerprints hold it. A name such as `azure:chat` does not tell where the model is, so its
    identity holds the address.
    """
    return known_identity(model) or model.name


def known_identity(model: Model) -> str | None:
    """Return the identity that a model states, None where it has only a name, which others may share."""
    identity: object = getattr(model, "identity", None)
    return identity if isinstance(identity, str) else None
