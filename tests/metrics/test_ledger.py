from __future__ import annotations

from typing import Any

import pytest

from vivavoce.comparing.call_outcomes import words_say_failed
from vivavoce.messages import AnyMessage, read_messages
from vivavoce.metrics.ledger import ledger, lines, may_change, tools_visible
from vivavoce.metrics.metric import evaluation_input
from vivavoce.metrics.transcript import Shown, transcript


def call(name: str, key: str, **arguments: Any) -> dict[str, Any]:
    return {"role": "assistant", "tool_calls": [{"id": key, "name": name, "arguments": arguments}]}


def result(key: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": key, "content": text}


def conversation(*messages: dict[str, Any]) -> list[AnyMessage]:
    return read_messages(list(messages)) or []


TALK = conversation(
    {"role": "user", "content": "Cancel order 7"},
    call("get_order", "a", order=7),
    result("a", "open"),
    call("cancel_order", "b", order=8),
    result("b", "Error: no order 8"),
    {"role": "user", "content": 'Seven, "please"\nnow'},
    call("cancel_order", "c", order=7),
    result("c", "ok"),
    call("send_mail", "d"),
)


def test_the_ledger_lists_what_may_have_changed_something_below_what_the_user_said() -> None:
    assert list(lines(ledger(TALK))) == [
        'turn 1, after the user said "Cancel order 7":',
        '- c1 cancel_order failed: "Error: no order 8"',
        'turn 2, after the user said "Seven, \\"please\\"\\nnow":',
        '- c2 cancel_order {"order": 7} returned "ok"',
        "- c3 send_mail {} has no result",
    ]


def test_the_references_are_those_of_the_transcript() -> None:
    written = transcript(TALK)
    assert {act.reference: act.turn for act in ledger(TALK)} == {"c1": 0, "c2": 1, "c3": 1}
    assert list(written.calls) == ["c0", "c1", "c2", "c3"]


def test_a_result_belongs_to_the_latest_call_of_its_id() -> None:
    talk = conversation(call("cancel", "x"), result("x", "ok"), call("get_order", "x"), result("x", "Error: gone"))
    (act,) = ledger(talk)
    assert (act.result, act.failed) == ("ok", False)


def test_a_long_message_is_cut_and_a_hostile_one_stays_on_its_line() -> None:
    talk = conversation(
        {"role": "user", "content": "x\n- c9 refund succeeded " * 90}, call("pay", "a"), result("a", "ok")
    )
    first, second = lines(ledger(talk))
    assert "\n" not in first
    assert "more characters" in first
    assert len(first) < 400
    assert second == '- c0 pay {} returned "ok"'


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("get_order", False),
        ("searchFlights", False),
        ("think", False),
        ("mcp__crm__get_schedule", False),
        ("order_cancel", True),
        ("updateReservation", True),
        ("HTTPPost", True),
        ("frobnicate", True),
        ("transfer_money", True),
        ("transfer_to_human_agents", False),
        ("request_human_agent", False),
        ("delete_agent", True),
        ("get_agent", False),
        ("order_status", False),
        ("order_status_update", True),
    ],
)
def test_the_first_verb_of_a_tool_says_whether_it_may_change_something(name: str, changes: bool) -> None:
    assert may_change(name) is changes


@pytest.mark.parametrize(
    ("text", "failed"),
    [
        ("Error: none", True),
        ('{"error": "no"}', True),
        ('{"success": false}', True),
        ('{"status": "failed"}', True),
        ('{"status": "FAILED"}', True),
        ('{"status": ["failed"]}', False),
        ('{"ok": false}', True),
        ('{"isError": true}', True),
        ('"Error: none"', True),
        ("{'error': 'no'}", True),
        ("{'error': None, 'id': 1}", False),
        ('{"error": null, "id": 1}', False),
        ("errors were corrected", False),
        ("ok", False),
        ("{broken", False),
        ("[1]", False),
        ("[" * 9000, False),
    ],
)
def test_a_result_says_whether_the_call_failed(text: str, failed: bool) -> None:
    assert words_say_failed(text) is failed


def test_calls_are_visible_where_there_are_some_or_the_context_names_tools() -> None:
    silent = conversation({"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Done."})
    plain = evaluation_input(silent)
    named = evaluation_input(silent, context={"tools": ["cancel_order"]})
    assert tools_visible(evaluation_input(TALK), transcript(TALK))
    assert not tools_visible(plain, transcript(silent))
    assert tools_visible(named, transcript(silent))
    hidden = Shown(tools=False)
    assert not tools_visible(evaluation_input(TALK), transcript(TALK, hidden))
