"""What Ragas reads of ours, and what we read of its files; `make live` asks Ragas itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vivavoce import EvaluationDataset, MultiTurnSample, SingleTurnSample, UsageError
from vivavoce.messages import AIMessage, HumanMessage, ToolCall, ToolMessage

MADE_BY_RAGAS = Path(__file__).with_name("ragas-0.4.3.jsonl")
"""What `ragas.EvaluationDataset(…).to_jsonl` of Ragas 0.4.3 wrote, byte for byte; 0.2.15 and 0.3.9 write the same."""

WEATHER = MultiTurnSample(
    user_input=[
        HumanMessage(content="What's the weather?", metadata={"lang": "en"}),
        AIMessage(content="", tool_calls=[ToolCall(id="c1", name="Weather", args={"place": "NYC", "days": [1, None]})]),
        ToolMessage(content="sunny", tool_call_id="c1", name="Weather"),
        AIMessage(content="Sunny, 75°F.", retrieval_context=["a page"]),
    ],
    reference="The weather is told.",
    reference_tool_calls=[ToolCall(name="Weather", args={"place": "NYC"})],
    reference_topics=["weather"],
    rubrics={"score1_description": "wrong", "score2_description": "right"},
)


def test_messages_have_the_types_and_calls_that_ragas_knows() -> None:
    (row,) = EvaluationDataset([WEATHER]).to_list("ragas")
    assert [message["type"] for message in row["user_input"]] == ["human", "ai", "tool", "ai"]
    assert all(isinstance(message["content"], str) for message in row["user_input"])
    (call,) = row["user_input"][1]["tool_calls"]
    assert call == {"id": "c1", "name": "Weather", "args": {"place": "NYC", "days": [1, None]}}
    assert row["reference_tool_calls"] == [{"name": "Weather", "args": {"place": "NYC"}}]
    known = {"reference": "The weather is told.", "reference_topics": ["weather"], "rubrics": WEATHER.rubrics}
    assert {name: row[name] for name in known} == known


def test_what_is_written_for_ragas_comes_back_as_it_was(tmp_path: Path) -> None:
    dataset = EvaluationDataset([WEATHER, MultiTurnSample(user_input=WEATHER.user_input[:1])])
    dataset.to_jsonl(tmp_path / "d.jsonl", "ragas")
    assert EvaluationDataset.from_jsonl(tmp_path / "d.jsonl").to_list() == dataset.to_list()


def test_content_that_is_null_or_in_parts_becomes_text() -> None:
    call = ToolCall(name="f", args={})
    parts = HumanMessage.model_validate({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]})
    sample = MultiTurnSample(user_input=[parts, AIMessage(content=None, tool_calls=[call])])
    (row,) = EvaluationDataset([sample]).to_list("ragas")
    assert [message["content"] for message in row["user_input"]] == ["ab", ""]


def test_a_single_turn_has_the_same_fields_in_both() -> None:
    sample = SingleTurnSample(user_input="q", response="a", rubrics={"score1_description": "x"})
    assert EvaluationDataset([sample]).to_list("ragas") == EvaluationDataset([sample]).to_list()


IMAGE = {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}}


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"role": "system", "content": "Be brief."}, r"sample 0: message 0 \(system\): Ragas has no such message"),
        ({"role": "user", "content": [IMAGE]}, r"message 0 \(user\): Ragas supports only text messages"),
        ({"role": "user", "content": "x", "type": "message"}, r"message 0 \(user\): has a key 'type'"),
    ],
)
def test_what_ragas_has_no_place_for_is_refused_and_named(message: dict[str, Any], text: str, tmp_path: Path) -> None:
    dataset = EvaluationDataset([MultiTurnSample.model_validate({"user_input": [message]})])
    with pytest.raises(UsageError, match=text):
        dataset.to_jsonl(tmp_path / "d.jsonl", "ragas")
    assert not list(tmp_path.iterdir())


def test_arguments_that_are_no_object_are_refused() -> None:
    call = {"function": {"name": "f", "arguments": "[1]"}}
    sample = MultiTurnSample.model_validate({"user_input": [{"role": "assistant", "tool_calls": [call]}]})
    with pytest.raises(UsageError, match="sample 0: arguments of f are not a JSON object"):
        EvaluationDataset([sample]).to_list("ragas")


def test_an_unknown_dialect_is_named() -> None:
    with pytest.raises(UsageError, match="no dialect 'ragass'; did you mean 'ragas'"):
        EvaluationDataset([WEATHER]).to_list("ragass")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_a_file_of_ragas_is_read_whole() -> None:
    dataset = EvaluationDataset.from_jsonl(MADE_BY_RAGAS)
    rows = [json.loads(line) for line in MADE_BY_RAGAS.read_text(encoding="utf-8").splitlines()]
    assert dataset.features() == ["user_input", "reference", "reference_tool_calls", "rubrics", "reference_topics"]
    assert dataset.to_list("ragas") == rows


def test_columns_of_ragas_0_1_are_read_by_their_old_names(tmp_path: Path) -> None:
    row = {"question": "Capital?", "answer": "Paris.", "contexts": ["Paris is it."], "ground_truth": "Paris"}
    expected = SingleTurnSample(
        user_input="Capital?", response="Paris.", retrieved_contexts=["Paris is it."], reference="Paris"
    )
    assert EvaluationDataset.from_list([row]).samples == (expected,)
    path = tmp_path / "old.csv"
    path.write_text('question,answer,contexts,ground_truth\nCapital?,Paris.,"[""Paris is it.""]",Paris\n')
    assert EvaluationDataset.from_csv(path).samples == (expected,)


def test_a_row_with_an_old_and_a_new_name_of_one_column_is_refused() -> None:
    with pytest.raises(UsageError, match="sample 0: unknown column 'question'"):
        EvaluationDataset.from_list([{"question": "a", "user_input": "b"}])
