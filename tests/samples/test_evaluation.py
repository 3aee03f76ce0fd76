from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from vivavoce.errors import UsageError
from vivavoce.messages import AIMessage, HumanMessage, ToolCall, ToolMessage
from vivavoce.samples.evaluation import EvaluationDataset, MultiTurnSample, SingleTurnSample

USER = {"role": "user", "content": "hi"}


def asks(*ids: str | None) -> dict[str, Any]:
    return {"role": "assistant", "tool_calls": [{"id": id_, "name": "f", "args": {}} for id_ in ids]}


def result(call: str | None = None) -> dict[str, Any]:
    return {"role": "tool", "content": "", "tool_call_id": call}


@pytest.mark.parametrize(
    "messages",
    [
        [USER],
        [{"role": "assistant", "content": "Welcome"}, USER, USER],
        [USER, asks("a", "b"), result("b"), result("a")],
        [USER, asks(None, None), result(), result()],
        [USER, asks("a", "b"), result(), result("b")],
        [USER, asks("a")],
        [USER, {"role": "assistant", "refusal": "No."}],
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u"}}]}],
    ],
)
def test_a_possible_conversation_is_accepted(messages: list[dict[str, Any]]) -> None:
    sample = MultiTurnSample.model_validate({"user_input": messages})
    assert [message["role"] for message in sample.to_messages()] == [message["role"] for message in messages]


IMPOSSIBLE: list[tuple[list[dict[str, Any]], str]] = [
    ([], "needs at least one message"),
    ([result()], r"message 0 \(tool\) must follow an assistant message with a tool call"),
    ([USER, result()], r"message 1 \(tool\) must follow"),
    ([USER, {"role": "assistant", "content": "x"}, result()], r"message 2 \(tool\) must follow"),
    ([USER, asks("a"), result("a"), result("a")], r"message 3 \(tool\) must follow"),
    ([USER, asks("a"), USER, result("a")], r"message 3 \(tool\) must follow"),
    ([USER, asks("a", "b"), result("c")], r"message 2 \(tool\) answers call 'c', but the open calls are: a, b"),
    ([USER, {"role": "assistant", "content": " "}], r"message 1 \(assistant\) is empty.*and no tool call"),
    ([{"role": "user", "content": []}], r"message 0 \(user\) is empty: it has no content"),
]


@pytest.mark.parametrize(("messages", "rule"), IMPOSSIBLE)
def test_an_impossible_conversation_is_an_error_naming_the_message(messages: list[dict[str, Any]], rule: str) -> None:
    with pytest.raises(ValidationError, match=rule):
        MultiTurnSample.model_validate({"user_input": messages})


def test_ids_of_documents_stay_numbers_or_texts() -> None:
    ids = SingleTurnSample.model_validate({"retrieved_context_ids": [1, "1", 3.0, "x"]}).retrieved_context_ids
    assert repr(ids) == "[1, '1', 3, 'x']"


@pytest.mark.parametrize("kind", [SingleTurnSample, MultiTurnSample])
def test_nothing_is_taken_silently(kind: type[SingleTurnSample | MultiTurnSample]) -> None:
    with pytest.raises(ValidationError, match="referense"):
        kind.model_validate({"user_input": "x", "referense": "typo"})


def test_a_sample_that_says_nothing_is_refused() -> None:
    with pytest.raises(ValidationError, match="a sample needs at least user_input"):
        SingleTurnSample()


def test_features_are_the_fields_that_hold_something() -> None:
    sample = SingleTurnSample(user_input="", reference=None, rubrics={"a": "b"})
    assert sample.get_features() == ["user_input", "rubrics"]
    assert sample.to_dict() == {"user_input": "", "reference": None, "rubrics": {"a": "b"}}


def test_a_conversation_reads_as_lines() -> None:
    sample = MultiTurnSample(
        user_input=[
            HumanMessage(content="Weather?"),
            AIMessage(content="Let me see.", tool_calls=[ToolCall(name="f", args={"at": "NY"})]),
            ToolMessage(content="75°F"),
            AIMessage(content="75 degrees."),
        ],
        reference="the weather",
    )
    lines = ["Human: Weather?", "AI: Let me see.", '  → f({"at": "NY"})', "Tool: 75°F", "AI: 75 degrees."]
    assert sample.pretty_repr().splitlines() == [*lines, "---", "reference: the weather"]


