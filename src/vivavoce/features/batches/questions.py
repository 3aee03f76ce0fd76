"""`BatchQuestions`: the questions of a run whose judges are asked in batches.

A question is answered, or with a service, or to be sent in the next round; or it failed permanently.
"""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable, Collection, Generator, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import BinaryIO, NamedTuple, cast

from vivavoce.errors import BudgetExhausted, Deferred, ModelFault, UsageError
from vivavoce.features.batches.anthropic import AnthropicBatches, KeepsRequests
from vivavoce.features.batches.model import BatchedModel
from vivavoce.features.batches.openai import OpenAIBatches
from vivavoce.features.batches.service import MOST_BYTES, BatchService, Prepared, custom_id
from vivavoce.lazy_names import lazy
from vivavoce.models.model import Model, Request, identity_of
from vivavoce.models.modes import asked_again
from vivavoce.models.openai import EXPECTED_OUTPUT, OpenAIModel
from vivavoce.models.prices import VARIABLE, batch_price
from vivavoce.pacing.limits import Budget, Reservation
from vivavoce.records.replies import AskedQuestion
from vivavoce.records.run import Event
from vivavoce.records.score import Usage
from vivavoce.run.batches import BatchRounds
from vivavoce.store.batches import ASKED, FAILED, Batches
from vivavoce.store.replies import ReplyStore
from vivavoce.store.store import Store


class Spooled(NamedTuple):
    """A request that is to be sent: the key of its reply, its bytes, and the room for it in the budget."""

    key: str
    size: int
    reservation: Reservation


class Part:
    """Requests that become one batch."""

    def __init__(self) -> None:
        self.requests: list[Spooled] = []
        self.size = 0
        self._file: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115 - it is open as long as the part is needed

    @property
    def keys(self) -> list[str]:
        """The keys of the requests, in their order."""
        return [request.key for request in self.requests]

    def add(self, key: str, line: bytes, reservation: Reservation) -> None:
        """Add a request."""
        self._file.write(line)
        self.requests.append(Spooled(key, len(line), reservation))
        self.size += len(line)

    def lines(self, keys: Collection[str]) -> Iterator[bytes]:
        """Yield the requests with these keys."""
        self._file.seek(0)
        for request in self.requests:
            line = self._file.read(request.size)
            if request.key in keys:
                yield line

    def close(self) -> None:
        """Forget the requests."""
        self._file.close()


class Spool:
    """Takes requests one by one; a part is full at `most_requests`, or at `most_bytes`."""

    def __init__(self, most_requests: int, most_bytes: int) -> None:
        self.keys: set[str] = set()
        self.parts: list[Part] = []
        self._most_requests, self._most_bytes = most_requests, most_bytes

    def add(self, key: str, line: bytes, reservation: Reservation) -> None:
        """Add a request."""
        part = self.parts[-1] if self.parts else None
        if part is None or len(part.requests) == self._most_requests or part.size + len(line) > self._most_bytes:
            self.parts.append(part := Part())
        part.add(key, line, reservation)


MOST_TRIES = 3
"""How often a run asks one question that is never answered."""
MOST_ANSWERS = 2
"""How many answers to a question may be outside of its schema: as where a model is asked directly, one is repaired."""

_TAKEN: ContextVar[dict[str, Usage]] = ContextVar("what the answers of a conversation used")


