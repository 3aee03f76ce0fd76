"""Samples of Ragas become conversations and come back as they were; `make live` asks Ragas itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from features.formats.hostile import damage
from features.formats.translation import NOWHERE, back_and_forth, read_values
from vivavoce import EvaluationDataset, UsageError
from vivavoce.conversations.format import Loss, Place, Record
from vivavoce.conversations.reading import detect, format_with
from vivavoce.features.formats.conversion import texts as written_texts
from vivavoce.features.formats.ragas import FORMAT
from vivavoce.samples.row import read_sample
from vivavoce.samples.rows import read_samples

MADE_BY_RAGAS = Path(__file__).parents[2] / "samples" / "ragas-0.4.3.jsonl"
Json = dict[str, Any]

texts = st.text()
some = st.text(min_size=1).filter(str.strip)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | texts, lambda item: st.lists(item, max_size=2)
)
objects = st.dictionaries(texts, json_values, max_size=2)
calls = st.lists(st.fixed_dictionaries({"name": some, "args": objects}), max_size=2)
Fields = dict[str, st.SearchStrategy[Any]]


def message(type_: str, **more: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    fields: Fields = {"content": texts, "type": st.just(type_)}
    return st.fixed_dictionaries(fields, optional={"metadata": objects, **more})


messages = st.one_of(message("human"), message("ai", tool_calls=calls), message("tool"))
ids = st.lists(texts | st.integers(), max_size=2)
of_both: Fields = {
    "reference": texts,
    "rubrics": st.dictionaries(texts, texts, max_size=2),
    "synthesizer_name": texts,
}
conversations: st.SearchStrategy[Json] = st.fixed_dictionaries(
    {"user_input": st.lists(messages, min_size=1, max_size=4)},
    optional={**of_both, "reference_tool_calls": calls, "reference_topics": st.lists(texts, max_size=2)},
)
columns = {
    name: st.lists(texts, max_size=2) for name in ("retrieved_contexts", "reference_contexts", "multi_responses")
}
single_turns = st.fixed_dictionaries(
    {"user_input": texts, "response": texts},
    optional={
        **of_both,
        **columns,
        **dict.fromkeys(("retrieved_context_ids", "reference_context_ids"), ids),
        **dict.fromkeys(("persona_name", "query_style", "query_length"), texts),
    },
)


@given(st.lists(conversations, min_size=1, max_size=3))
def test_a_conversation_comes_back_as_it_was(samples: list[Json]) -> None:
    assert back_and_forth(FORMAT, samples) == samples


@given(st.lists(single_turns, min_size=1, max_size=3))
def test_a_single_turn_comes_back_as_it_was(samples: list[Json]) -> None:
    assert back_and_forth(FORMAT, samples) == samples


def test_what_ragas_wrote_comes_back_as_it_was() -> None:
    rows = [json.loads(line) for line in MADE_BY_RAGAS.read_text(encoding="utf-8").splitlines()]
    assert detect(MADE_BY_RAGAS) is FORMAT
    assert back_and_forth(FORMAT, rows) == rows
    assert EvaluationDataset.from_list(back_and_forth(FORMAT, rows)).to_list("ragas") == rows


def test_a_dataset_of_conversations_is_what_its_rows_are(tmp_path: Path) -> None:
    rows: list[Json] = [json.loads(line) for line in MADE_BY_RAGAS.read_text(encoding="utf-8").splitlines()]
    more: Json = {"id": "c", "goal": "told", "labels": {"a": 1}, "metadata": {"k": 1, "rubrics": {}}, "response": None}
    rows += [{**rows[0], **more}, {**rows[0], "reference": None, "rubric": {"score1_description": "x"}}]
    path = tmp_path / "d.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert list(read_samples(path)) == [
        read_sample(row, line=number + 1, position=number, base=tmp_path, file=path) for number, row in enumerate(rows)
    ]
    known, fields = format_with(path, None, {"goal": "reference"})
    assert (known.name, fields) == ("vivavoce", {"goal": "reference"})
    assert next(read_samples(path, fields={"goal": "reference"})).goal == rows[0]["reference"]


def test_a_misspelt_column_is_an_error_as_in_a_row_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text(json.dumps({"user_input": [{"content": "Hi", "type": "human"}], "referense": "x"}))
    with pytest.raises(UsageError, match=r"d\.jsonl:1 unknown key 'referense'; did you mean 'reference'"):
        list(read_samples(path))


def test_columns_of_ragas_0_1_are_a_conversation_and_written_by_their_new_names() -> None:
    old = {"question": "Capital?", "answer": "Paris.", "contexts": ["Paris is it."], "ground_truth": "Paris"}
    [row], loss = read_values(FORMAT, [old])
    assert [message["content"] for message in row["messages"]] == ["Capital?", "Paris."]
    assert (row["messages"][1]["retrieval_context"], row["ground_truth"]) == (["Paris is it."], "Paris")
    assert back_and_forth(FORMAT, [{**old, "contexts": '["Paris is it."]'}]) == [
        {
            "user_input": "Capital?",
            "response": "Paris.",
            "retrieved_contexts": ["Paris is it."],
            "reference": "Paris",
        }
    ]
    assert loss.entries() == []


def test_what_ragas_has_no_place_for_is_told() -> None:
    image = {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}}
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "[1]"}}
    messages: list[Json] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "What is it?"}, image], "name": "ann", "type": "x"},
        {"role": "assistant", "content": None, "tool_calls": [call], "reasoning_content": "hm"},
        {"role": "tool", "tool_call_id": "c1", "content": "a cat"},
    ]
    row: Json = {
        "id": "a",
        "messages": messages,
        "goal": "an answer",
        "ground_truth": ["a cat"],
        "labels": {"ok": True},
    }
    loss = Loss()
    [sample] = map(json.loads, written_texts([row], FORMAT, loss))
    assert sample == {
        "user_input": [
            {"content": "What is it?", "name": "ann", "type": "human"},
            {
                "content": "",
                "tool_calls": [{"id": "c1", "name": "f", "args": {}}],
                "reasoning_content": "hm",
                "type": "ai",
            },
            {"content": "a cat", "tool_call_id": "c1", "type": "tool"},
        ],
        **{key: row[key] for key in ("id", "goal", "ground_truth", "labels")},
    }
    assert [(entry.kind, entry.what) for entry in loss.entries()] == [
        ("dropped", "'type' of a message"),
        ("dropped", "a part of the type 'image_url'"),
        ("dropped", "arguments of a call that are not a JSON object"),
        ("dropped", "system message"),
    ]


def test_a_file_has_samples_of_one_kind() -> None:
    single = {"user_input": "q", "response": "a"}
    several = {"user_input": [{"content": content, "type": "human"} for content in "qr"]}
    rows, _ = read_values(FORMAT, [single, several])
    assert FORMAT.write is not None
    loss = Loss()
    assert list(FORMAT.write(rows, loss)) == [single]
    assert [(entry.kind, entry.what) for entry in loss.entries()] == [
        ("dropped", "a conversation in a file of single turns")
    ]
    first, second = FORMAT.write(rows[::-1], Loss())
    assert first == several
    assert [message["type"] for message in second["user_input"]] == ["human", "ai"]


def test_a_question_without_a_response_is_to_be_asked() -> None:
    [row], loss = read_values_without_messages({"user_input": "q", "reference": "a", "retrieved_contexts": ["c"]})
    assert row == {"input": "q", "ground_truth": "a", "metadata": {"retrieved_contexts": ["c"]}}
    assert loss.entries() == []


def read_values_without_messages(sample: Json) -> tuple[list[Json], Loss]:

    assert FORMAT.read is not None
    loss = Loss()
    return [row for _, row in FORMAT.read([Record(Place(NOWHERE, 1), sample)], loss)], loss


@pytest.mark.parametrize(
    ("sample", "reason"),
    [
        (["x"], "a sample must be an object"),
        ({"user_input": ["x"]}, "message 0: "),
        ({"reference": "x"}, "a sample needs a user_input"),
        ({"user_input": "q", "response": 5}, "a response is a text, not int"),
        (
            {"user_input": "q", "response": "a", "retrieved_contexts": "['x']"},
            "column 'retrieved_contexts' must be JSON, but this cell is not; write JSONL or Parquet",
        ),
    ],
)
def test_what_is_no_sample_is_told(sample: Any, reason: str) -> None:
    rows, loss = read_values(FORMAT, [sample, {"user_input": "q", "response": "a"}])
    assert len(rows) == 1
    assert [entry.kind for entry in loss.entries()] == ["broken"]
    assert reason in loss.entries()[0].what


@given(damage(json.loads(MADE_BY_RAGAS.read_text(encoding="utf-8").splitlines()[0])))
def test_nothing_makes_the_reader_fail(sample: Any) -> None:
    assert FORMAT.read is not None
    read_values_without_messages(sample)
