from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from pydantic import BaseModel

from vivavoce.messages import AIMessage, HumanMessage, Message, SystemMessage, ToolMessage, read_messages
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.records.score import Evidence, Usage
from vivavoce.records.trajectory import Trajectory, Turn
from vivavoce.unchecked import unchecked

RECORDS: list[tuple[type[BaseModel], dict[str, Any]]] = [
    (HumanMessage, {"role": "user", "content": "hello"}),
    (AIMessage, {"content": "hello", "role": "assistant"}),
    (SystemMessage, {"role": "developer", "content": "be kind"}),
    (ToolMessage, {"role": "tool", "content": "42"}),
    (Evidence, {"text": "hello", "turn": 1, "verified": True}),
    (Usage, {"calls": 1}),
    (Turn, {"index": 3, "messages": [HumanMessage(content="hello")]}),
    (Trajectory, {"turns": [Turn(index=0, messages=[HumanMessage(content="hello")])]}),
    (Trajectory, {}),
]


@pytest.mark.parametrize(("kind", "fields"), RECORDS)
def test_a_record_is_the_one_that_validation_makes(kind: type[BaseModel], fields: dict[str, Any]) -> None:
    made, validated = unchecked(kind, fields), kind.model_validate(fields)
    assert made == validated
    assert (made.model_fields_set, made.model_extra) == (validated.model_fields_set, validated.model_extra)
    assert list(vars(made)) == list(vars(validated))
    assert made.model_dump_json() == validated.model_dump_json()
    assert made.model_dump_json(exclude_unset=True) == validated.model_dump_json(exclude_unset=True)
    assert pickle.loads(pickle.dumps(made)) == copy.deepcopy(made) == made.model_copy() == validated


def test_what_is_made_anew_for_each_is_not_shared() -> None:
    assert unchecked(Trajectory, {}).turns is not unchecked(Trajectory, {}).turns


def test_the_input_of_a_metric_has_its_defaults() -> None:
    conversation = {"messages": [{"role": "user", "content": "hello"}]}
    validated = MultiTurnEvaluationInput.model_validate({"conversation_history": conversation})
    made = unchecked(MultiTurnEvaluationInput, {"conversation_history": validated.conversation_history})
    assert made == validated


ROWS: list[dict[str, Any]] = [
    {"role": "user", "content": "hello"},
    {"content": "grüß dich", "role": "assistant"},
    {"role": "developer", "content": ""},
    {"role": "tool", "content": "42"},
    {"role": "user", "content": None},
    {"role": "user", "content": [{"type": "text", "text": "hello"}]},
    {"role": "assistant", "content": "hello", "refusal": None},
    {"role": "assistant", "content": "hello", "seen": 1},
    {"type": "human", "content": "hello"},
]


@pytest.mark.parametrize("row", ROWS)
def test_a_message_of_role_and_text_is_read_like_any_other(row: dict[str, Any]) -> None:
    kinds: dict[str, type[Message]] = {
        "user": HumanMessage,
        "assistant": AIMessage,
        "developer": SystemMessage,
        "tool": ToolMessage,
    }
    role = row.get("role", "user")
    validated = kinds[role].model_validate(
        {"role": role, **{k: v for k, v in row.items() if k not in ("role", "type")}}
    )
    for read in (read_messages([row])[0], read_messages([row, row])[1]):
        assert read == validated
        assert (read.model_fields_set, read.model_extra) == (validated.model_fields_set, validated.model_extra)
        assert read.to_dict() == validated.to_dict()


@pytest.mark.parametrize(
    "row",
    [
        {"role": "nobody", "content": "hello"},
        {"role": ["user"], "content": "hello"},
        {"role": "user", "content": 7},
        {"role": "user", "text": "hello"},
    ],
)
def test_what_is_no_message_is_refused_whatever_it_looks_like(row: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="message 1"):
        read_messages([{"role": "user", "content": "hello"}, row])


def test_half_a_character_may_be_in_a_message() -> None:
    row = {"role": "user", "content": "half \ud83d"}
    assert read_messages([row]) == [HumanMessage(content="half \ud83d")]
