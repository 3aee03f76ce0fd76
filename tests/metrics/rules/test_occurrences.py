"""A rule finds what belongs to a call as if it looked at every other moment, and does so in long conversations."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.errors import GraderFault
from vivavoce.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from vivavoce.metrics.rules.event import Event, Moment, moments
from vivavoce.metrics.rules.occurrences import Occurrences
from vivavoce.metrics.rules.rule import check, read_rule
from vivavoce.work_time import limited_work

STEP = st.tuples(
    st.sampled_from(["a", "b", "user", "says"]), st.sampled_from(['{"o":1}', '{"o":"1"}', '{"o":2}', "{", "{}"])
)


def conversation(steps: list[tuple[str, str]], late: bool = False) -> list[Moment]:
    """Return the moments of a conversation; the results of `late` calls come at the end."""
    messages: list[AnyMessage] = []
    results: list[AnyMessage] = []
    for number, (kind, arguments) in enumerate(steps):
        if kind == "user":
            messages.append(HumanMessage(content="go on"))
        elif kind == "says":
            messages.append(AIMessage(content=f"order {arguments}"))
        else:
            call = {"id": f"i{number}", "function": {"name": kind, "arguments": arguments}, "type": "function"}
            messages.append(AIMessage.model_validate({"role": "assistant", "content": None, "tool_calls": [call]}))
            result = ToolMessage(content="done", tool_call_id=f"i{number}")
            (results if late else messages).append(result)
    return list(moments([*messages, *results]))


@given(
    st.lists(STEP, max_size=12),
    st.booleans(),
    st.sampled_from([{"call": "a"}, {"call": ["a", "b"]}, {"assistant_says": "order"}]),
    st.sampled_from([None, "o", {"o": "o"}]),
    st.sampled_from([None, 0, 1]),
)
def test_what_lies_before_and_after_is_what_a_look_at_every_moment_finds(
    steps: list[tuple[str, str]], late: bool, kind: dict[str, Any], same: Any, within_turns: int | None
) -> None:
    event = Event.model_validate({**kind, "same": same, "within_turns": within_turns})
    all_moments = conversation(steps, late)
    moments = [moment for moment in all_moments if event.happens_in(moment)]
    occurrences = Occurrences(event, moments, lambda: None)
    for head in (moment for moment in all_moments if moment.call is not None):
        near = [moment for moment in moments if event.belongs_to(moment, head)]
        assert occurrences.has_before(head) == any(moment.before(head) for moment in near)
        assert occurrences.has_after(head) == any(head.before(moment) for moment in near)


def pairs(count: int) -> list[Moment]:
    return conversation([("ab"[i % 2], f'{{"o":"{i}"}}') for i in range(count)])


def test_calls_are_found_by_their_arguments_in_a_long_conversation() -> None:
    rule = read_rule({"each": {"call": "b"}, "only_after": [{"call": "a", "same": "o"}] * 5})
    assert len(check(rule, pairs(4_000)).breaks) == 5 * 2_000
    counted = read_rule({"at_most": 1, "of": {"call": ["a", "b"], "within_turns": 1}})
    assert len(check(counted, pairs(4_000)).breaks) == 3_999


@pytest.mark.parametrize(
    "rule",
    [
        {"each": {"call": "b"}, "followed_by": [{"assistant_says": "order", "same": "o"}]},
        {"never": {"call": "b"}, "after": {"call": "a", "same": "o"}},
        {"at_most": 1, "of": {"call": "a", "same": "o"}},
    ],
)
def test_a_rule_ends_when_the_time_of_its_request_is_used_up(rule: dict[str, Any]) -> None:
    steps = [(kind, f'{{"o":"{i}"}}') for i in range(200) for kind in ("a", "b", "says")]
    read = read_rule(rule)
    with limited_work(1e-9), pytest.raises(GraderFault, match="this request takes more than"):
        check(read, conversation(steps))
