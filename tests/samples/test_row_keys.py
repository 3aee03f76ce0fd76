"""Keys of rows that other tools use for tests are refused, and everything else is data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.errors import UsageError
from vivavoce.grading.expected import KINDS
from vivavoce.samples.conversations import given_sample
from vivavoce.samples.row import ASSERTIONS, UnknownKeys, looks_like_assertions, read_sample
from vivavoce.samples.rows import check_samples, unusable_rows
from vivavoce.samples.sample import Sample

ASSERTED = [{"contains": "Paris"}]


def refusal(row: dict[str, Any], *, log: bool = False) -> str:
    try:
        read_sample({"input": "hi", **row}, line=1, position=0, base=Path(), unknown=UnknownKeys(log=log))
    except UsageError as error:
        return str(error)
    return ""


def test_the_names_of_assertions_are_those_that_can_be_checked() -> None:
    assert set(KINDS) == ASSERTIONS


@pytest.mark.parametrize(
    "key", ["assert", "asserts", "assertion", "assertions", "check", "checks", "expects", "Assert"]
)
def test_a_word_of_another_tool_for_assertions_is_refused(key: str) -> None:
    assert "did you mean 'expect'?" in refusal({key: ASSERTED})
    assert "did you mean 'expect'?" in refusal({key: "contains Paris"})


@pytest.mark.parametrize(
    "key", ["must_not_call", "forbidden", "should", "criteria", "verify", "validate", "validation"]
)
@pytest.mark.parametrize("value", ["refund", ["refund"], {"refund": True}])
def test_a_word_that_demands_something_is_refused(key: str, value: object) -> None:
    assert "did you mean 'expect'?" in refusal({key: value})
    assert refusal({key: value}, log=True) == ""


@given(st.sampled_from(["must_", "should_", "not_", "expected_"]), st.from_regex(r"[a-z]{3,12}", fullmatch=True))
def test_a_key_that_begins_like_a_demand_is_refused(start: str, rest: str) -> None:
    if f"{start}{rest}" not in Sample.model_fields:
        assert "did you mean" in refusal({f"{start}{rest}": "x"})


@pytest.mark.parametrize("key", ["output", "outputs", "response", "correct", "reference_output"])
def test_the_answer_of_a_row_that_is_to_be_asked_looks_like_its_truth(key: str) -> None:
    assert "did you mean 'ground_truth'?" in refusal({key: "Paris"})
    assert refusal({key: "Paris"}, log=True) == ""


@pytest.mark.parametrize("key", ["output", "response"])
def test_an_answer_beside_a_truth_or_a_recording_is_data(key: str) -> None:
    talk = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]
    assert refusal({key: "Paris", "ground_truth": "Paris"}) == ""
    assert refusal({key: "Paris", "input": None, "messages": talk}) == ""
    assert check_samples([{"input": "a", key: "b", "ground_truth": "b"}]).notes == (
        f"unknown keys kept as metadata: {key}",
    )


def test_a_question_with_its_response_is_a_recorded_conversation() -> None:
    assert refusal({"input": None, "user_input": "Where?", "response": "Paris"}) == ""
    for name in ("input", "user_input"):
        sample = given_sample({name: "Where?", "response": "Paris"})
        assert [message.text for message in sample.messages or ()] == ["Where?", "Paris"]


TRUTHS = """
expected expected_output expected_outputs expected_answer expected_response answer answers ideal gold groundtruth
reference_answer correct_answer target Expected_Output
"""


@pytest.mark.parametrize("key", [*TRUTHS.split(), "expectedOutput", "__expected1", "Expected Output", "solution"])
@pytest.mark.parametrize("value", ["Paris", ["Paris", "paris"], 42, {"a": 1}])
def test_a_word_of_another_tool_for_the_truth_is_refused(key: str, value: object) -> None:
    text = refusal({key: value})
    assert text == "" if (key, type(value)) == ("target", dict) else "did you mean 'ground_truth'?" in text


@pytest.mark.parametrize("key", ["expected_tools", "expected_tool_calls", "expected_trajectory"])
def test_a_word_of_another_tool_for_calls_is_refused(key: str) -> None:
    assert "did you mean 'reference_tool_calls'?" in refusal({key: ["refund"]})


@pytest.mark.parametrize(
    "value",
    [
        ASSERTED,
        {"contains": "x"},
        [[{"contains": "x"}], None],
        {"all": [{"contains": "x"}]},
        {"not": {"regex": "x"}},
        [{"type": "icontains", "value": "x"}],
        [{"type": "not-contains", "value": "x"}],
        '[{"contains": "x"}]',
    ],
)
def test_a_value_shaped_like_assertions_is_refused_under_any_name(value: object) -> None:
    assert "did you mean 'expect'?" in refusal({"verify": value})
    assert "did you mean 'expect'?" in refusal({"verify": value}, log=True)


@pytest.mark.parametrize(
    "value",
    [
        {"latency": 0.4},
        {"state": "CA"},
        {"calls": 3},
        {"metric": "x", "score": 1},
        {"contains": "x", "by": "me"},
        {"latency": 0.4, "calls": 3},
        ["contains"],
        [{"plan": "gold"}],
        [],
        {},
        None,
        "contains",
        "[draft]",
        3,
    ],
)
def test_plain_data_is_kept(value: object) -> None:
    assert refusal({"details": value}) == ""
    assert not looks_like_assertions(value)


TESTS_IN_KEYS: list[tuple[dict[str, Any], str, str]] = [
    ({"vars": {"expected": "Oslo"}}, "vars.expected", "ground_truth"),
    ({"vars": {"assert": "contains"}}, "vars.assert", "expect"),
    ({"vars": {"answer": "Oslo"}}, "vars.answer", "ground_truth"),
    ({"variables": {"expectedOutput": "Oslo"}}, "variables.expectedOutput", "ground_truth"),
    ({"item": {"must_call": "refund"}}, "item.must_call", "expect"),
    ({"item": {"expected_tools": ["refund"]}}, "item.expected_tools", "reference_tool_calls"),
    ({"defaultTest": {"assert": [{"type": "contains"}]}}, "defaultTest", "expect"),
    ({"tests": [{"vars": {}, "assert": []}]}, "tests", "expect"),
    ({"test": {"vars": {"gold": "Oslo"}}}, "test.vars.gold", "ground_truth"),
    ({"match": "Oslo"}, "match", "expect"),
    ({"score": {"expect": "Oslo"}}, "score.expect", "expect"),
    ({"foo": {"bar": {"contains": "Oslo"}}}, "foo.bar", "expect"),
    ({"foo": [{"a": 1}, {"assertions": ["x"]}]}, "foo.1.assertions", "expect"),
    ({"details": {"expected_facts": ["x"]}}, "details.expected_facts", "ground_truth"),
    ({"graders": ["contains"]}, "graders", "expect"),
    ({"rule": {"never": {"call": "x"}}}, "rule", "expect"),
    ({"constraints": ["x"]}, "constraints", "expect"),
    ({"targets": ["Oslo"]}, "targets", "ground_truth"),
    ({"retrieval_ground_truth": "Oslo"}, "retrieval_ground_truth", "ground_truth"),
]


@pytest.mark.parametrize(("row", "path", "field"), TESTS_IN_KEYS)
def test_a_test_inside_of_another_key_is_refused(row: dict[str, Any], path: str, field: str) -> None:
    problem = refusal(row)
    assert f"{path}: unknown key" in problem
    assert f"did you mean '{field}'?" in problem
    assert refusal(row, log=True) == "" or "contains" in str(row)


@pytest.mark.parametrize(
    "row",
    [
        {"vars": {"name": "Ana"}},
        {"item": {"plan": "pro"}},
        {"details": {"answer": "x", "label": 3, "tests": [1]}},
        {"user": {"target": "x", "solution": "y"}},
        {"details": {"expected": None, "expect": []}},
        {"matched": True},
        {"metadata": {"vars": {"expected": "x"}, "match": "y"}},
    ],
)
def test_plain_data_inside_of_another_key_is_kept(row: dict[str, Any]) -> None:
    assert refusal(row) == ""


def test_the_same_key_under_metadata_is_data() -> None:
    assert refusal({"metadata": {"assert": ASSERTED, "answer": "Paris"}}) == ""


def test_an_empty_cell_is_no_test() -> None:
    assert refusal({"expected": None, "assert": [], "answer": ""}) == ""


def test_a_target_beside_a_truth_is_data() -> None:
    assert refusal({"target": "bot-2", "ground_truth": "Paris"}) == ""


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("label", "good"),
        ("contexts", ["a text"]),
        ("answer", "Paris"),
        ("metrics", {"seconds": 3}),
        ("tool_calls", [{"name": "pay"}]),
        ("actions", [{"name": "pay"}]),
    ],
)
@pytest.mark.parametrize("truth", [{"ground_truth": "Paris"}, {"expect": {"contains": "Paris"}}])
def test_a_key_that_other_tools_export_is_data_beside_a_truth(key: str, value: object, truth: dict[str, Any]) -> None:
    assert refusal({key: value, **truth}) == ""
    assert check_samples([{"input": "a", key: value, **truth}]).notes == (f"unknown keys kept as metadata: {key}",)
    assert "did you mean" in refusal({key: value})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("calls", "pay"),
        ("calls", ["pay"]),
        ("calls", {"name": "pay"}),
        ("latency", 2),
        ("final_state", {"paid": True}),
        ("all", [{"contains": "x"}]),
        ("metrics", ["refusal"]),
        ("criteria", "names Paris"),
        ("forbidden_calls", ["pay"]),
        ("desired_outcome", "paid"),
        ("requirements", ["names Paris"]),
    ],
)
@pytest.mark.parametrize("truth", [{}, {"expect": {"contains": "Paris"}}])
def test_an_assertion_beside_others_is_refused(key: str, value: object, truth: dict[str, Any]) -> None:
    talk = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "Paris"}]
    problem = refusal({"input": None, "messages": talk, key: value, **truth})
    assert f"{key}: unknown key, which would be ignored; did you mean" in problem
    assert f'write it as metadata: {{"{key}": …}}' in problem
    assert refusal({"input": None, "messages": talk, "metadata": {key: value}, **truth}) == ""


@pytest.mark.parametrize(
    ("key", "value"), [("calls", 3), ("calls", None), ("latency", "0.4 s"), ("final_state", "done")]
)
def test_plain_data_under_the_name_of_an_assertion_is_kept(key: str, value: object) -> None:
    assert refusal({key: value}) == ""


@pytest.mark.parametrize("key", ["answer", "expected", "gold", "checks"])
def test_in_a_log_such_words_are_data(key: str) -> None:
    assert refusal({key: "Paris"}, log=True) == ""


def test_each_wrong_key_of_a_row_is_named_at_its_line(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text(
        '{"input": "a", "plan": "pro", "tier": 1}\n{"input": "b", "assert": [{"contains": "x"}], "answer": "y"}\n'
    )
    with pytest.raises(UsageError) as raised:
        check_samples(rows)
    assert [(problem.line, problem.message.split(":")[0]) for problem in raised.value.problems] == [
        (2, "assert"),
        (2, "answer"),
    ]
    assert len(unusable_rows(rows)) == 1
    with pytest.raises(UsageError) as raised:
        check_samples(rows, log=True)
    assert [problem.message.split(":")[0] for problem in raised.value.problems] == ["assert"]


def test_a_column_of_a_table_is_a_key_as_well(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("input,expected_tools,tier\nhi,refund,gold\n")
    with pytest.raises(UsageError, match=r"rows\.csv:2 expected_tools: .*reference_tool_calls"):
        check_samples(rows)


def test_other_unknown_keys_are_listed_once() -> None:
    rows = [{"input": "a", "plan": "pro"}, {"input": "b", "plan": "free", "tier": 1}]
    assert check_samples(rows).notes == ("unknown keys kept as metadata: plan, tier",)


@given(st.sampled_from(sorted(set(KINDS) - {"all", "any", "not"})), st.integers(), st.text(max_size=5))
def test_a_list_of_any_assertion_is_never_kept_as_data(kind: str, number: int, name: str) -> None:
    assert looks_like_assertions([{kind: number}])
    assert not looks_like_assertions([{kind: number, f"x{name}": number}])