def test_the_notebook_view_escapes_every_text() -> None:
    html = SingleTurnSample(user_input="<script>", rubrics={"<b>": "&"})._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert "<script>" not in html
    assert "<b>" not in html


Trip = Callable[[EvaluationDataset, Path], EvaluationDataset]


def through_list(dataset: EvaluationDataset, _: Path) -> EvaluationDataset:
    return EvaluationDataset.from_list(dataset.to_list(), dataset.name)


def through_jsonl(dataset: EvaluationDataset, folder: Path) -> EvaluationDataset:
    dataset.to_jsonl(folder / "d.jsonl")
    return EvaluationDataset.from_jsonl(folder / "d.jsonl", dataset.name)


def through_csv(dataset: EvaluationDataset, folder: Path) -> EvaluationDataset:
    dataset.to_csv(folder / "d.csv")
    return EvaluationDataset.from_csv(folder / "d.csv", dataset.name)


def through_parquet(dataset: EvaluationDataset, folder: Path) -> EvaluationDataset:
    pytest.importorskip("pyarrow", reason="the extra [frames] is not installed")
    dataset.to_parquet(folder / "d.parquet")
    return EvaluationDataset.from_parquet(folder / "d.parquet", dataset.name)


def through_pandas(dataset: EvaluationDataset, _: Path) -> EvaluationDataset:
    pytest.importorskip("pandas", reason="the extra [frames] is not installed")
    return EvaluationDataset.from_pandas(dataset.to_pandas(), dataset.name)


TRIPS: list[Trip] = [through_list, through_jsonl, through_csv, through_parquet, through_pandas]

texts = st.text(max_size=12) | st.sampled_from(["", "007", "2024-05-01", "null", "NaN", '""', "[]", '["a"]', "a\r\nb"])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
ids = st.lists(st.integers() | texts, max_size=3)
single_rows = st.fixed_dictionaries(
    {"user_input": texts},
    optional={
        "response": texts,
        "reference": texts,
        "retrieved_contexts": st.lists(texts, max_size=2),
        "retrieved_context_ids": ids,
        "multi_responses": st.lists(texts, max_size=2),
        "rubrics": st.dictionaries(texts, texts, max_size=2),
        "persona_name": texts,
    },
)
calls = st.builds(ToolCall, name=texts, args=st.dictionaries(texts, json_values, max_size=2), id=st.none() | texts)


@st.composite
def conversations(draw: st.DrawFn) -> MultiTurnSample:
    words = texts.filter(str.strip)
    call = draw(calls)
    human_message = HumanMessage(
        content=draw(words), metadata=draw(st.none() | st.dictionaries(texts, json_values, max_size=2))
    )
    answer = ToolMessage(content=draw(texts), tool_call_id=call.id)
    rest: dict[str, Any] = {
        "reference": draw(st.none() | texts),
        "reference_tool_calls": draw(st.none() | st.lists(calls, max_size=2)),
        "reference_topics": draw(st.none() | st.lists(texts, max_size=2)),
    }
    return MultiTurnSample(user_input=[human_message, AIMessage(tool_calls=[call]), answer], **rest)


singles = single_rows.map(SingleTurnSample.model_validate)
datasets = (st.lists(singles, max_size=4) | st.lists(conversations(), max_size=3)).map(EvaluationDataset)


@pytest.mark.parametrize("trip", TRIPS)
@given(dataset=datasets)
@settings(max_examples=60, deadline=None)
def test_a_dataset_comes_back_equal(
    trip: Trip, dataset: EvaluationDataset, tmp_path_factory: pytest.TempPathFactory
) -> None:
    again = trip(dataset, tmp_path_factory.mktemp("trip"))
    assert again == dataset
    assert json.dumps(again.to_list()) == json.dumps(dataset.to_list())


