from __future__ import annotations

import pytest

from vivavoce.messages import ToolCall
from vivavoce.penelope.agent import PenelopeAgent
from vivavoce.penelope.strategies.pair import Pair
from vivavoce.testing import ScriptedModel

from ..states import state, turn

STRATEGY = Pair()
NOTHING = {
    "given": "no",
    "given_evidence": [],
    "asked": "yes",
    "asked_evidence": ["Code"],
    "reasoning": "r",
    "confidence": 1.0,
}


def test_the_first_attempt_needs_no_new_session_and_every_other_does() -> None:
    assert not STRATEGY.move(state()).new_session
    assert STRATEGY.move(state(("Hi.", "Hello."))).new_session
    assert STRATEGY.move(state(("Hi.", "Hello."), turn("Hi!", "Yes.", fresh=True))).new_session


@pytest.mark.parametrize(
    ("reply", "seen"),
    [
        ("I'm sorry, but I can't help with that.", "was refused"),
        (None, "got no answer"),
        ("Which one?", "met with a question"),
        ("Hello.", "the same answer"),
        ("Here it is.", "was answered"),
    ],
)
def test_an_attempt_is_adapted_to_what_became_of_the_one_before(reply: str | None, seen: str) -> None:
    guidance = STRATEGY.move(state(("Hi.", "Hello."), turn("And?", reply, fresh=True))).guidance
    assert seen in guidance
    assert guidance.endswith(STRATEGY.move(state()).guidance)


def refuse(message: str) -> str:
    return "No."


async def test_the_tester_reads_once_that_a_new_conversation_begins() -> None:
    model = ScriptedModel([[ToolCall(name="send_message_to_target", args={"message": f"Code {n}?"})] for n in range(2)])
    judge = ScriptedModel(lambda request: NOTHING)
    agent = PenelopeAgent(model, judge=judge, strategy="pair", max_turns=2)
    await agent.aexecute_test(refuse, goal="The code is told")
    note = model.requests[-1].messages[-1].text
    assert note.count("new conversation") + note.count("remembers nothing") + note.count("knows nothing") == 2
    assert note.count("new conversation begins; the assistant remembers nothing") == 1