class BatchQuestions:
    """Knows of each question where it is; `budget` limits what may be sent, and `open` makes the models that ask.

    `limited` says why not all questions could be taken, None where they could. `awaited` are the batches that questions
    of the run are in, whichever run submitted them.
    """

    def __init__(self, budget: Budget, replies: ReplyStore | None) -> None:
        self.models: dict[str, BatchedModel] = {}
        self.spools: dict[str, Spool] = {}
        self.limited: str | None = None
        self.awaited: set[str] = set()
        self.reserved: dict[str, Reservation] = {}
        self.most_requests: int | None = None
        self._budget, self._replies = budget, replies
        self._batches: Batches | None = None
        self._with_service: dict[str, str] = {}
        self._failed: dict[str, AskedQuestion] = {}
        self._unpaid: dict[str, Usage] = {}
        self._paid: set[str] = set()

    def open(self, model: Model) -> Model:
        """Return a model that is asked in batches; a check, which keeps no replies, gets one that it must not ask.

        Raises:
            UsageError: it has no batch service, or the cost is limited and what a batch of it costs is unknown.
        """
        if self._budget.limits_cost and batch_price(model.name) is None:
            raise UsageError(
                f"the price of a batch of {model.name} is unknown, so its cost cannot be limited; add it to "
                f"the JSON file in {VARIABLE}, with batch as the fraction of the usual price, or limit the "
                "calls instead"
            )
        known = self.models.get(identity_of(model))
        service = batch_service(model) if known is None else known.service
        if self._replies is None:
            return model
        opened = BatchedModel(model, service, self._replies, self)
        self.models.setdefault(opened.identity, opened)
        return opened

    def rounds(self, store: Store, run_id: str, tell: Callable[[Event], Awaitable[None]]) -> BatchRounds:
        """Return the rounds of a run; `tell` gives events to its listeners."""
        rounds: BatchRounds = lazy("vivavoce.features.batches.rounds:BatchRounds")(self, store, run_id, tell)
        return rounds

    def load(self, batches: Batches, run_id: str, *, fresh: bool) -> None:
        """Read what is known of questions; with `fresh`, those that failed in this run may be asked again."""
        self._batches = batches
        for question in batches.unsettled(run_id):
            self._take_note(question)
        if fresh:
            self._failed.clear()

    def settled(self, questions: Iterable[AskedQuestion]) -> None:
        """Take note of what came of the questions of a batch."""
        for question in questions:
            self._with_service.pop(question.key, None)
            self._failed.pop(question.key, None)
            self._take_note(question)

    def released(self, keys: Iterable[str]) -> None:
        """Take note that questions are in no batch, and so can be asked."""
        for key in keys:
            self._with_service.pop(key, None)
            self.settle(key, 0.0)

    def settle(self, key: str, cost: float | None) -> None:
        """Replace the room for a question in the budget by what it cost."""
        if (reservation := self.reserved.pop(key, None)) is not None:
            self._budget.settle(reservation, cost)

    def begin_pass(self) -> None:
        """Begin to ask: what a limit refused before may fit now, since most answers cost less than they might."""
        self.limited = None
        self.awaited = set()
        self.spools = {}

    @contextmanager
    def conversation(self) -> Generator[None]:
        """Count what the answers used in the scores of one conversation, unless one of its questions is deferred."""
        taken: dict[str, Usage] = {}
        before = _TAKEN.set(taken)
        try:
            yield
        except BaseException:
            self._unpaid |= taken
            raise
        finally:
            _TAKEN.reset(before)
        self._paid |= taken.keys()

    def keep_paid(self) -> None:
        """Keep that what answers used is in scores."""
        if self._batches is not None and self._paid:
            self._batches.charged(self._paid)
            self._paid.clear()

    def is_asking(self, key: str) -> bool:
        """Say whether a question is in a batch that has not been taken back as a whole."""
        return key in self._with_service

    def used(self, key: str) -> Usage | None:
        """Return what the answer to a question used, where that is in no score yet; it is in this one then."""
        usage = self._unpaid.pop(key, None)
        if usage is not None:
            _TAKEN.get()[key] = usage
        return usage

    async def ask(
        self, model: BatchedModel, key: str, request: Request, unusable: ModelFault | None
    ) -> Deferred | ModelFault:
        """Take a question for the next batch, unless it is in one, or is to be given up.

        Returns why there is no answer: it will come later, or never.
        """
        if (batch := self._with_service.get(key)) is not None:
            self.awaited.add(batch)
            return Deferred()
        spool = self._spool(model)
        if key in spool.keys:
            return Deferred()
        before = self._before(key, unusable)
        if before is not None and (fault := _given_up(model.name, before, unusable)) is not None:
            fault.usage = self.used(key)
            return fault
        if self.limited is not None:
            return Deferred()
        spool.keys.add(key)
        try:
            prepared = await model.service.prepare(custom_id(key, model.identity), _better(request, before, unusable))
            reservation = self._reserved(model, prepared)
        except ModelFault as fault:
            spool.keys.discard(key)
            return fault
        except BudgetExhausted as limit:
            spool.keys.discard(key)
            self.limited = str(limit)
            return Deferred()
        self.reserved[key] = reservation
        spool.add(key, prepared.line, reservation)
        return Deferred()

    def _reserved(self, model: BatchedModel, prepared: Prepared) -> Reservation:
        """Make room for a question in the budget.

        Raises:
            BudgetExhausted: there is none.
        """
        price = batch_price(model.name)
        if price is None:
            return self._budget.reserve()
        output = prepared.most_output or EXPECTED_OUTPUT
        most = Usage(input_tokens=-(-len(prepared.line) // 3), output_tokens=output)
        return self._budget.reserve(price.cost(most))

    def _spool(self, model: BatchedModel) -> Spool:
        spool = self.spools.get(model.identity)
        if spool is None:
            most = min(model.service.most_requests, self.most_requests or model.service.most_requests)
            spool = self.spools[model.identity] = Spool(most, MOST_BYTES)
        return spool

    def _take_note(self, question: AskedQuestion) -> None:
        if question.state == ASKED:
            self._with_service[question.key] = question.batch_id
        elif question.state == FAILED:
            self._failed[question.key] = question
        if question.usage is not None and question.state != ASKED:
            self._unpaid[question.key] = question.usage

    def _before(self, key: str, unusable: ModelFault | None) -> AskedQuestion | None:
        """Return how a question was asked before; an answer outside the schema is known by its reply alone."""
        if unusable is None or self._batches is None:
            return self._failed.get(key)
        return self._batches.question(key)


def _given_up(name: str, before: AskedQuestion, unusable: ModelFault | None) -> ModelFault | None:
    """Return the failure of a question that is not asked again, None for one that is."""
    failure = before.failure
    if unusable is not None or (failure is not None and before.then == "repair"):
        if before.answers < MOST_ANSWERS and before.tries < MOST_TRIES:
            return None
        problem, text = _problem(before, unusable)
        return ModelFault(f"{name} twice answered outside the JSON schema: {problem}", kind="format", evidence=text)
    if failure is None or (before.then == "ask again" and before.tries < MOST_TRIES):
        return None
    often = f"asked in {before.tries} batches and never answered: " if before.then == "ask again" else ""
    return ModelFault(f"{often}{failure.message}", kind=failure.kind, evidence=failure.evidence)


def _better(request: Request, before: AskedQuestion | None, unusable: ModelFault | None) -> Request:
    """Return a request, with the answer that is no good and what is wrong with it where there was one."""
    if unusable is None and (before is None or before.then != "repair"):
        return request
    problem, text = _problem(before, unusable)
    return replace(request, messages=[*request.messages, *asked_again(text, problem, request.schema)])


def _problem(before: AskedQuestion | None, unusable: ModelFault | None) -> tuple[str, str]:
    """Return what is wrong with an answer, and the answer."""
    if unusable is not None:
        return str(unusable.__cause__ or unusable), unusable.evidence or ""
    failure = None if before is None else before.failure
    return ("", "") if failure is None else (failure.message, failure.evidence or "")


def batch_service(model: Model) -> BatchService:
    """Return the service that answers questions to a model in batches; nothing is sent.

    Raises:
        UsageError: there is none.
    """
    if isinstance(model, OpenAIModel):
        return OpenAIBatches(model, batch_price(model.name))
    if model.name.startswith("anthropic:"):
        return AnthropicBatches(cast("KeepsRequests", model), batch_price(model.name))
    raise UsageError(
        f"{model.name} does not support batches; use a judge openai:NAME, azure:NAME, anthropic:NAME or "
        "http://host/v1#NAME"
    )
