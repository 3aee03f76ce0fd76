from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from vivavoce.errors import UsageError
from vivavoce.samples.row import check_fields, read_sample
from vivavoce.samples.sample import Sample

TALK = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]


def read(
    row: Mapping[str, Any], fields: Mapping[str, str] | None = None, *, base: Path | None = None, cells: bool = False
) -> Sample:
    file = Path("data.jsonl")
    return read_sample(row, line=7, position=4, base=base or Path(), fields=fields, file=file, cells=cells)


def dump(sample: Sample) -> dict[str, Any]:
    return sample.model_dump(exclude_defaults=True, exclude={"id"})


def test_our_own_fields_are_read_as_they_are() -> None:
    row: dict[str, Any] = {
        "id": "a",
        "trial": 2,
        "input": ["x", "y"],
        "ground_truth": ["X", None],
        "goal": "g",
        "rubric": "r",
        "agent_args": {"a": 1},
        "rubric_vars": {"b": 2},
        "extra_vars": {"c": 3},
        "labels": {"d": 4},
        "tags": ["t"],
        "metadata": {"e": 5},
    }
    assert read(row).model_dump(exclude_defaults=True) == row


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"sample_id": "s", "id": "i"}, "s"),
        ({"sample_id": None, "id": "i"}, "i"),
        ({"id": 3}, "3"),
        ({"id": 3.0}, "3"),
        ({"id": 3.5}, "3.5"),
        ({"id": "007"}, "007"),
        ({"id": None}, "4"),
        ({}, "4"),
    ],
)
def test_an_id_is_text_or_else_the_position(row: dict[str, Any], expected: str) -> None:
    assert read({"input": "x", **row}).id == expected


def test_the_id_that_lost_is_kept() -> None:
    assert read({"input": "x", "sample_id": "s", "id": 9}).metadata == {"id": 9}


def test_a_prompt_is_an_input_unless_there_is_one() -> None:
    assert dump(read({"prompt": "p"})) == {"input": "p"}
    assert dump(read({"input": None, "prompt": "p"})) == {"input": "p"}
    assert dump(read({"input": "i", "prompt": "p"})) == {"input": "i", "metadata": {"prompt": "p"}}


def test_variables_may_stand_in_the_metadata() -> None:
    metadata: dict[str, Any] = {"agent_args": {"a": 1}, "rubric_vars": {"b": 2}, "extra_vars": {"c": 3}, "d": 4}
    expected = {"input": "x", **metadata, "metadata": {"d": 4}}
    del expected["d"]
    assert dump(read({"input": "x", "metadata": metadata})) == expected
    assert metadata["agent_args"] == {"a": 1}


def test_a_rubric_comes_from_a_file_beside_the_dataset(tmp_path: Path) -> None:
    (tmp_path / "dog.txt").write_text("Ein Hünd?", encoding="utf-8")
    assert read({"input": "x", "rubric_path": "dog.txt"}, base=tmp_path).rubric == "Ein Hünd?"
    assert read({"input": "x", "policy_path": "dog.txt"}, base=tmp_path).policy == "Ein Hünd?"


def test_the_mark_at_the_beginning_of_a_file_is_not_part_of_its_text(tmp_path: Path) -> None:
    (tmp_path / "dog.txt").write_text("Be kind.", encoding="utf-8-sig")
    assert read({"input": "x", "policy_path": "dog.txt"}, base=tmp_path).policy == "Be kind."


def test_a_row_of_ragas_is_an_input_and_its_truth() -> None:
    row = {"user_input": "q", "reference": "a", "response": "r", "retrieved_contexts": ["c"], "rubrics": {"k": "v"}}
    rest = {"response": "r", "retrieved_contexts": ["c"], "rubrics": {"k": "v"}}
    assert dump(read(row)) == {"input": "q", "ground_truth": "a", "metadata": rest}
    assert read({"user_input": "q", "rubric": {"k": "v"}}).metadata == {"rubrics": {"k": "v"}}


def test_a_conversation_of_ragas_is_a_recorded_one() -> None:
    calls: list[dict[str, Any]] = [{"name": "f", "args": {}}]
    talk = [{"type": "human", "content": "Hi"}, {"type": "ai", "content": "", "tool_calls": calls}]
    sample = read({"user_input": talk, "reference": "done", "reference_tool_calls": [{"name": "f", "args": {"a": 1}}]})
    assert sample.messages is not None
    assert [message.role for message in sample.messages] == ["user", "assistant"]
    assert sample.ground_truth == "done"
    assert sample.model_dump()["reference_tool_calls"][0]["function"] == {"name": "f", "arguments": '{"a": 1}'}


