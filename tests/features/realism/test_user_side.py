from __future__ import annotations

from features.realism.talks import talk
from vivavoce.features.realism.user_side import user_side
from vivavoce.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage


def test_each_message_stands_beside_the_answer_before_it() -> None:
    messages = [
        SystemMessage(content="Be kind."),
        AIMessage(content="Welcome!"),
        HumanMessage(content="Hi"),
        AIMessage(content="One."),
        ToolMessage(content="looked up"),
        AIMessage(content="Two?"),
        HumanMessage(content="Yes"),
    ]
    user = user_side("a", messages)
    assert user is not None
    assert (user.messages, user.before) == (("Hi", "Yes"), ("Welcome!", "Two?"))
    assert user.last == ("user", "Yes")


def test_who_says_nothing_in_words_has_no_side() -> None:
    assert user_side("a", [AIMessage(content="Hello?")]) is None
    assert user_side("a", talk("  ")) is None
    assert user_side("a", []) is None


def test_the_same_words_are_one_sample_and_a_single_message_is_not() -> None:
    first, second = (user_side(name, talk("My lamp is broken", "It is 4711")) for name in "ab")
    assert first is not None
    assert second is not None
    assert first.cluster == second.cluster
    first, second = (user_side(name, talk("Track my order")) for name in "ab")
    assert first is not None
    assert second is not None
    assert (first.cluster, second.cluster) == ("a", "b")


def test_half_of_the_conversations_are_held_back_and_those_of_one_sample_stay_together() -> None:
    one_by_one = [user_side(f"chat-{number}", talk("Track my order")) for number in range(200)]
    assert 70 < sum(user.held_back for user in one_by_one if user is not None) < 130
    trials = [user_side(f"a#{trial}", talk(f"Try {trial}"), "a") for trial in range(20)]
    assert len({trial.held_back for trial in trials if trial is not None}) == 1
