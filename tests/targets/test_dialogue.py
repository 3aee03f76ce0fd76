"""One conversation with a target as it is held, taken back in part, and begun anew."""

from __future__ import annotations

import uuid

import pytest

from stage import Bot, BotSession
from vivavoce.errors import BudgetExhausted, TargetFault
from vivavoce.messages import AIMessage, HumanMessage, SessionMark
from vivavoce.pacing.limits import Budget
from vivavoce.records.score import Usage
from vivavoce.records.trajectory import Turn
from vivavoce.targets.dialogue import Dialogue, open_channel
from vivavoce.targets.function import FunctionTarget
from vivavoce.targets.target import Opening, Target, new_user


def dialogue(target: Target, budget: Budget | None = None) -> Dialogue:
    channel = open_channel(target, limit=1, budget=budget or Budget(), timeout=5.0, retries=0)
    return Dialogue(channel, lambda: Opening(uuid.uuid4().hex, "s"))


async def say(dialogue: Dialogue, *lines: str) -> list[str]:
    """Say something and return the answers, a cross for each that failed."""
    turns = [await dialogue.say(HumanMessage(content=line)) for line in lines]
    return ["x" if turn.failure else turn.messages[-1].text for turn in turns]


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
    dialogue = Dialogue(channel, lambda: Opening("c", "s", state=row))
    assert await say(dialogue, "a") == ["1"]
    await dialogue.new_session()
    assert await dialogue.world() == {"n": 1}
    assert await say(dialogue, "b") == ["2"]
    assert await dialogue.world() == {"n": 2}
    assert row == {"n": 0}
    await dialogue.close()


def exchange(index: int, said: str, answer: str) -> Turn:
    return Turn(index=index, messages=[HumanMessage(content=said), AIMessage(content=answer)], usage=Usage(calls=1))


async def test_a_conversation_goes_on_without_a_message_for_what_a_stateless_target_has_heard() -> None:
    bot = Bot(moody, stateless=True)
    held = dialogue(bot)
    turns = await held.go_on([exchange(0, "a", "alpha"), exchange(1, "b", "beta")])
    assert ([turn.usage for turn in turns], bot.sessions[0].sent) == ([None, None], [])
    assert (await held.say(HumanMessage(content="c"))).index == 2
    assert bot.sessions[0].sent == [["a", "alpha", "b", "beta", "c"]]
    held.rollback()
    held.rollback()
    await say(held, "d")
    assert bot.sessions[0].sent[-1] == ["a", "alpha", "d"]


async def test_a_target_that_keeps_the_conversation_is_told_the_messages_again() -> None:
    bot = Bot(moody)
    turns = await dialogue(bot).go_on([exchange(0, "a", "A"), exchange(1, "bad", "beta"), exchange(2, "c", "C")])
    assert [turn.failure is None for turn in turns] == [True, False]
    assert (turns[0].messages[-1].text, bot.sessions[0].sent[0]) == ("A", ["a"])
    assert await dialogue(bot).go_on([]) == []


async def test_a_function_of_the_whole_conversation_is_not_told_again() -> None:
    heard: list[list[str]] = []

    def listens(messages: list[dict[str, str]]) -> str:
        heard.append([message["content"] for message in messages])
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


def of(number: int, user: str | None, text: str) -> HumanMessage:
    return HumanMessage(content=text, session=SessionMark(number=number, user=user))


async def test_a_user_who_comes_back_is_known_again_and_another_user_or_attempt_is_not() -> None:
    heard: list[tuple[str, str, str]] = []

    def bot(message: str, user: str, conversation_id: str) -> str:
        heard.append((message, user, conversation_id))
        return message

    for _ in range(2):
        held = dialogue(FunctionTarget(bot))
        turns = [
            await held.say(of(*one)) for one in ((1, "ana", "a"), (1, "ana", "b"), (2, "bo", "c"), (3, "ana", "d"))
        ]
        await held.close()
        assert [turn.index for turn in turns] == [0, 1, 2, 3]
        assert [turn.mark and turn.mark.label for turn in turns] == [
            "session 1 · ana",
            "session 1 · ana",
            "session 2 · bo",
            "session 3 · ana",
        ]
    users, conversations = ([one[place] for one in heard] for place in (1, 2))
    assert users[0] == users[1] == users[3] != users[2]
    assert len(set(users)) == 4
    assert conversations[0] == conversations[1]
    assert len(set(conversations)) == 6


async def test_a_later_session_begins_with_what_the_target_greets_with() -> None:
    class Greeting(Bot):
        knows_users = True

        async def open(self, opening: Opening) -> BotSession:
            session = await super().open(opening)
            session.opening = [AIMessage(content="Hello")]
            return session

    held = dialogue(Greeting(moody))
    turns = [await held.say(of(*one)) for one in ((1, None, "a"), (2, None, "b"), (2, None, "c"))]
    assert [[message.text for message in turn.messages] for turn in turns] == [
        ["a", "A"],
        ["Hello", "b", "B"],
        ["c", "C"],
    ]


async def test_nobody_comes_back_to_a_target_that_is_not_told_who_speaks() -> None:
    held = dialogue(Bot(moody))
    assert (await held.say(of(1, "ana", "a"))).failure is None
    refused = (await held.say(of(2, "ana", "b"))).failure
    assert refused is not None
    assert (refused.blame, refused.kind) == ("suite", "sessions")
    assert "is not told who speaks" in refused.message


async def test_what_is_kept_of_a_user_is_released_at_the_end_even_where_that_fails(
    caplog: pytest.LogCaptureFixture,
) -> None:
    released: list[str] = []

    class Keeping(Bot):
        knows_users = True

        async def open(self, opening: Opening) -> BotSession:
            assert opening.user is not None
            name = opening.user.name

            async def release() -> None:
                released.append(name)
                raise RuntimeError("gone")

            if self not in opening.user.kept:
                opening.user.kept[self] = name
                opening.user.at_end(release)
            return await super().open(opening)

    held = dialogue(Keeping(moody))
    for one in ((1, "ana", "a"), (2, "bo", "b"), (3, "ana", "c")):
        await held.say(of(*one))
        assert released == []
    await held.close()
    assert sorted(released) == ["ana", "bo"]
    assert caplog.text.count("could not be removed: RuntimeError: gone") == 2


def test_the_id_of_a_user_is_plain_text_and_no_two_users_share_one() -> None:
    ids = [new_user(name, "f00", number).id for number, name in enumerate(("ana", "Zoë B", "Zo B", "李", None), 1)]
    assert ids == ["ana-f00-1", "Zo-B-f00-2", "Zo-B-f00-3", "user-f00-4", "user-f00-5"]
