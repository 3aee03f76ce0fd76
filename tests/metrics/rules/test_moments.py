from __future__ import annotations

from conversations import Row, calls, result, says, user
from vivavoce.messages import ConversationHistory
from vivavoce.metrics.rules.event import Moment, moments

REFUND: list[Row] = [
    user("I want my money back for order A-17."),
    calls(("a", "look_up", {"order": "A-17"})),
    result("a", "delivered"),
    says("Shall I refund A-17?"),
    user("Yes, please."),
    calls(("b", "refund_order", {"order": "A-17", "amount": 40})),
    result("b", "done"),
    says("I refunded A-17."),
]


def of(rows: list[Row]) -> list[Moment]:
    return list(moments(ConversationHistory.from_dict_list(rows).messages))


def test_a_call_lasts_from_its_message_to_its_result() -> None:
    made = [one for one in of(REFUND) if one.call]
    assert [(one.reference, one.turn, one.message, one.end, one.result) for one in made] == [
        ("c0", 0, 1, 2, "delivered"),
        ("c1", 1, 5, 6, "done"),
    ]
    assert made[0].before(made[1])
    assert not made[1].before(made[0])
    assert made[0].turns_from(made[1]) == made[1].turns_from(made[0]) == 1


def test_calls_of_one_message_are_neither_before_nor_after_each_other() -> None:
    for rows in ([result("a"), result("b")], []):
        a, b = (one for one in of([user("?"), calls(("a", "x", {}), ("b", "y", {})), *rows]) if one.call)
        assert not a.before(b)
        assert not b.before(a)


def test_words_are_those_of_the_user_the_assistant_and_tools() -> None:
    rows: list[Row] = [
        {"role": "system", "content": "Be kind."},
        {"role": "developer", "content": "Be brief."},
        says("Welcome"),
        user("hi"),
        {"role": "assistant", "content": None, "refusal": "I cannot."},
        says("  "),
        result("a", "found"),
    ]
    found = [(one.speaker, one.text, one.turn, one.message) for one in of(rows)]
    assert found == [
        ("assistant", "Welcome", None, 2),
        ("user", "hi", 0, 3),
        ("assistant", "I cannot.", 0, 4),
        ("tool", "found", 0, 6),
    ]
    before, after = of([says("Welcome"), user("hi")])
    assert before.turns_from(after) == 1


def test_arguments_that_are_no_object_are_unread_and_quoted() -> None:
    (_, broken) = of([user("?"), calls(("a", "refund", '["A-17\n'))])
    assert broken.args is None
    assert broken.line == 'refund("[\\"A-17\\n")'
