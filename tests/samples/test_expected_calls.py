"""What a row demands of a call is read whole: a key that would be dropped is refused, in every place and shape."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from vivavoce.errors import UsageError
from vivavoce.grading.calls import Calls, NoCall
from vivavoce.messages import ToolCall
from vivavoce.samples.conversations import given_sample
from vivavoce.samples.evaluation import MultiTurnSample
from vivavoce.samples.row import UnknownKeys, read_sample
from vivavoce.samples.rows import check_samples
from vivavoce.samples.sample import Sample

ARGUMENTS = {"order": 1042, "why": {"code": "late"}}


def read(call: object) -> dict[str, Any]:
    row = {"input": "hi", "reference_tool_calls": [call]}
    [read_call] = read_sample(row, line=1, position=0, base=Path(), unknown=UnknownKeys()).expected_calls
    return read_call.args


SHAPES: list[Any] = [
    {"name": "refund", "arguments": ARGUMENTS},
    {"name": "refund", "arguments": json.dumps(ARGUMENTS)},
    {"name": "refund", "args": ARGUMENTS},
    {"name": "refund", "input": ARGUMENTS},
    {"name": "refund", "parameters": ARGUMENTS},
    {"name": "refund", "input_parameters": ARGUMENTS},
    {"type": "tool_use", "id": "t1", "name": "refund", "input": ARGUMENTS},
    {"id": "c1", "type": "function", "function": {"name": "refund", "arguments": json.dumps(ARGUMENTS)}},
    {"function": {"name": "refund", "parameters": ARGUMENTS}},
    ToolCall(name="refund", args=ARGUMENTS),
]


@pytest.mark.parametrize("call", SHAPES)
def test_the_arguments_are_read_by_whatever_name_a_format_gives_them(call: Any) -> None:
    assert read(call) == ARGUMENTS
    if not isinstance(call, ToolCall):
        [expected_call] = Calls.model_validate({"calls": [call]}).calls
        assert (expected_call.name, expected_call.arguments) == ("refund", ARGUMENTS)


WRONG: list[Any] = [
    {"name": "refund", "argumnts": ARGUMENTS},
    {"name": "refund", "arg": ARGUMENTS},
    {"name": "refund", "order": 1042},
    {"name": "refund", "arguments": {}, "args": ARGUMENTS},
    {"name": "refund", "arguments": [ARGUMENTS]},
    {"name": "refund", "arguments": 5},
    {"function": {"name": "refund", "argumnts": "{}"}},
    {"function": {"name": "refund"}, "arguments": ARGUMENTS},
    {"function": {"name": "refund", "arguments": "{}"}, "args": ARGUMENTS},
    {"function": "refund", "args": ARGUMENTS},
    {"tool": "refund", "arguments": ARGUMENTS},
    {"arguments": ARGUMENTS},
    {"name": "", "arguments": ARGUMENTS},
    {"name": " ", "args": ARGUMENTS},
    {"function": {"name": "", "arguments": "{}"}},
    {"name": "refund", "arguments": "{bad"},
    {"name": "refund", "args": "[1]"},
    {"name": "refund", "arguments": '"text"'},
    {"name": "refund", "arguments": '{"n": 1, "n": 2}'},
    {"function": {"name": "refund", "arguments": '{"n": NaN}'}},
]


def test_a_call_with_broken_arguments_is_named_with_its_row_and_key(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    call = {"name": "refund", "arguments": "{bad"}
    good = {"input": "hi", "reference_tool_calls": [{"name": "refund", "arguments": "{}"}]}
    lines = [good, {"input": "hi", "reference_tool_calls": [{"name": "refund"}, call]}]
    rows.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(UsageError) as raised:
        check_samples(rows)
    [problem] = raised.value.problems
    assert problem.line == 2
    assert "reference_tool_calls.1: arguments of a tool call are not a JSON object" in problem.message


@pytest.mark.parametrize("call", WRONG)
def test_a_key_that_would_be_dropped_is_refused_everywhere(call: Any) -> None:
    with pytest.raises(UsageError):
        read(call)
    for fields in ({"calls": [call]}, {"calls": call}):
        with pytest.raises(ValidationError):
            Calls.model_validate(fields)
    with pytest.raises(ValidationError):
        NoCall.model_validate({"no_call": [call]})
    with pytest.raises(ValidationError):
        Sample(id="a", input=["x", "y"], reference_tool_calls=[[call], None])


def test_a_sample_of_ragas_is_read_as_strictly() -> None:
    sample = MultiTurnSample.model_validate(
        {
            "user_input": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}],
            "reference_tool_calls": [{"name": "refund", "argumnts": ARGUMENTS}],
        }
    )
    with pytest.raises(UsageError, match="argumnts"):
        given_sample(sample)


def test_a_misspelt_key_is_named_with_the_right_one() -> None:
    with pytest.raises(UsageError, match="has no 'argumnts'; did you mean 'arguments'"):
        read({"name": "refund", "argumnts": ARGUMENTS})


KNOWN_KEYS = frozenset(
    "id type name index function custom agent arguments args input parameters input_parameters kwargs".split()  # noqa: SIM905
)


@given(st.text(min_size=1, max_size=12).filter(lambda key: key not in KNOWN_KEYS))
def test_no_other_key_is_dropped(key: str) -> None:
    with pytest.raises(ValidationError):
        Sample(id="a", input="x", reference_tool_calls=[{"name": "refund", key: ARGUMENTS}])  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValidationError):
        Calls.model_validate({"calls": [{"name": "refund", key: ARGUMENTS}]})