@pytest.mark.parametrize(
    "call", [{"name": "f", "arguments": {"a": 1}}, {"function": {"name": "f", "arguments": '{"a": 1}'}}]
)
def test_a_recorded_conversation_is_read_in_both_shapes(call: dict[str, Any]) -> None:
    talk = [*TALK, {"role": "assistant", "content": None, "tool_calls": [{"id": "c", **call}]}]
    sample = read({"id": "t/0", "source": "s", "messages": talk, "goal": "g", "labels": {"ok": True}})
    assert sample.messages is not None
    assert sample.messages[2].to_dict()["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"a": 1}'}
    assert (sample.goal, sample.labels, sample.metadata) == ("g", {"ok": True}, {"source": "s"})


def test_fields_say_where_a_row_keeps_things() -> None:
    row: dict[str, Any] = {
        "id": "run/t3/r1",
        "messages": TALK,
        "labels": {"gold": [{"name": "f", "arguments": {}}], "answers": ["x", "y"]},
        "metadata": {"task_id": 3, "trial": 1},
    }
    fields = {
        "id": "metadata.task_id",
        "trial": "metadata.trial",
        "reference_tool_calls": "labels.gold",
        "ground_truth": "labels.answers.1",
    }
    sample = read(row, fields)
    assert (sample.id, sample.trial, sample.ground_truth) == ("3", 1, "y")
    assert len(sample.reference_tool_calls or []) == 1
    assert sample.metadata == {"task_id": 3, "trial": 1, "id": "run/t3/r1"}
    assert sample.labels == row["labels"]


def test_a_field_may_have_a_dot_or_a_misspelt_name_when_it_is_asked_for() -> None:
    sample = read({"a.b": "x", "inputs": "y"}, {"input": "inputs", "ground_truth": "a.b"})
    assert (sample.input, sample.ground_truth) == ("y", "x")


@pytest.mark.parametrize("path", ["metadata.task", "metadata.n.x", "labels", "labels.2"])
def test_a_path_that_a_row_does_not_have_is_an_error(path: str) -> None:
    with pytest.raises(UsageError, match=f"this row has no '{path}', where fields.id says to look"):
        read({"input": "x", "metadata": {"n": 1}}, {"id": path})


def test_fields_name_fields_of_a_sample() -> None:
    check_fields({"id": "x", "ground_truth": "y"})
    with pytest.raises(UsageError, match=r"fields\.ground_thruth: .*; did you mean 'ground_truth'"):
        check_fields({"ground_thruth": "x"})


def test_what_no_field_takes_is_kept_in_the_metadata() -> None:
    row = {"input": "x", "source": "s", "prompt_id": 1, "category": "b", "metadata": {"category": "a", "source": "s"}}
    assert read(row).metadata == {"source": "s", "prompt_id": 1, "category": "a", "row.category": "b"}
    assert row["metadata"] == {"category": "a", "source": "s"}


@pytest.mark.parametrize(
    ("key", "field"),
    [
        ("inptu", "input"),
        ("Input", "input"),
        ("groundtruth", "ground_truth"),
        ("tag", "tags"),
        ("rubric_pth", "rubric_path"),
        ("polcy", "policy"),
    ],
)
def test_a_key_that_looks_misspelt_is_an_error(key: str, field: str) -> None:
    with pytest.raises(UsageError, match=f"unknown key '{key}'; did you mean '{field}'"):
        read({"prompt": "x", key: "y"})


@pytest.mark.parametrize("key", ["idx", "prompt_id", "reference_answer", "source", "response_a", "model"])
def test_a_key_of_its_own_is_none(key: str) -> None:
    assert read({"input": "x", key: "y"}).metadata == {key: "y"}


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        ({"id": "x"}, "a sample needs 'input'"),
        ({"input": ["a", "b"], "ground_truth": ["c"]}, "input has 2 turns and ground_truth has 1"),
        ({"input": "a", "messages": TALK}, r"both 'input' \(to send\) and 'messages' \(to replay\)"),
        ({"input": "a", "rubric": "r", "rubric_path": "p"}, "'rubric' or a 'rubric_path', not both"),
        ({"input": "a", "rubric_path": "none.txt"}, "rubric_path: 'none.txt' cannot be read: No such file"),
        ({"input": "a", "policy": "r", "policy_path": "p"}, "'policy' or a 'policy_path', not both"),
        ({"input": "a", "policy_path": "none.txt"}, "policy_path: 'none.txt' cannot be read: No such file"),
        ({"input": "a", "policy": {"rule": 1}}, "policy: should be a valid string, got"),
        ({"input": "a", "rubric_path": 5}, "rubric_path: must be the path of a text file, got 5"),
        ({"input": "a", "metadata": "m"}, "metadata: must be an object, got str"),
        ({"input": "a", "agent_args": "m"}, "agent_args: should be a valid dictionary, got 'm'"),
        ({"input": "a", "id": ""}, "'id' is empty"),
        ({"input": "a", "id": True}, "id: should be a valid string, got True"),
        ({"input": ["a", 5]}, "input.1: should be a valid string, got 5"),
        ({"messages": [*TALK, {"role": "user", "content": 5}]}, "message 2 content: should be a valid string, got 5"),
        ({"input": "a", "reference_tool_calls": ["f()"]}, r"reference_tool_calls.0: should be .*, got 'f\(\)'"),
        ({"role": "user", "content": "Hello"}, r'a row is a whole conversation, \{"messages": \[…\]\}'),
    ],
)
def test_a_bad_row_is_one_line_with_its_place(row: dict[str, Any], rule: str) -> None:
    with pytest.raises(UsageError, match=f"^data.jsonl:7 .*{rule}") as caught:
        read(row)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("content", "why"), [(b"\xff", "not UTF-8"), (b" \n", "empty")])
