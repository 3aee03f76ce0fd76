from __future__ import annotations

import asyncio
import contextvars
import functools
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from vivavoce.errors import Fault, RateLimited, UsageError
from vivavoce.messages import AIMessage, HumanMessage
from vivavoce.targets.function import FunctionTarget
from vivavoce.targets.target import Opening, Session, Target

Function = Callable[..., object]
TALK = [HumanMessage(content="one"), AIMessage(content="1"), HumanMessage(content="two")]
OPENING = Opening(conversation_id="c-1", sample_id="s-1")


async def session(function: Function) -> Session:
    target: Target = FunctionTarget(function)
    return await target.open(OPENING)


async def said_by(function: Function) -> str:
    reply = await (await session(function)).send(TALK)
    return reply.messages[-1].text


async def fault_of(function: Function) -> Fault:
    with pytest.raises(Fault) as caught:
        await said_by(function)
    return caught.value


def with_message(message: str) -> str:
    return message.upper()


def with_other_name(question: str, /) -> str:
    return question.upper()


def with_history(messages: list[dict[str, Any]]) -> str:
    return " ".join(m["role"] for m in messages)


def with_both(messages: list[dict[str, Any]], message: str) -> str:
    return f"{len(messages)} {message}"


def with_id(conversation_id: str, message: str, shout: bool = False) -> str:
    return f"{message} in {conversation_id}{'!' if shout else ''}"


def with_anything(*args: str, **kwargs: str) -> str:
    return f"{args} {kwargs}"


async def asynchronous(message: str) -> str:
    await asyncio.sleep(0)
    return message.upper()


def gives_a_coroutine(text: str) -> Awaitable[str]:
    return asynchronous(text)


class Bot:
    async def __call__(self, message: str) -> str:
        return message.upper()


def hangs_until(release: threading.Event) -> Function:
    def wait(message: str) -> str:
        release.wait()
        return message

    return wait


TAKEN: list[tuple[Function, str]] = [
    (with_message, "TWO"),
    (with_other_name, "TWO"),
    (with_history, "user assistant user"),
    (with_both, "3 two"),
    (with_id, "two in c-1"),
    (with_anything, "('two',) {}"),
    (functools.partial(with_id, shout=True), "two in c-1!"),
    (asynchronous, "TWO"),
    (Bot(), "TWO"),
    (gives_a_coroutine, "TWO"),
    (str.title, "Two"),
]


@pytest.mark.parametrize(("function", "said"), TAKEN)
async def test_the_signature_decides_what_a_function_gets(function: Function, said: str) -> None:
    assert await said_by(function) == said


def with_nothing() -> str:
    return "hi"


def with_only_an_id(conversation_id: str) -> str:
    return conversation_id


def with_more(message: str, temperature: float) -> str:
    return f"{message} {temperature}"


UNFIT: list[tuple[object, str]] = [
    (with_nothing, "with_nothing takes no message"),
    (with_only_an_id, "with_only_an_id takes no message"),
    (with_more, "with_more needs temperature, which are never filled"),
    ("bot", "needs a function, got a str"),
]


@pytest.mark.parametrize(("function", "problem"), UNFIT)
def test_a_function_that_cannot_be_called_is_refused_at_once(function: Any, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        FunctionTarget(function)


def test_a_target_is_called_like_its_function_unless_it_has_a_name() -> None:
    assert FunctionTarget(with_message).name == "with_message"
    assert FunctionTarget(with_message, name="bot").name == "bot"
    assert FunctionTarget(with_message).stateless is False


async def test_the_wire_messages_belong_to_the_function() -> None:
    def spoil(messages: list[dict[str, Any]]) -> str:
        messages[0]["content"] = "spoilt"
        messages.clear()
        return "done"

    assert await said_by(spoil) == "done"
    assert TALK[0].content == "one"


def broken(message: str) -> str:
    raise ConnectionError("no route to bot")


async def broken_later(message: str) -> str:
    return broken(message)


def leaves(message: str) -> str:
    sys.exit(3)


@pytest.mark.parametrize("function", [broken, broken_later])
async def test_an_exception_is_a_crash_with_the_users_frames_as_evidence(function: Function) -> None:
    fault = await fault_of(function)
    assert (fault.kind, fault.retryable) == ("crash", False)
    assert str(fault) == f"{function.__name__} raised ConnectionError: no route to bot"
    assert isinstance(fault.__cause__, ConnectionError)
    evidence = fault.evidence or ""
    assert "in broken" in evidence
    assert 'raise ConnectionError("no route to bot")' in evidence
    assert "targets/function.py" not in evidence


async def test_leaving_the_program_is_a_crash_too() -> None:
    assert str(await fault_of(leaves)) == "leaves raised SystemExit: 3"


async def test_a_fault_that_the_function_raises_on_purpose_is_passed_on() -> None:
    def busy(message: str) -> str:
        raise RateLimited("slow down", retry_after=2)

    fault = await fault_of(busy)
    assert isinstance(fault, RateLimited)
    assert fault.retry_after == 2


async def test_nothing_returned_is_a_format_fault() -> None:
    def silent(message: str) -> None:
        return None

    fault = await fault_of(silent)
    assert fault.kind == "format"
    assert "returned nothing (None)" in str(fault)


async def test_sync_functions_run_side_by_side_with_their_context() -> None:
    user = contextvars.ContextVar[str]("user")
    together = threading.Barrier(40, timeout=10)

    def wait_for_the_others(message: str) -> str:
        together.wait()
        return user.get()

    user.set("ada")
    open_session = await session(wait_for_the_others)
    replies = await asyncio.gather(*(open_session.send(TALK) for _ in range(40)))
    assert {reply.messages[0].text for reply in replies} == {"ada"}


async def test_a_hanging_function_can_be_given_up() -> None:
    release = threading.Event()
    open_session = await session(hangs_until(release))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(open_session.send(TALK), 0.02)
    release.set()
    assert await said_by(with_message) == "TWO"


def test_a_hanging_function_does_not_keep_the_program_from_ending() -> None:
    program = """
import asyncio, threading
from vivavoce.messages import HumanMessage
from vivavoce.targets.function import FunctionTarget
from vivavoce.targets.target import Opening

async def main():
    session = await FunctionTarget(lambda message: threading.Event().wait()).open(Opening("c", "s"))
    try:
        await asyncio.wait_for(session.send([HumanMessage(content="hi")]), 0.01)
    except TimeoutError:
        print("given up")

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "given up\n", "")
