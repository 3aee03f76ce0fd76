"""A recorded target: it answers as it did, where the user says the same."""

from __future__ import annotations

from typing import Any

import pytest

from vivavoce.errors import SuiteFault, UsageError
from vivavoce.messages import AIMessage, AnyMessage, HumanMessage
from vivavoce.records.recording import RecordedReply, Recording, RecordingHead
from vivavoce.targets.recording import RecordingTarget
from vivavoce.targets.target import Opening


def recorded(said: str, answer: str, turn: int, **more: Any) -> RecordedReply:
    done: dict[str, Any] = {"messages": [{"role": "assistant", "content": answer}]}
    return RecordedReply.model_validate({"sample": "s", "target": "bot", "turn": turn, "said": said, **done, **more})


def target(*replies: RecordedReply, **about: Any) -> RecordingTarget:
    return RecordingTarget(Recording("r.jsonl", RecordingHead(), [], replies), **about)


TALK = (recorded("Hi", "Hello", 0), recorded("Bye", "See you", 1))
AGAIN = (recorded("Hi", "Hey", 0, trial=1), recorded("Bye now", "So long", 1, trial=1))


async def talk(bot: RecordingTarget, *said: str, sample: str = "s", trial: int = 0) -> list[str]:
    session = await bot.open(Opening("c", sample, trial=trial))
    history: list[AnyMessage] = []
    for text in said:
        history.append(HumanMessage(content=text))
        history += (await session.send(list(history))).messages
    return [one.text for one in history if isinstance(one, AIMessage)]


async def test_a_turn_is_answered_as_it_was() -> None:
    assert await talk(target(*TALK), "Hi", " Bye ") == ["Hello", "See you"]


async def test_trials_get_the_recorded_trials_in_turn_and_keep_to_them() -> None:
    bot = target(*TALK, *AGAIN)
    assert await talk(bot, "Hi", "Bye now", trial=1) == ["Hey", "So long"]
    assert await talk(bot, "Hi", "Bye", trial=2) == ["Hello", "See you"]
    with pytest.raises(SuiteFault) as caught:
        await talk(bot, "Hi", "Bye", trial=1)
    assert "turn 2 of row 's': the user says 'Bye', and said 'Bye now' then" in str(caught.value)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (["Hello?"], "r.jsonl has no reply for turn 1 of row 's': the user says 'Hello?', and said 'Hi' then"),
        (["Hi", "Why?"], "no reply for turn 2 of row 's': the user says 'Why?', and said 'Bye' then"),
        (["Hi", "Bye", "More"], "no reply for turn 3 of row 's': the recorded conversation has 2 turns"),
    ],
)
async def test_what_was_not_recorded_is_an_error_that_names_the_turn(said: list[str], why: str) -> None:
    with pytest.raises(SuiteFault) as caught:
        await talk(target(*TALK), *said)
    assert (why in str(caught.value), caught.value.kind) == (True, "unrecorded")
    assert caught.value.evidence == "what the user said when it was recorded\nturn 1: Hi\nturn 2: Bye"


async def test_a_turn_that_was_recorded_with_an_error_has_no_reply() -> None:
    broken = RecordedReply(sample="s", target="bot", turn=0, said="Hi", error="it was down")
    with pytest.raises(SuiteFault, match="it was recorded with an error: it was down"):
        await talk(target(broken), "Hi")


async def test_a_row_that_is_not_recorded_is_named() -> None:
    with pytest.raises(SuiteFault, match="has no row 'ss'; did you mean 's'"):
        await talk(target(*TALK), "Hi", sample="ss")


async def test_replies_that_are_not_in_the_history_are_not_gone_on_from() -> None:
    session = await target(*TALK).open(Opening("c", "s"))
    history = [HumanMessage(content="Hi"), AIMessage(content="Something else"), HumanMessage(content="Bye")]
    with pytest.raises(SuiteFault, match="what was answered before is not as it was recorded"):
        await session.send(history)


def test_whose_replies_are_given_has_to_be_clear() -> None:
    other = recorded("Hi", "Yo", 0, target="other")
    with pytest.raises(UsageError, match="recorded with 2 targets, bot, other; choose one with recorded_target"):
        target(*TALK, other)
    with pytest.raises(UsageError, match="has no target 'othr'; did you mean 'other'"):
        target(*TALK, other, recorded_target="othr")
    with pytest.raises(UsageError, match="has only tool results"):
        target()


async def test_one_of_several_targets_is_chosen() -> None:
    bot = target(*TALK, recorded("Hi", "Yo", 0, target="other"), recorded_target="other")
    assert await talk(bot, "Hi") == ["Yo"]
