"""`BatchRounds`: sends what a pass over the conversations asked, waits for the services, and takes their answers."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from vivavoce.errors import Fault, ModelFault, RateLimited
from vivavoce.features.batches.files import differs
from vivavoce.features.batches.model import BatchedModel
from vivavoce.features.batches.questions import BatchQuestions, Part
from vivavoce.features.batches.service import Settled, State, model_hash, named_question
from vivavoce.models.cache import encode_reply
from vivavoce.models.model import ModelReply
from vivavoce.records.replies import AskedQuestion, Batch, StoredReply
from vivavoce.records.run import BatchesAsked, Event
from vivavoce.records.score import failure_of, usage_of
from vivavoce.run.batches import BatchesStopped
from vivavoce.run.workers import INTERRUPTED
from vivavoce.store.batches import ANSWERED, ASKED, FAILED
from vivavoce.store.store import Store

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Patience:
    """How long is waited, in seconds: before the first look at a batch, which then grows to `most` between two looks.

    `settling` is how long a service may take to list a batch whose making broke. A call that changes something is tried
    `tries` times; looking goes on for as long as the service may need.
    """

    first: float = 1.0
    most: float = 300.0
    growth: float = 1.5
    settling: float = 30.0
    tries: int = 8


PATIENCE = Patience()


class BatchRounds:
    """The rounds of a run; `tell` gives events to its listeners."""

    def __init__(
        self, questions: BatchQuestions, store: Store, run_id: str, tell: Callable[[Event], Awaitable[None]]
    ) -> None:
        self.questions = questions
        self.number = 0
        self.unknown = 0
        self._store, self._run_id, self._tell = store, run_id, tell
        self._stopped = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._open: dict[str, Batch] = {}
        self._states: dict[str, State] = {}
        self._too_much = self._unreadable = 0
        self._trouble = ""

    async def begin(self, *, fresh: bool) -> None:
        """Find out which batches are pending already; `fresh` lets questions that failed in this run be asked again.

        Raises:
            BatchesStopped: a service cannot be reached.
        """
        self._loop = asyncio.get_running_loop()
        self.questions.load(self._store.batches, self._run_id, fresh=fresh)
        for batch in self._store.batches.open(self.questions.models):
            if batch.service_id is None and batch.run_id == self._run_id:
                await self._recover(batch)

    async def next(self) -> None:
        """Send what the last pass asked for, wait for all that it needs, and take the answers.

        Raises:
            BatchesStopped: a limit is reached, a service refuses, or the run is stopped.
        """
        questions, parts = self.questions, self._parts()
        self._open = {one.id: one for one in self._store.batches.open(questions.models) if one.id in questions.awaited}
        if not parts and not self._open:
            raise BatchesStopped(questions.limited or "some questions are too large for a batch")
        self.number += 1
        self._trouble = ""
        try:
            for model, part in parts:
                if self._too_much:
                    await self._wait()
                await self._submit(model, part)
            await self._wait()
        finally:
            for _, part in parts:
                questions.released(request.key for request in part.requests if request.key in questions.reserved)
                part.close()

    def stop(self) -> None:
        """Wait no longer; pending batches stay at their service. Any thread may say so."""
        if self._loop is None:
            self._stopped.set()
        else:
            self._loop.call_soon_threadsafe(self._stopped.set)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is with services when the run ends, and what they sent that nobody asked for, in words."""
        left = sum(one.requests for one in self._store.batches.of_run(self._run_id) if one.ended_at is None)
        stay = f"{left:,} request{'s stay' * (left > 1) or ' stays'} with the service until the run goes on"
        asked = f"{self.unknown:,} line{'s' * (self.unknown > 1)} of the service answer no question that was asked"
        return (*([stay] if left else []), *([asked] if self.unknown else []))

    def finish(self) -> None:
        """Keep that the run is complete, so that what its questions used is counted in no other one."""
        self._store.batches.charged_all(self._run_id)

    async def close(self) -> None:
        """Close the connections to the services."""
        self.questions.keep_paid()
        for model in self.questions.models.values():
            await model.service.close()

    def _parts(self) -> list[tuple[BatchedModel, Part]]:
        found = self.questions.spools.items()
        return [(self.questions.models[identity], part) for identity, spool in found for part in spool.parts]

    async def _submit(self, model: BatchedModel, part: Part) -> None:
        self._check_stopped()
        name = secrets.token_hex(8)
        batch = Batch(name, self._run_id, model.name, model.identity, len(part.requests), time.time())
        mine = self._store.batches.claim(batch, part.keys)
        for key in set(part.keys) - mine:
            self.questions.settle(key, 0.0)
            if (theirs := self._store.batches.question(key)) is not None:
                self.questions.settled([theirs])
                self._follow(theirs.batch_id)
        if mine:
            batch = replace(batch, requests=len(mine))
            self.questions.settled(self._store.batches.within(batch))
            await self._send(model, batch, list(part.lines(mine)))

    def _follow(self, batch_id: str) -> None:
        batch = self._store.batches.batch(batch_id)
        if batch is not None and batch.ended_at is None:
            self._open[batch.id] = batch

    async def _send(self, model: BatchedModel, batch: Batch, lines: Sequence[bytes]) -> None:
        service = model.service
        if service.takes_files:
            file = await self._tried(model, lambda: service.upload(lines, f"vivavoce-{batch.id}.jsonl"), batch)
            batch = self._kept(replace(batch, file=file))
        await self._create(model, batch, lines)

    async def _create(self, model: BatchedModel, batch: Batch, lines: Sequence[bytes]) -> None:
        """Make a batch at its service; where that broke, find out first whether it was made all the same."""
        for number in range(PATIENCE.tries):
            try:
                state = await model.service.create(lines, batch.file)
            except Fault as fault:
                if _is_refused(fault):
                    self._release(batch)
                    raise BatchesStopped(_refusal(model, fault)) from fault
                self._trouble = str(fault)
                if not _never_arrived(fault) and (found := await self._found(model, batch)) is not None:
                    state = State(found, "going")
                elif number + 1 == PATIENCE.tries:
                    raise BatchesStopped(_refusal(model, fault)) from fault
                else:
                    await self._pause(_wait(fault, number))
                    continue
            self._states[batch.id] = state
            self._open[batch.id] = self._kept(replace(batch, service_id=state.id))
            return

    async def _found(self, model: BatchedModel, batch: Batch) -> str | None:
        """Return the service's id of a batch that may have been made; a service may need a moment to list it."""
        for wait in (0.0, PATIENCE.settling):
            await self._pause(wait)
            known = {*self._store.batches.known_to(batch.identity), *batch.strangers}
            found = await self._tried(model, lambda: model.service.find(batch, known))  # noqa: B023 - it is awaited here
            if found is not None:
                return found
        return None

    async def _recover(self, batch: Batch) -> None:
        """Find out what became of a batch whose making was cut short.

        Where it was not made, one of this run is made of its file; one of a run that has ended without it is given up,
        since only a part of it may still be wanted.
        """
        model = self.questions.models[batch.identity]
        found = None
        if batch.file is not None or not model.service.takes_files:
            found = await self._found(model, batch)
        if found is not None:
            self._kept(replace(batch, service_id=found))
        elif batch.file is not None and batch.run_id == self._run_id:
            await self._create(model, batch, ())
        else:
            self._release(batch)

    async def _wait(self) -> None:
        """Wait until all batches have ended, and take their answers."""
        wait = PATIENCE.first * (2 ** min(self._too_much, 8))
        while self._open:
            await self._tell(self._progress(wait))
            await self._pause(wait)
            for batch in list(self._open.values()):
                await self._look(batch)
            wait = min(wait * PATIENCE.growth, PATIENCE.most)

    async def _look(self, batch: Batch) -> None:
        self._check_stopped()
        if batch.service_id is None:
            await self._look_after(batch)
            return
        model = self.questions.models[batch.identity]
        try:
            state = self._states[batch.id] = await model.service.look(batch.service_id)
        except Fault as fault:
            self._unreadable += fault.kind in ("format", "size")
            if _is_refused(fault) or self._unreadable == PATIENCE.tries:
                raise BatchesStopped(_refusal(model, fault)) from fault
            self._trouble = str(fault)
            return
        self._trouble, self._unreadable = "", 0
        if state.stage == "refused":
            await self._refused(batch, state)
        elif state.stage == "ended":
            await self._take(model, batch, state)

    async def _look_after(self, batch: Batch) -> None:
        """Follow a batch that another run is submitting, or was when it ended."""
        now = self._store.batches.batch(batch.id)
        if now is not None and now.service_id is None and not self._is_of_another(now):
            await self._recover(now)
            now = self._store.batches.batch(batch.id)
        if now is None:
            self._drop(batch)
        else:
            self._open[batch.id] = now

    async def _refused(self, batch: Batch, state: State) -> None:
        self._release(batch)
        if not state.too_much:
            raise BatchesStopped(f"{batch.model}: the service refused batch {batch.service_id}: {state.cause}")
        self._too_much += 1
        self._trouble = state.cause
        self.questions.most_requests = max(1, batch.requests // 2)
        if self._too_much > PATIENCE.tries + 12:
            raise BatchesStopped(f"{batch.model}: the service is overloaded: {state.cause}")
        await self._pause(min(PATIENCE.first * 2**self._too_much, PATIENCE.most))

    async def _take(self, model: BatchedModel, batch: Batch, state: State) -> None:
        """Keep the answers of a batch that has ended, and what came of its other questions."""
        results = await self._tried(model, lambda: _all_of(model, state))
        asked = {one.key for one in self._store.batches.within(batch) if one.state == ASKED}
        settled: dict[str, AskedQuestion] = {}
        replies: dict[str, ModelReply] = {}
        unknown = 0
        for result in results:
            key = _key(result, batch)
            if key not in asked or key in settled:
                unknown += 1
                continue
            settled[key] = _settled(batch, key, result)
            if result.reply is not None:
                replies[key] = result.reply
        if not settled and asked and not model.service.takes_files:
            self._take_for_strange(batch)
            return
        self.unknown += unknown
        now = time.time()
        rows = [StoredReply(key, model.name, encode_reply(reply), now) for key, reply in replies.items()]
        known = [key for key, reply in replies.items() if differs(model.replies.get(key), reply)]
        model.replies.add(rows, replacing=known)
        self._store.batches.settle(replace(batch, ended_at=now), settled)
        for key in asked:
            usage = settled[key].usage if key in settled else None
            self.questions.settle(key, 0.0 if usage is None else usage.cost)
        self.questions.settled(self._store.batches.within(batch))
        self._drop(batch)
        self._too_much = 0

    def _take_for_strange(self, batch: Batch) -> None:
        """Take note that a batch at the service is somebody else's, and look for ours again."""
        strangers = (*batch.strangers, batch.service_id or "")
        self._states.pop(batch.id, None)
        self._open[batch.id] = self._kept(replace(batch, service_id=None, strangers=strangers))

    def _release(self, batch: Batch) -> None:
        keys = [one.key for one in self._store.batches.within(batch)]
        self._store.batches.release(batch)
        self.questions.released(keys)
        self._drop(batch)

    def _drop(self, batch: Batch) -> None:
        self._open.pop(batch.id, None)
        self._states.pop(batch.id, None)

    def _kept(self, batch: Batch) -> Batch:
        self._store.batches.update(batch)
        return batch

    def _is_of_another(self, batch: Batch) -> bool:
        """Say whether another process works on the run that submits a batch."""
        return batch.run_id != self._run_id and self._store.held(batch.run_id)

    async def _tried(self, model: BatchedModel, call: Callable[[], Awaitable[T]], released: Batch | None = None) -> T:
        """Return what a call that may be repeated returns; where it fails, the batch `released` is not made."""
        for number in range(PATIENCE.tries):
            self._check_stopped()
            try:
                return await call()
            except Fault as fault:
                last = number + 1 == PATIENCE.tries
                if released is not None and (last or _is_refused(fault)):
                    self._release(released)
                if last or _is_refused(fault):
                    raise BatchesStopped(_refusal(model, fault)) from fault
                self._trouble = str(fault)
                await self._pause(_wait(fault, number))
        raise AssertionError("the last try returns or raises")

    async def _pause(self, seconds: float) -> None:
        """Wait, or until the run is stopped.

        Raises:
            BatchesStopped: it is.
        """
        try:
            async with asyncio.timeout(seconds):
                await self._stopped.wait()
        except TimeoutError:
            return
        self._check_stopped()

    def _check_stopped(self) -> None:
        if self._stopped.is_set():
            raise BatchesStopped(INTERRUPTED)

    def _progress(self, wait: float) -> BatchesAsked:
        states = [state for state in self._states.values() if state.stage == "going"]
        batches = list(self._open.values())
        return BatchesAsked(
            round=self.number,
            batches=tuple(batch.service_id for batch in batches if batch.service_id is not None),
            models=tuple(dict.fromkeys(batch.model for batch in batches)),
            requests=sum(batch.requests for batch in batches),
            settled=sum(state.settled for state in states),
            broken=sum(state.broken for state in states),
            since=min(batch.created_at for batch in batches),
            wait=wait,
            trouble=self._trouble,
        )


async def _all_of(model: BatchedModel, state: State) -> list[Settled]:
    return [one async for one in model.service.results(state)]


def _key(settled: Settled, batch: Batch) -> str | None:
    """Return the key of a question of a batch, None for what is not a question to its model."""
    try:
        key, of_model = named_question(settled.custom_id)
    except ValueError:
        return None
    return key if of_model == model_hash(batch.identity) else None


def _settled(batch: Batch, key: str, found: Settled) -> AskedQuestion:
    made = AskedQuestion(key, batch.id, batch.run_id, ANSWERED, 0, 1)
    if found.reply is not None:
        return made._replace(usage=found.reply.usage)
    fault = found.fault or ModelFault("the service returned nothing about it", kind="http")
    answered = int(usage_of(fault) is not None)
    failed = made._replace(state=FAILED, answers=answered, failure=failure_of(fault, "judge"), usage=usage_of(fault))
    return failed._replace(then=found.then)


def _never_arrived(fault: Fault) -> bool:
    """Say whether a call that is made once has surely done nothing."""
    return fault.status == 429 or (fault.retryable and fault.kind == "connection")


def _is_refused(fault: Fault) -> bool:
    """Say whether a service has refused what was asked, so that nothing was done, and trying again is in vain."""
    again = isinstance(fault, RateLimited) or fault.status in (408, 409) or (fault.status or 0) >= 500
    return fault.kind == "http" and not again


def _wait(fault: Fault, number: int) -> float:
    """Return how long to wait before the next try, in seconds."""
    asked = fault.retry_after if isinstance(fault, RateLimited) else None
    return min(PATIENCE.first * 2**number if asked is None else asked, PATIENCE.most)


def _refusal(model: BatchedModel, fault: Fault) -> str:
    """Return a failure that ends a run, with the first words of the service, and what it may mean."""
    words = " ".join((fault.evidence or "").split())[:300]
    said = f"{model.name}: {fault}{': ' * bool(words)}{words}"
    return f"{said}; has this service batches? Without --batch it is asked directly" if fault.status == 404 else said
