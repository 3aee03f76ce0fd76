"""Samples as a dataset of Hugging Face, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vivavoce import EvaluationDataset, MultiTurnSample, SingleTurnSample, UsageError
from vivavoce.messages import AIMessage, HumanMessage, ToolCall, ToolMessage

datasets: Any = pytest.importorskip("datasets", reason="needs the extra [hf]")

CALLS = [ToolCall(id="c1", name="f", args={"a": 1, "n": None}), ToolCall(id="c2", name="g", args={"b": [1, 2]})]
CONVERSATION = MultiTurnSample(
    user_input=[
        HumanMessage(content="Hi", metadata={"lang": "en"}),
        AIMessage(content="", tool_calls=CALLS),
        ToolMessage(content="1", tool_call_id="c1"),
        ToolMessage(content="2", tool_call_id="c2"),
        AIMessage(content="Done."),
    ],
    reference_tool_calls=[ToolCall(name="f", args={"a": 1})],
    rubrics={"score1_description": "bad", "score2_description": "good"},
)
SHORT = MultiTurnSample(user_input=[HumanMessage(content="Hi")], reference_topics=["greetings"])
CONVERSATIONS = EvaluationDataset([CONVERSATION, SHORT])


def test_conversations_come_back_with_the_arguments_that_each_call_had() -> None:
    dataset = CONVERSATIONS.to_hf_dataset()
    assert isinstance(dataset, datasets.Dataset)
    assert dataset.column_names == CONVERSATIONS.features()
    again = EvaluationDataset.from_hf_dataset(dataset)
    assert again == CONVERSATIONS
    assert again.to_list() == CONVERSATIONS.to_list()


def test_single_turns_come_back_too() -> None:
    dataset = EvaluationDataset(
        [SingleTurnSample(user_input="q", retrieved_contexts=["c"]), SingleTurnSample(response="")]
    )
    assert EvaluationDataset.from_hf_dataset(dataset.to_hf_dataset()) == dataset


def test_the_parquet_file_of_such_a_dataset_is_read_as_well(tmp_path: Path) -> None:
    datasets.disable_progress_bars()
    CONVERSATIONS.to_hf_dataset().to_parquet(tmp_path / "d.parquet")
    assert EvaluationDataset.from_parquet(tmp_path / "d.parquet").to_list() == CONVERSATIONS.to_list()


def test_keys_that_arrow_added_to_arguments_are_taken_away() -> None:
    """As in a dataset that Ragas made, whose calls have their arguments as objects: Arrow gives both all keys."""
    calls = [{"name": "f", "args": {"a": 1}}, {"name": "g", "args": {"b": 2}}]
    dataset = datasets.Dataset.from_list([{"user_input": [{"type": "ai", "content": "", "tool_calls": calls}]}])
    assert dataset[0]["user_input"][0]["tool_calls"][0]["args"] == {"a": 1, "b": None}
    (sample,) = EvaluationDataset.from_hf_dataset(dataset)
    assert isinstance(sample, MultiTurnSample)
    message = sample.user_input[0]
    assert isinstance(message, AIMessage)
    assert [call.args for call in message.tool_calls or ()] == [{"a": 1}, {"b": 2}]


def test_an_empty_dataset_is_one(tmp_path: Path) -> None:
    assert len(EvaluationDataset.from_hf_dataset(EvaluationDataset().to_hf_dataset())) == 0


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ({"train": []}, r"expected one split of a dataset, such as dataset\['train'\]; got dict"),
        ([{"user_input": "a"}, {"zebra": "b"}], "sample 1: unknown column 'zebra'"),
    ],
)
def test_what_is_no_split_or_no_sample_is_named(rows: Any, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        EvaluationDataset.from_hf_dataset(rows)


def test_what_arrow_cannot_mix_is_refused_with_the_way_out() -> None:
    parts = HumanMessage.model_validate({"content": [{"type": "text", "text": "a"}]})
    mixed = EvaluationDataset([SHORT, MultiTurnSample(user_input=[parts])])
    with pytest.raises(
        UsageError, match=r"Arrow does not mix types within a column: .*; to_parquet writes such samples"
    ):
        mixed.to_hf_dataset()
