from __future__ import annotations

import pytest

from vivavoce.messages import AIMessage, HumanMessage, RefusalPart, ToolCall
from vivavoce.penelope.strategies.history import Reaction, is_refusal, reaction, turns_kept

from ..states import Exchange, state, turn

NO = "I'm sorry, but I can't help with that."


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (NO, "refused"),
        (AIMessage(content=None, refusal="No."), "refused"),
        (AIMessage(content=[RefusalPart(refusal="No.")]), "refused"),
        ("", "unanswered"),
        (None, "unanswered"),
        ("Which lamp is it? ", "asked"),
        ("どのランプですか？", "asked"),
        ("The  blue\none.", "repeated"),
        ("The red one.", "answered"),
        ("word " * 300 + NO, "answered"),
    ],
)
def test_what_the_target_did_has_one_name(reply: str | AIMessage | None, expected: Reaction) -> None:
    assert reaction(state(("Hi.", "The blue one."), turn("And?", reply))) == expected


def test_before_the_first_turn_there_is_no_reaction() -> None:
    assert reaction(state()) is None


def test_a_turn_that_was_taken_back_counts_as_never_said() -> None:
    taken_back = turn("And?", NO, forgotten=True)
    about = state(("Hi.", "Hello."), taken_back)
    assert [turn.message for turn in turns_kept(about)] == ["Hi."]
    assert reaction(about) is None
    assert reaction(state(("Hi.", "Hello."), taken_back, ("So?", "Hello."))) == "repeated"


def test_the_last_words_of_a_turn_decide() -> None:
    call = AIMessage(content="I can't help with that yet.", tool_calls=[ToolCall(id="1", name="look", args={})])
    turn_kept = turn("Hi.", "Here it is.")
    messages = [HumanMessage(content="Hi."), call, AIMessage(content="Here it is.")]
    assert not is_refusal(
        turn_kept.model_copy(update={"exchange": turn_kept.exchange.model_copy(update={"messages": messages})})
    )


@pytest.mark.parametrize(("text", "expected"), [("yes", True), ("partly", True), ("no", False), (None, False)])
def test_where_the_words_do_not_refuse_a_judge_is_believed(text: str | None, expected: bool) -> None:
    german = turn("Und?", "Fragen Sie lieber in der Apotheke.").model_copy(update={"target_refused": text})
    assert is_refusal(german) is expected
    assert is_refusal(turn("And?", NO).model_copy(update={"target_refused": text}))


def test_a_reply_of_a_megabyte_is_no_burden() -> None:
    huge: Exchange = ("Hi.", f"{NO} " * 30_000)
    assert is_refusal(state(huge).turns[0])
