"""Tables with a message in each row become conversations."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
import pytest
from hypothesis import given

from features.formats.hostile import damage
from features.formats.translation import read_values
from vivavoce import evaluate
from vivavoce.conversations.format import NATIVE, Loss, format_named
from vivavoce.conversations.message_table import FORMAT
from vivavoce.conversations.reading import detect
from vivavoce.errors import UsageError
from vivavoce.features.formats.conversion import How, convert
from vivavoce.files.rows import read_rows
from vivavoce.samples.rows import check_samples, read_samples

TABLE = """session,speaker,text,turn,channel
a,Customer,Where is 1042?,1,web
b,Customer,Hello,1,phone
a,Bot,It was sent.,2,web
b,Bot,Goodbye.,10,phone
b,Customer,Bye,9,phone
"""
ROWS: list[dict[str, Any]] = [
    {"conversation_id": 7, "role": "user", "content": "Where?", "timestamp": "2026-11-23T00:00:01Z", "score": 1},
    {
        "conversation_id": 7,
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "function": {"name": "find", "arguments": "{}"}}],
        "timestamp": "2026-11-23T00:00:02Z",
        "score": 2,
    },
    {"conversation_id": 7, "role": "tool", "content": "sent", "tool_call_id": "c", "timestamp": "2026-11-23T00:00:03Z"},
]


def _convert(path: Path, **fields: str) -> tuple[list[dict[str, Any]], Loss]:
    loss, out = Loss(), path.with_suffix(".out.jsonl")
    convert(path, out, format_named(NATIVE), loss, How(fields=fields))
    return [row for _, row in read_rows(out)], loss


def _speech(row: dict[str, Any]) -> list[tuple[str, str]]:
    return [(message["role"], message["content"]) for message in row["messages"]]


def test_rows_of_a_conversation_are_gathered_and_sorted(tmp_path: Path) -> None:
    path = tmp_path / "talk.csv"
    path.write_text(TABLE)
    assert detect(path).name == "turns"
    [first, second], loss = _convert(path)
    assert (first["id"], _speech(first)) == ("a", [("user", "Where is 1042?"), ("assistant", "It was sent.")])
    assert _speech(second) == [("user", "Hello"), ("user", "Bye"), ("assistant", "Goodbye.")]
    assert first["metadata"]["channel"] == "web"
    assert loss.entries() == []


def test_calls_results_and_times_are_kept() -> None:
    [row], loss = read_values(FORMAT, ROWS[::-1])
    assert (row["id"], [message["role"] for message in row["messages"]]) == ("7", ["user", "assistant", "tool"])
    assert row["messages"][1]["tool_calls"][0]["function"]["name"] == "find"
    assert row["messages"][2]["tool_call_id"] == "c"
    assert row["messages"][0]["timestamp"] == "2026-11-23T00:00:01Z"
    assert row["messages"][0]["metadata"] == {"turns": {"score": 1}}
    assert loss.entries() == []


def test_columns_of_other_names_are_named_by_the_user(tmp_path: Path) -> None:
    path = tmp_path / "talk.csv"
    path.write_text("case,who,words,when\n1,Ann,Hello.,1795394226\n1,shop,Hi.,1795394225\n")
    [row], loss = _convert(path, content="words", role="who", id="case", time="when")
    assert [(message["role"], message["name"], message["content"]) for message in row["messages"]] == [
        *(("user", "shop", "Hi."), ("assistant", "Ann", "Hello.")),
    ]
    assert [entry.what for entry in loss.entries()] == ["who is the user: the one who begins"]
    fields = {"content": "words", "role": "who", "id": "case", "goal": "metadata.wish"}
    with pytest.raises(UsageError, match=r"has no 'metadata\.wish'"):
        list(read_samples(path, fields=fields))
    del fields["goal"]
    [sample] = read_samples(path, fields=fields)
    assert (sample.id, sample.turn_count) == ("1", 1)
    assert check_samples(path, fields=fields).recorded == 1


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"content": "word", "role": "who"}, ": no such column; did you mean 'words'?"),
        ({"content": "words"}, "no column is known to hold the role; say it as role=COLUMN; there are: case, who"),
        (
            {"content": "words", "role": "who", "goal": "x"},
            "goal: a table with a message in each row has no such column",
        ),
    ],
)
def test_a_wrong_column_is_an_error(tmp_path: Path, fields: dict[str, str], complaint: str) -> None:
    path = tmp_path / "talk.csv"
    path.write_text("case,who,words\n1,Ann,Hi\n")
    with pytest.raises(UsageError) as caught:
        _convert(path, **fields)
    assert complaint in str(caught.value)


def _table(path: Path, row: dict[str, str]) -> Path:
    """Write a table of one row, as CSV or Parquet."""
    if path.suffix == ".csv":
        path.write_text(f"{','.join(row)}\n{','.join(row.values())}\n")
    else:
        frame: Any = pandas.DataFrame([row])
        frame.to_parquet(path)
    return path


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_a_table_in_which_nothing_can_be_said_is_refused_with_its_columns(tmp_path: Path, name: str) -> None:
    out = tmp_path / "out.jsonl"
    with pytest.raises(UsageError) as caught:
        convert(_table(tmp_path / name, {"frage": "Wo?", "nummer": "1"}), out, format_named(NATIVE), Loss())
    assert f"{name}: no column can be a message, a turn or an input; there are: frage, nummer; " in str(caught.value)
    assert "--field content=COLUMN --field role=COLUMN" in str(caught.value)
    assert not out.exists()


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_columns_that_no_row_has_are_told(tmp_path: Path, name: str) -> None:
    loss, out = Loss(), tmp_path / "out.jsonl"
    table = _table(tmp_path / name, {"prompt": "Where?", "ground_truth": "here", "colour": "red"})
    convert(table, out, format_named(NATIVE), loss)
    assert [(entry.kind, entry.what) for entry in loss.entries()] == [("unknown", "colour")]
    [(_, row)] = read_rows(out)
    assert row["colour"] == "red"


def test_without_a_conversation_a_file_is_one(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(
            '{"role": "user", "content": "Hi"}\n{"role": "ai", "content": "Yes?"}\n'
        )
    loss, out = Loss(), tmp_path / "out" / "rows.jsonl"
    convert(tmp_path, out, format_named(NATIVE), loss)
    assert [_speech(row) for _, row in read_rows(out)] == [[("user", "Hi"), ("assistant", "Yes?")]] * 2
    assert not loss.is_lossless


def test_a_system_that_answers_is_the_assistant() -> None:
    rows = [{"dialogue_id": "1", "speaker": speaker, "utterance": "…"} for speaker in ("USER", "SYSTEM", "USER")]
    [row], _ = read_values(FORMAT, rows)
    assert [message["role"] for message in row["messages"]] == ["user", "assistant", "user"]
    table_rows = [{"dialogue_id": "1", "role": role, "text": "…"} for role in ("system", "user", "assistant")]
    [row], loss = read_values(FORMAT, table_rows)
    assert [message["role"] for message in row["messages"]] == ["system", "user", "assistant"]
    assert loss.is_lossless


@pytest.mark.parametrize("kind", ["stream", "file"])
def test_a_folder_that_hugging_face_saved_is_its_rows(tmp_path: Path, kind: str) -> None:
    arrow: Any = importlib.import_module("pyarrow")
    ipc: Any = importlib.import_module("pyarrow.ipc")
    table = arrow.Table.from_pylist(
        [{"id": str(n), "messages": [{"role": "user", "content": "Hi", "name": None}]} for n in range(3)]
    )
    write = ipc.new_stream if kind == "stream" else ipc.new_file
    for part in range(2):
        with write(tmp_path / f"data-0000{part}-of-00002.arrow", table.schema) as writer:
            writer.write_table(table.slice(part * 2, 2))
    (tmp_path / "state.json").write_text("{}")
    (tmp_path / "dataset_info.json").write_text("{}")
    loss, out = Loss(), tmp_path / "out.jsonl"
    done = convert(tmp_path, out, format_named(NATIVE), loss)
    assert (done.conversations, [row["id"] for _, row in read_rows(out)]) == (3, ["0", "1", "2"])


def test_a_folder_of_several_data_sets_is_none(tmp_path: Path) -> None:
    (tmp_path / "dataset_dict.json").write_text("{}")
    (tmp_path / "train").mkdir()
    with pytest.raises(UsageError, match="name the folder of one: train"):
        convert(tmp_path, tmp_path / "out.jsonl", format_named(NATIVE), Loss())


def test_what_is_no_arrow_is_told(tmp_path: Path) -> None:
    path = tmp_path / "rows.arrow"
    path.write_bytes(b"ARROW")
    with pytest.raises(UsageError, match="cannot be read as Arrow"):
        list(read_rows(path))


@given(damage(ROWS))
def test_nothing_makes_the_reader_fail(records: list[Any]) -> None:
    try:
        read_values(FORMAT, [*records, *ROWS])
    except UsageError as error:
        assert "is known to hold" in str(error)  # noqa: PT017


HELP_DESK = "Dossier,Speaker,Text,Mood\n" + "".join(
    f"D{number},{who},{text},{mood}\n"
    for number in range(3)
    for who, text, mood in (("Customer", "Hi", "calm"), ("Bot", "Hello", "calm"), ("Customer", "Bye", "angry"))
)


def _refusals(path: Path) -> list[str]:
    """Return the lines with which each reader of a table refuses it."""
    readers: list[Callable[[], object]] = [
        lambda: _convert(path),
        lambda: list(read_samples(path)),
        lambda: check_samples(path),
        lambda: evaluate(path, "turn_count"),
    ]
    lines: list[str] = []
    for read in readers:
        with pytest.raises(UsageError) as caught:
            read()
        [problem] = caught.value.problems
        lines.append(problem.message)
    return lines


def test_a_table_with_an_unknown_column_of_conversations_is_refused_by_every_reader(tmp_path: Path) -> None:
    path = tmp_path / "desk.csv"
    path.write_text(HELP_DESK)
    [line] = set(_refusals(path))
    assert "--field id=Dossier" in line
    assert "Dossier, Speaker, Text, Mood" in line
    assert check_samples(path, fields={"id": "Dossier"}).samples == 3


@pytest.mark.parametrize("name", ["Ticket", "case", "Chat", "thread", "session", "Ticket No", "case_id"])
def test_common_names_of_conversations_are_known(name: str, tmp_path: Path) -> None:
    path = tmp_path / "desk.csv"
    path.write_text(HELP_DESK.replace("Dossier", name))
    assert check_samples(path).samples == 3


@pytest.mark.parametrize(
    "table",
    [
        "speaker,text\nCustomer,Hi\nBot,Hello\n",
        "number,speaker,text,channel\n1,Customer,Hi,web\n2,Bot,Hello,web\n",
        "speaker,text,note\nCustomer,Hi,\nBot,Hello,odd\nCustomer,Bye,\n",
    ],
)
def test_a_table_without_such_a_column_is_one_conversation(table: str, tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    path.write_text(table)
    assert check_samples(path).samples == 1


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ("Ticket No,Customer said,Bot said\n" + "1,Hi,Hello\n" * 30, "there are: Ticket No, Customer said, Bot said"),
        ("id;input;ground_truth\n" + "a;Hi;Hello\n" * 30, "semicolons"),
        ("id\tinput\tground_truth\n" + "a\tHi\tHello\n" * 30, "tabs"),
    ],
)
def test_columns_that_say_nothing_are_told_once_and_alike_by_every_reader(
    table: str, line: str, tmp_path: Path
) -> None:
    path = tmp_path / "odd.csv"
    path.write_text(table)
    [message] = set(_refusals(path))
    assert line in message


def test_a_column_that_the_caller_names_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("Question,Truth\nCapital of France?,Paris\n")
    assert check_samples(path, fields={"input": "Question", "ground_truth": "Truth"}).samples == 1