@pytest.mark.parametrize("trip", TRIPS)
def test_texts_numbers_and_missing_cells_stay_what_they_are(trip: Trip, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"user_input": "007", "response": "2024-05-01", "retrieved_context_ids": [1, "1", 10**30]},
        {"user_input": "", "reference": "None", "rubrics": {"score1_description": "4.0"}},
        {"user_input": '[{"role": "user", "content": "text, not messages"}]', "retrieved_contexts": []},
        {"user_input": '"quoted"', "response": "line\r\nbreak\rand\ttab"},
    ]
    dataset = EvaluationDataset.from_list(rows, "kept")
    again = trip(dataset, tmp_path)
    assert again.to_list() == rows
    assert again.name == "kept"
    assert again.samples[0].reference is None


@pytest.mark.parametrize("trip", TRIPS)
def test_each_tool_call_keeps_just_its_own_arguments(trip: Trip, tmp_path: Path) -> None:
    args: list[dict[str, Any]] = [{"id": 7, "on": "2024-05-01"}, {"amount": 7.0, "deep": {"x": [None, True, "7"]}}, {}]
    samples = [
        MultiTurnSample(
            user_input=[HumanMessage(content="go"), AIMessage(tool_calls=[ToolCall(name="f", args=argument)])]
        )
        for argument in args
    ]
    again = trip(EvaluationDataset(samples), tmp_path)
    messages = [sample.user_input[1] for sample in again if isinstance(sample, MultiTurnSample)]
    calls = [call for message in messages if isinstance(message, AIMessage) for call in message.tool_calls or ()]
    assert repr([call.args for call in calls]) == repr(args)


@pytest.mark.parametrize("trip", TRIPS)
def test_an_empty_dataset_works_everywhere(trip: Trip, tmp_path: Path) -> None:
    empty = EvaluationDataset()
    assert trip(empty, tmp_path) == empty
    assert (len(empty), list(empty), empty.features(), empty.is_multi_turn) == (0, [], [], False)
    assert repr(empty) == "EvaluationDataset(features=[], len=0)"
    assert "len=0" in empty._repr_html_()  # pyright: ignore[reportPrivateUsage]


def three() -> EvaluationDataset:
    return EvaluationDataset.from_list(
        [{"user_input": "a"}, {"user_input": "b", "reference": "B"}, {"user_input": "c", "response": "C"}], "three"
    )


def test_a_dataset_is_a_sequence_whose_slices_keep_the_name() -> None:
    dataset = three()
    assert [sample.user_input for sample in dataset] == ["a", "b", "c"]
    assert dataset[-1].user_input == "c"
    assert (dataset[1:].name, [sample.user_input for sample in dataset[1:]]) == ("three", ["b", "c"])
    with pytest.raises(IndexError):
        dataset[3]


def test_features_are_those_of_any_sample() -> None:
    assert three().features() == ["user_input", "response", "reference"]
    assert repr(three()) == "EvaluationDataset(name='three', features=['user_input', 'response', 'reference'], len=3)"


def test_the_kind_is_told_by_the_user_input() -> None:
    assert not three().is_multi_turn
    assert EvaluationDataset.from_list([{"user_input": [{"role": "user", "content": "hi"}]}]).is_multi_turn


def test_the_notebook_view_escapes_and_shortens() -> None:
    rows = [{"user_input": "<script>alert(1)</script>" + "x" * 500, "retrieved_contexts": ["<b>"]}] * 12
    html = EvaluationDataset.from_list(rows, "<i>")._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert "<script>" not in html
    assert "<b>" not in html
    assert "<i>" not in html
    assert "&lt;script&gt;" in html
    assert "x" * 250 not in html
    assert "… and 2 more" in html