@pytest.mark.parametrize("name", ["rubric_path", "policy_path"])
def test_a_file_without_a_text_is_an_error(tmp_path: Path, name: str, content: bytes, why: str) -> None:
    (tmp_path / "r.txt").write_bytes(content)
    with pytest.raises(UsageError, match=rf"{name}: 'r\.txt' is {why}"):
        read({"input": "a", name: "r.txt"}, base=tmp_path)


def test_cells_hold_texts_lists_and_json() -> None:
    row = {
        "id": "007",
        "trial": "2",
        "input": '["a", "b"]',
        "ground_truth": '["4.0", null]',
        "rubric_vars": '{"n": 1}',
        "tags": '["t"]',
        "labels": '{"ok": true}',
        "metadata": '{"k": 1}',
        "category": "[1]",
        "goal": None,
        "agent_args": None,
    }
    expected: dict[str, Any] = {
        "id": "007",
        "trial": 2,
        "input": ["a", "b"],
        "ground_truth": ["4.0", None],
        "rubric_vars": {"n": 1},
        "tags": ["t"],
        "labels": {"ok": True},
        "metadata": {"k": 1, "category": "[1]"},
    }
    assert read(row, cells=True).model_dump(exclude_defaults=True) == expected


@pytest.mark.parametrize(
    ("cell", "truth"),
    [("[see below]", "[see below]"), ("007", "007"), ("4", "4"), ('""', ""), ('"[1]"', "[1]"), (None, None)],
)
def test_a_cell_of_text_stays_text(cell: str | None, truth: str | None) -> None:
    assert read({"input": "x", "ground_truth": cell}, cells=True).ground_truth == truth


def test_text_that_looks_like_a_list_is_text_where_rows_have_types() -> None:
    assert read({"input": '["a"]'}).input == '["a"]'


def test_a_conversation_fits_a_cell() -> None:
    assert read({"messages": json.dumps(TALK)}, cells=True).turn_count == 1
    assert read({"user_input": json.dumps(TALK)}, cells=True).turn_count == 1


def test_a_mapped_cell_is_read_as_the_field_it_is_for() -> None:
    row = {"q": '["a"]', "answers": '["A"]', "gold": '[{"name": "f"}]', "m": '{"id": 5}', "metadata": '{"n": 3}'}
    sample = read(
        row, {"input": "q", "ground_truth": "answers", "reference_tool_calls": "gold", "id": "metadata.n"}, cells=True
    )
    assert (sample.id, sample.input, sample.ground_truth) == ("3", ["a"], ["A"])
    assert read({"input": "x", "answer": None}, {"ground_truth": "answer"}, cells=True).ground_truth is None


def test_a_cell_that_should_be_json_is_an_error_naming_the_column() -> None:
    with pytest.raises(UsageError, match="column 'tags' holds JSON, and this cell is not valid JSON"):
        read({"input": "x", "tags": "a, b"}, cells=True)


def test_what_a_tester_is_told_is_read_as_it_is() -> None:
    row: dict[str, Any] = {
        "id": "a",
        "goal": "g",
        "instructions": "i",
        "scenario": "s",
        "persona": {"style": "curt"},
        "facts": {"order": "1042"},
        "restrictions": ["no names"],
        "must": ["greet"],
        "must_not": ["swear"],
        "min_turns": 0,
        "max_turns": 5,
    }
    assert read(row).model_dump(exclude_unset=True, exclude={"metadata"}) == row


def test_what_a_tester_is_told_in_a_table_is_text_and_its_lists_are_json() -> None:
    row = {
        "goal": "[not a list]",
        "instructions": "007",
        "scenario": '"at home"',
        "persona": "impatient",
        "facts": '{"order": "1042"}',
        "restrictions": '["no names"]',
        "min_turns": "2",
        "max_turns": "5",
    }
    assert dump(read(row, cells=True)) == {
        **row,
        "facts": {"order": "1042"},
        "restrictions": ["no names"],
        "min_turns": 2,
        "max_turns": 5,
    }


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        ({"goal": "g", "max_turns": "many"}, "max_turns"),
        ({"goal": "g", "facts": "order"}, "column 'facts' holds JSON"),
        ({"goal": "g", "persnoa": "x"}, "did you mean 'persona'"),
        ({"scenario": "s"}, "a sample needs 'input' (what to ask), 'messages' (a recorded conversation) or a 'goal'"),
    ],
)
def test_a_row_for_a_tester_that_is_wrong_is_told_with_its_line(row: dict[str, Any], rule: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(row, cells=True)
    assert str(caught.value).startswith("data.jsonl:7 ")
    assert rule in str(caught.value)
