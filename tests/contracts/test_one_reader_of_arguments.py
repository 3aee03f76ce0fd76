"""Every reader of the arguments of a call asks `ToolCall.args`, which accepts strict JSON alone."""

from __future__ import annotations

import pytest

from vivavoce.grading.assertions import Scene
from vivavoce.grading.calls import NoCall
from vivavoce.grading.extractors import View
from vivavoce.messages import AIMessage, AnyMessage, FunctionCall, HumanMessage, ToolCall
from vivavoce.metrics import RuleMetric
from vivavoce.metrics.exact.arguments import ArgumentRule
from vivavoce.metrics.exact.personal_data import PersonalDataMetric
from vivavoce.metrics.exact.tool_calls import match_trajectory, tool_call_accuracy
from vivavoce.metrics.transcript import written_arguments
from vivavoce.report.html.evidence import Register
from vivavoce.report.html.transcript import Called, Writer

BROKEN = [
    '{"amount": 500,"amount": 5}',
    '{"amount": 5,"amount": 5}',
    '{"amount": 5, "to": {"name": "a", "name": "b"}}',
    '{"amount": 5, "to": [{"name": "a", "name": "b"}]}',
    '{"amount": 5, "fee": NaN}',
    '{"amount": 5, "fee": -Infinity}',
    '{"amount": 5, "fee": 1e999}',
    '{"amount": 5',
    "[5]",
]
"""Arguments that do not say, or not as JSON, what the call asks for."""


def _call(arguments: str) -> ToolCall:
    return ToolCall(id="1", function=FunctionCall(name="refund", arguments=arguments))


def _messages(arguments: str) -> list[AnyMessage]:
    return [HumanMessage(content="Refund?"), AIMessage(tool_calls=[_call(arguments)]), AIMessage(content="Done.")]


@pytest.mark.parametrize("arguments", BROKEN)
def test_arguments_that_are_not_strict_json_satisfy_no_reader(arguments: str) -> None:
    call, messages = _call(arguments), _messages(arguments)
    with pytest.raises(ValueError, match=r"."):
        _ = call.args

    too_much = RuleMetric(never={"call": "refund", "where": {"amount": {"above": 100}}})
    as_agreed = RuleMetric(always={"call": "refund", "where": {"amount": 5}})
    assert not too_much.evaluate(messages).passed
    assert not as_agreed.evaluate(messages).passed
    forbidden = NoCall.model_validate({"no_call": [{"name": "refund", "arguments": {"amount": 500}}]})
    assert not forbidden.held(Scene(View([messages]))).passed

    tool_call = ToolCall(name="refund", args={"amount": 5})
    assert match_trajectory([call], [tool_call]).reasons
    assert match_trajectory([call], [tool_call], arguments=ArgumentRule.read("subset")).reasons
    assert tool_call_accuracy([call], [tool_call]).score == 0

    assert written_arguments(arguments) != written_arguments('{"amount": 5}')
    [part] = [part for part in Writer(Register()).parts(messages, 0) if isinstance(part, Called)]
    assert "amount=5" not in part.short


def test_personal_data_in_a_value_that_a_later_one_replaces_counts() -> None:
    messages = _messages('{"to": "ana@example.org", "to": {"name": "x"}}')
    result = PersonalDataMetric(where=["tool_calls"]).evaluate(messages)
    assert result.score == 1
