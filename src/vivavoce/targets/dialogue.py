"""`Dialogue`: one conversation with a target while it goes on, with the slots, tries and time of its calls."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from vivavoce.errors import Fault, SuiteFault, TargetFault, VivavoceError
from vivavoce.messages import AnyMessage, HumanMessage, SessionMark
from vivavoce.pacing.limits import Budget, Limiter, retrying
from vivavoce.records.score import Usage, failure_of
from vivavoce.records.trajectory import Turn
from vivavoce.targets.target import (
    Opening,
    Returning,
    Session,
    Target,
    User,
    cannot_return,
    gets_conversation,
    knows_users,
    new_attempt,
    new_user,
    read_reply,
)
from vivavoce.user_code import foreign_code
from vivavoce.validation import construct, copy_with

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TargetChannel:
    """How one target is called; `timeout` is in seconds for one call, `tries` counts the first one.

    Without a `timeout` the target keeps to one itself, which can name the address that did not answer.
    `conversations` bounds how many conversations are open at once, `calls` how many calls are in flight; only the
    second shrinks when the target asks us to slow down.
    """

    target: Target
    conversations: asyncio.Semaphore
    calls: Limiter
    budget: Budget
    timeout: float | None = 300.0
    tries: int = 3

    async def call(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Call the target, within its slots, its time and its tries.

        Raises:
            Fault: the failure of the last try.
        """
        return await retrying(lambda: self._timed(ask), tries=self.tries, limiter=self.calls)

    async def send(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Call the target with a message; every try counts against the budget.

        Raises:
            Fault: the failure of the last try.
            BudgetExhausted: the run may make no more calls.
        """

        async def reserved() -> T:
            reservation = self.budget.reserve(0.0)
            try:
                return await ask()
            finally:
                self.budget.settle(reservation, 0.0)

        return await self.call(reserved)

    async def _timed(self, ask: Callable[[], Awaitable[T]]) -> T:
        name, scope = self.target.name, asyncio.timeout(self.timeout)
        try:
            async with scope:
                with foreign_code():
                    return await ask()
        except VivavoceError:
            raise
        except Exception as error:
            if scope.expired():
                message = f"{name} did not answer within {self.timeout:g} s"
                raise TargetFault(message, kind="timeout", retryable=self.target.stateless) from error
            raise TargetFault(f"{name}: {type(error).__name__}: {error}") from error


def open_channel(target: Target, *, limit: int, budget: Budget, timeout: float | None, retries: int) -> TargetChannel:
    """Return the channel of a target with `limit` calls at a time.

    A stateful target has as many conversations. A stateless one, which knows nothing of conversations, has half as many
    more, so that its slots are never idle while an answer is processed.
    """
    conversations = 2 * limit if target.stateless else limit
    return TargetChannel(target, asyncio.Semaphore(conversations), Limiter(limit), budget, timeout, retries + 1)


log = logging.getLogger("vivavoce")


class Dialogue:
    """The exchanges with a target; a session opens with the first message, or with `open`.

    `new_session` ends the session, so that the next message begins another, and `rollback` takes back the last answered
    exchange; the numbers of turns go on all the same. A message of another session than the last one begins it.
    """

    def __init__(self, channel: TargetChannel, opening: Callable[[], Opening]) -> None:
        self._channel = channel
        self._opening = opening
        self._users: dict[str | None, User] = {}
        self._attempt = new_attempt()
        self._mark: SessionMark | None = None
        self._session: Session | None = None
        self._world: dict[str, Any] | None = None
        self._has_world = False
        self._messages: list[AnyMessage] = []
        self._answered: list[int] = []
        self._turns = 0

    @property
    def session_id(self) -> str | None:
        """The target's id of this conversation, None before it began or where the target gives none."""
        return None if self._session is None else self._session.id

    @property
    def opening(self) -> Sequence[AnyMessage]:
        """The messages before the first user message, where the target gives them."""
        return () if self._session is None else self._session.opening

    @property
    def stateless(self) -> bool:
        """Whether the target gets the whole conversation with each message, so that a part may be taken back."""
        return self._channel.target.stateless

    async def open(self) -> Session:
        """Begin the session, where none is open.

        Raises:
            Fault: the target cannot begin one.
        """
        if self._session is None:
            self._session = await self._channel.call(lambda: self._channel.target.open(self._next_opening()))
        return self._session

    def _next_opening(self) -> Opening:
        """Return what the next session begins with: the state of the world is what the last one left."""
        opening = self._opening()
        self._has_world = opening.state is not None
        if self._mark is not None:
            opening = replace(opening, user=self._user(self._mark.user))
        return opening if self._world is None else replace(opening, state=self._world)

    async def go_on(self, turns: Sequence[Turn], heard: Sequence[Turn] | None = None) -> list[Turn]:
        """Return to where some turns left a conversation that was held elsewhere, and return these turns.

        `heard` are those of them that the target knows of, all unless some were taken back. A target that gets the
        conversation with each message is sent nothing. To any other, and where users came back in several sessions, the
        user's messages are said again, and the turns that come of it are returned, which may differ; they end with one
        that failed.

        Raises:
            Fault: the session cannot begin, or the world of the row cannot be returned to.
            BudgetExhausted: no more calls may be made.
        """
        heard, channel = turns if heard is None else heard, self._channel
        messages = [message for turn in heard for message in turn.messages]
        if not turns:
            return []
        if gets_conversation(channel.target) and not any(turn.user_message.mark for turn in turns):
            session = await self.open()
            if isinstance(session, Returning):
                await channel.call(lambda: session.go_on(messages))
            lengths = [len(turn.messages) for turn in heard]
            self._answered = [sum(lengths[:before]) for before in range(len(lengths))]
            self._messages, self._turns = messages, len(turns)
            return [turn.model_copy(update={"usage": None}) for turn in turns]
        again: list[Turn] = []
        for turn in turns:
            again.append(await self.say(turn.user_message))
            if again[-1].failure is not None:
                break
        return again

    def _user(self, name: str | None) -> User:
        if name not in self._users:
            self._users[name] = new_user(name, self._attempt, len(self._users) + 1)
        return self._users[name]

    async def enter(self, mark: SessionMark | None) -> Session:
        """Begin the session of a mark, after the end of another; its user is known again if they were here before.

        Raises:
            SuiteFault: the target is not told who speaks, so that nobody can come back to it.
            Fault: the target cannot begin a session, or failed to return its state.
        """
        if mark is not None and mark.number > 1 and not knows_users(self._channel.target):
            raise SuiteFault(cannot_return(self._channel.target.name), kind="sessions")
        if mark != self._mark and self._session is not None:
            await self.new_session()
        self._mark = mark
        return await self.open()

    def _greeting(self, message: HumanMessage) -> list[AnyMessage]:
        """Return what the target said first in a later session, marked as of it."""
        mark = message.mark
        if self._messages or mark is None or mark.number == 1:
            return []
        return [copy_with(one, {"session": mark}) for one in self.opening]

    async def say(self, message: HumanMessage) -> Turn:
        """Send a message and return the exchange; one that failed has its failure, and is left out of later requests.

        Raises:
            BudgetExhausted: no more calls may be made.
        """
        index, self._turns = self._turns, self._turns + 1
        started, clock = time.time(), time.perf_counter()
        try:
            session = await self.enter(message.mark)
            history, greeting = [*self._messages, message], self._greeting(message)
            reply = read_reply(await self._channel.send(lambda: session.send(history)), self._channel.target.name)
        except Fault as fault:
            failure, seconds = failure_of(fault, "target"), time.perf_counter() - clock
            return Turn(index=index, messages=[message], started_at=started, seconds=seconds, failure=failure)
        seconds = time.perf_counter() - clock
        self._answered.append(len(self._messages))
        self._messages += [message, *reply.messages]
        await asyncio.sleep(0)  # whoever waits for the slot goes first: the caller may take long over the reply
        messages: list[AnyMessage] = [*greeting, message, *reply.messages]
        fields: dict[str, Any] = {"index": index, "messages": messages, "started_at": started, "seconds": seconds}
        fields["usage"] = None if reply.usage is None else Usage.model_validate(reply.usage)
        return construct(Turn, fields)

    async def state(self) -> dict[str, Any] | None:
        """Return the state of the target, None where it has none to show.

        Raises:
            Fault: the target failed to return it.
        """
        return None if self._session is None else await self._channel.call(self._session.state)

    async def world(self) -> dict[str, Any] | None:
        """Return the state of the row as the target left it, None where the row has none.

        Raises:
            Fault: the target failed to return it.
        """
        return await self.state() if self._has_world and self._session is not None else self._world

    def rollback(self) -> None:
        """Take the last answered exchange back; the target must be stateless."""
        if self._answered:
            del self._messages[self._answered.pop() :]

    async def new_session(self) -> None:
        """End the session; the next message begins another one, which knows nothing of this one.

        What tools changed in the state of a row stays changed.

        Raises:
            Fault: the target failed to return its state.
        """
        self._world = await self.world()
        await self._end()
        self._messages, self._answered = [], []

    async def close(self) -> None:
        """End the session for good: what a target kept of users is released."""
        await self._end()
        for user in self._users.values():
            await user.forget()

    async def _end(self) -> None:
        """End the session; one that cannot be closed is logged, and its exchanges are kept."""
        session, self._session = self._session, None
        if session is None:
            return
        try:
            with foreign_code():
                await session.close()
        except Exception as error:
            log.warning("session %s could not be closed: %s: %s", session.id, type(error).__name__, error)