@pytest.mark.parametrize(
    ("rows", "rule"),
    [
        (
            [{"user_input": "a"}, {"user_inptu": "b"}],
            "sample 1: unknown column 'user_inptu'; did you mean 'user_input'",
        ),
        ([{"user_input": "a"}, {"zebra": "b"}], "sample 1: unknown column 'zebra'; known: "),
        ([{"user_input": "a"}, {"user_input": 5}], "sample 1: user_input: should be a valid string, got 5"),
        ([{"user_input": [{"content": "a"}]}], "sample 0: message 0: needs a role"),
        ([{"user_input": [{"role": "user", "content": ""}]}], r"sample 0: user_input: message 0 \(user\) is empty"),
        ([{"user_input": [{"role": "user", "content": "a"}], "response": "b"}], "sample 0: response: unknown field"),
        ([{"user_input": None}], "sample 0: a sample needs at least user_input"),
        (
            [{"user_input": "a"}, {"user_input": [{"role": "user", "content": "a"}]}],
            "sample 1: is a MultiTurnSample in a dataset that begins with a SingleTurnSample",
        ),
    ],
)
def test_a_bad_row_is_an_error_that_names_the_sample(rows: list[dict[str, Any]], rule: str) -> None:
    with pytest.raises(UsageError, match=rule):
        EvaluationDataset.from_list(rows)


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [
        ("a.csv", "user_input,colour\na,\n", "a.csv:2 unknown column 'colour'"),
        ("a.csv", "user_input,rubrics\na,good\n", "a.csv:2 column 'rubrics' holds JSON, and this cell is not valid"),
        ("a.jsonl", '{"user_input": "a"}\n{"user_input": 5}\n', "a.jsonl:2 user_input: should be a valid string"),
        ("a.jsonl", '{"user_input": "a"}\n{"user_input": []}\n', "a.jsonl:2 user_input: a conversation needs at least"),
        (
            "a.jsonl",
            '{"user_input": "a"}\n\n{"user_input": [{"role": "user", "content": "a"}]}\n',
            "a.jsonl:3 is a MultiTurnSample",
        ),
    ],
)
def test_a_bad_row_of_a_file_is_an_error_with_its_line(tmp_path: Path, name: str, text: str, rule: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(UsageError, match=rule):
        list(EvaluationDataset.stream(tmp_path / name))


@pytest.mark.parametrize("name", ["d.jsonl", "d.csv", "d.parquet", "d.json"])
def test_a_file_streams_sample_by_sample(tmp_path: Path, name: str) -> None:
    pytest.importorskip("pyarrow", reason="the extra [frames] is not installed")
    dataset = three()
    writers: dict[str, Callable[[Path], object]] = {
        "d.jsonl": dataset.to_jsonl,
        "d.csv": dataset.to_csv,
        "d.parquet": dataset.to_parquet,
        "d.json": lambda path: path.write_text(json.dumps(dataset.to_list())),
    }
    writers[name](tmp_path / name)
    assert tuple(EvaluationDataset.stream(tmp_path / name)) == dataset.samples


def test_a_stream_gives_the_first_sample_before_it_reads_the_rest(tmp_path: Path) -> None:
    (tmp_path / "d.log").write_text('{"user_input": "a"}\nbroken\n')
    assert next(EvaluationDataset.stream_jsonl(tmp_path / "d.log")) == SingleTurnSample(user_input="a")


def test_csv_tells_nothing_from_an_empty_text(tmp_path: Path) -> None:
    EvaluationDataset.from_list([{"user_input": "a", "response": ""}, {"user_input": "b"}]).to_csv(tmp_path / "d.csv")
    with (tmp_path / "d.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [["user_input", "response"], ["a", '""'], ["b", ""]]


def test_a_failed_write_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    three().to_jsonl(path)
    before = path.read_bytes()
    broken = MultiTurnSample(user_input=[HumanMessage(content="a", metadata={"x": float("nan")})])
    with pytest.raises(UsageError, match="sample 0: Out of range float values are not JSON compliant"):
        EvaluationDataset([broken]).to_jsonl(path)
    with pytest.raises(UsageError, match="cannot be written: No such file or directory"):
        three().to_csv(tmp_path / "none" / "d.csv")
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("rows", "rule"),
    [
        ([SingleTurnSample(user_input="a"), {"user_input": "b"}], "sample 1: is a dict; .* read by .*from_list"),
        ("d.jsonl", "sample 0: is a str; a SingleTurnSample or a MultiTurnSample is needed"),
    ],
)
def test_what_is_no_sample_is_refused_at_once(rows: Any, rule: str) -> None:
    with pytest.raises(UsageError, match=rule):
        EvaluationDataset(rows)


def test_samples_of_two_kinds_are_refused() -> None:
    multi = MultiTurnSample(user_input=[HumanMessage(content="a")])
    with pytest.raises(UsageError, match="sample 1: is a MultiTurnSample"):
        EvaluationDataset([SingleTurnSample(user_input="a"), multi])
