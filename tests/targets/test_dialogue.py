"""One conversation with a target as it is held, taken back in part, and begun anew."""

from __future__ import annotations

import uuid

import pytest

from stage import Bot, BotSession
from vivavoce.errors import BudgetExhausted, TargetFault
from vivavoce.messages import AIMessage, HumanMessage
from vivavoce.pacing.budget import Budget
from vivavoce.records.trajectory import Turn
from vivavoce.records.usage import Usage
from vivavoce.targets.channel import open_channel
from vivavoce.targets.dialogue import Dialogue
from vivavoce.targets.function import FunctionTarget
from vivavoce.targets.target import Opening, Target


def dialogue(target: Target, budget: Budget | None = None) -> Dialogue:
    channel = open_channel(target, limit=1, budget=budget or Budget(), timeout=5.0, retries=0)
    return Dialogue(channel, lambda: Opening(uuid.uuid4().hex, "s"))


async def say(held: Dialogue, *lines: str) -> list[str]:
    """Say something and return the answers, a cross for each that failed."""
    turns = [await held.say(HumanMessage(content=one)) for one in lines]
    return ["x" if one.failure else one.messages[-1].text for one in turns]


def moody(said: str) -> str:
    if "bad" in said:
        raise TargetFault("ouch", kind="crash")
    return said.upper()


async def test_a_session_opens_with_the_first_message_and_grows() -> None:
    bot = Bot(moody)
    held = dialogue(bot)
    assert (held.session_id, list(held.opening), await held.state(), bot.sessions) == (None, [], None, [])
    assert await say(held, "a", "b") == ["A", "B"]
    (session,) = bot.sessions
    assert session.sent == [["a"], ["a", "A", "b"]]
    assert (held.session_id, await held.state()) == (session.id, {"sent": "2"})


async def test_what_failed_stands_in_its_turn_and_is_not_sent_again() -> None:
    bot = Bot(moody)
    held = dialogue(bot)
    bad = [await held.say(HumanMessage(content=one)) for one in ("a", "bad", "c")][1]
    assert (bad.index, [one.text for one in bad.messages], bad.usage) == (1, ["bad"], None)
    assert bad.failure is not None
    assert (bad.failure.blame, bad.failure.message) == ("target", "ouch")
    assert bad.seconds is not None
    assert bot.sessions[0].sent[-1] == ["a", "A", "c"]


async def test_a_target_that_cannot_begin_is_a_failed_turn_and_may_begin_later() -> None:
    class Late(Bot):
        async def open(self, opening: Opening) -> BotSession:
            if not self.stateless:
                self.stateless = True
                raise TargetFault("not yet", kind="connection")
            return await super().open(opening)

    assert await say(dialogue(Late()), "a", "b") == ["x", "You said: b"]


async def test_the_last_answered_exchange_is_taken_back() -> None:
    bot = Bot(moody, stateless=True)
    held = dialogue(bot)
    await say(held, "a", "b", "bad")
    held.rollback()
    await say(held, "c")
    held.rollback()
    held.rollback()
    held.rollback()
    await say(held, "d")
    assert bot.sessions[0].sent[-2:] == [["a", "A", "c"], ["d"]]
    assert held.stateless


async def test_a_fresh_session_knows_nothing_and_turns_are_counted_on() -> None:
    bot = Bot(moody)
    held = dialogue(bot)
    await say(held, "a")
    await held.new_session()
    turn = await held.say(HumanMessage(content="b"))
    assert (turn.index, [session.sent for session in bot.sessions]) == (1, [[["a"]], [["b"]]])
    assert [session.closed for session in bot.sessions] == [True, False]
    held.rollback()
    await held.close()
    await held.close()
    assert (held.session_id, bot.sessions[1].closed) == (None, True)


async def test_a_session_that_cannot_be_closed_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    held = dialogue(Bot())
    session = await held.open()

    async def stuck() -> None:
        raise OSError("stuck")

    session.close = stuck
    await held.close()
    assert f"session {session.id} could not be closed: OSError: stuck" in caplog.text


async def test_where_no_call_may_be_made_none_is() -> None:
    bot = Bot()
    with pytest.raises(BudgetExhausted):
        await say(dialogue(bot, Budget(max_calls=1)), "a", "b")
    assert bot.sessions[0].sent == [["a"]]


async def test_a_new_session_finds_the_state_that_the_last_one_left() -> None:
    def count(message: str, state: dict[str, int]) -> str:
        state["n"] += 1
        return str(state["n"])

    row = {"n": 0}
    channel = open_channel(FunctionTarget(count), limit=1, budget=Budget(), timeout=5, retries=0)
    held = Dialogue(channel, lambda: Opening("c", "s", state=row))
    assert await say(held, "a") == ["1"]
    await held.new_session()
    assert await held.world() == {"n": 1}
    assert await say(held, "b") == ["2"]
    assert await held.world() == {"n": 2}
    assert row == {"n": 0}
    await held.close()


def exchange(index: int, said: str, answer: str) -> Turn:
    return Turn(index=index, messages=[HumanMessage(content=said), AIMessage(content=answer)], usage=Usage(calls=1))


async def test_a_conversation_goes_on_without_a_message_for_what_a_stateless_target_has_heard() -> None:
    bot = Bot(moody, stateless=True)
    held = dialogue(bot)
    turns = await held.go_on([exchange(0, "a", "alpha"), exchange(1, "b", "beta")])
    assert ([one.usage for one in turns], bot.sessions[0].sent) == ([None, None], [])
    assert (await held.say(HumanMessage(content="c"))).index == 2
    assert bot.sessions[0].sent == [["a", "alpha", "b", "beta", "c"]]
    held.rollback()
    held.rollback()
    await say(held, "d")
    assert bot.sessions[0].sent[-1] == ["a", "alpha", "d"]


async def test_a_target_that_keeps_the_conversation_is_told_the_messages_again() -> None:
    bot = Bot(moody)
    turns = await dialogue(bot).go_on([exchange(0, "a", "A"), exchange(1, "bad", "beta"), exchange(2, "c", "C")])
    assert [one.failure is None for one in turns] == [True, False]
    assert (turns[0].messages[-1].text, bot.sessions[0].sent[0]) == ("A", ["a"])
    assert await dialogue(bot).go_on([]) == []


async def test_a_function_of_the_whole_conversation_is_not_told_again() -> None:
    heard: list[list[str]] = []

    def listens(messages: list[dict[str, str]]) -> str:
        heard.append([one["content"] for one in messages])
        return "yes"

    held = dialogue(FunctionTarget(listens))
    await held.go_on([exchange(0, "a", "alpha")])
    await say(held, "b")
    assert heard == [["a", "alpha", "b"]]


async def test_a_function_that_keeps_conversations_apart_itself_is_told_again() -> None:
    heard: list[str] = []

    def keeps(message: str, conversation_id: str) -> str:
        heard.append(message)
        return "yes"

    held = dialogue(FunctionTarget(keeps))
    turns = await held.go_on([exchange(0, "a", "alpha")])
    assert (heard, turns[0].messages[-1].text) == (["a"], "yes")
