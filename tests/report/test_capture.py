"""Rows from conversations: what is kept, what is cut out, and how a row comes into a file."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from vivavoce.errors import UsageError
from vivavoce.messages import HumanMessage
from vivavoce.records.run import Attempt, Run
from vivavoce.records.trajectory import Test
from vivavoce.report.capture import capture, find_conversation
from vivavoce.samples.dataset_file import append_row
from vivavoce.samples.rows import check_samples
from vivavoce.samples.sample import Sample
from vivavoce.store.store import Store

from .cases import keep, outcome


def attempt(row: dict[str, Any], *texts: str, test: bool = False) -> Attempt:
    """Return the attempt at a row in which the user said "Hi" once for each answer, or what is named in the row."""
    first_attempt = outcome("refund", texts=texts or ("Hello!",)).attempt
    trajectory = first_attempt.trajectory.model_copy(update={"test": Test.model_construct() if test else None})
    return first_attempt.model_copy(update={"sample": json.dumps({"id": "refund", **row}), "trajectory": trajectory})


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(id="run-1", suite="support", spec={"target": {"api_key_env": "BOT_SECRET"}}, base=".", started_at=1.0)


def test_a_row_asks_again_what_the_row_of_the_conversation_asked(run: Run) -> None:
    known = {"input": ["a", "b"], "ground_truth": [None, "x"], "goal": "g", "tags": ["t"], "metadata": {"m": 1}}
    row = capture(run, attempt(known, "only one answer came")).row
    assert row == {
        **known, "id": "refund", "tags": ["t", "captured"],
        "metadata": {"m": 1, "captured_from": "run-1/refund#1 on bot"},
    }  # fmt: skip
    assert "expect" not in row
    assert list(row)[:2] == ["id", "input"]


def test_of_a_tester_or_a_log_what_was_said_is_asked(run: Run) -> None:
    tester_row = {"goal": "g", "input": "first", "persona": "impatient", "facts": {"order": "7"}, "max_turns": 4}
    captured = capture(run, attempt(tester_row, "A", "B", test=True))
    assert captured.row["input"] == ["Hi", "Hi"]
    assert {"persona", "facts", "max_turns"}.isdisjoint(captured.row)
    assert captured.left_out == ["persona (for a tester)", "facts (for a tester)", "max_turns (for a tester)"]
    logged = capture(run, attempt({"labels": {"good": 1}, "trial": 1, "expect": [None, {"contains": "x"}]}, "A", "B"))
    assert logged.row["input"] == ["Hi", "Hi"]
    assert logged.row["expect"] == [None, {"contains": "x"}]
    assert {"labels", "trial", "messages"}.isdisjoint(logged.row)


def test_what_is_listed_for_other_turns_is_left_out_and_said(run: Run) -> None:
    known: dict[str, Any] = {
        "goal": "g",
        "input": ["a"],
        "ground_truth": ["x"],
        "reference_tool_calls": [{"name": "f", "args": {}}],
    }
    captured = capture(run, attempt(known, "A", "B", test=True))
    assert captured.left_out == ["ground_truth (different number of turns)"]
    assert "reference_tool_calls" in captured.row


def test_keys_and_personal_data_are_cut_out_everywhere_and_counted(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOT_SECRET", "p4ssw0rd-of-the-bot")
    known = {
        "input": ["I am ada@example.org, call +1 650 253 0000", "Mail ADA@example.org, not bob@example.com"],
        "goal": "pay card 4111 1111 1111 1111",
        "context": {"role": "clerk", "ada@example.org": [4111111111111111, 12, True, None]},
        "metadata": {"header": "Authorization: Bearer abcdef123456", "own": "p4ssw0rd-of-the-bot"},
    }
    captured = capture(run, attempt(known))
    text = json.dumps(captured.row)
    for secret in ("example.org", "650", "4111", "bob@", "abcdef123456", "p4ssw0rd"):
        assert secret not in text, secret
    assert captured.row["input"] == ["I am [email 1], call [phone 1]", "Mail [email 1], not [email 2]"]
    assert captured.row["context"] == {"role": "clerk", "[email 1]": ["[card 1]", 12, True, None]}
    assert captured.cut == {"e-mail": 2, "phone number": 1, "card number": 1, "key": 2}
    assert "removed: " in captured.notes()[0]
    assert "2 e-mails" in captured.notes()[0]
    assert "removed: nothing; names and addresses" in capture(run, attempt({"input": "Hi"})).notes()[0]


def test_an_id_that_is_an_address_is_cut_too_and_a_region_finds_its_numbers(run: Run) -> None:
    address_attempt = attempt({"input": "call 650-253-0000"})
    renamed_attempt = address_attempt.model_copy(
        update={"key": address_attempt.key._replace(sample_id="ada@example.org")}
    )
    row = capture(run, renamed_attempt, "US").row
    assert (row["id"], row["input"]) == ("[email 1]", "call [phone 1]")
    assert row["metadata"]["captured_from"] == "run-1/[email 1]#1 on bot"
    with pytest.raises(UsageError, match="unknown region 'XX'"):
        capture(run, address_attempt, "XX")


def test_a_message_of_several_parts_stays_one(run: Run) -> None:
    goal_attempt = attempt({"goal": "g"}, test=True)
    image = {"type": "image_url", "image_url": {"url": "https://x.example/a.png"}}
    message = HumanMessage.model_validate({"role": "user", "content": [image]})
    [turn] = goal_attempt.trajectory.turns
    turns = [turn.model_copy(update={"messages": [message, *turn.messages[1:]]})]
    goal_attempt = goal_attempt.model_copy(
        update={"trajectory": goal_attempt.trajectory.model_copy(update={"turns": turns})}
    )
    [captured] = capture(run, goal_attempt).row["input"]
    assert captured["content"][0]["image_url"]["url"] == "https://x.example/a.png"


def test_where_the_user_said_nothing_there_is_nothing_to_ask(run: Run) -> None:
    goal_attempt = attempt({"goal": "g"}, test=True)
    silent = goal_attempt.model_copy(update={"trajectory": goal_attempt.trajectory.model_copy(update={"turns": []})})
    with pytest.raises(UsageError, match="it has no user message"):
        capture(run, silent)


async def test_of_several_trials_the_first_that_failed_is_taken(tmp_path: Path) -> None:
    with Store.open(tmp_path / "kept.db") as store:
        await keep(store, [outcome("a", {"exact": score}, trial=trial) for trial, score in enumerate((1.0, 0.0, 0.0))])
        assert find_conversation(store, "latest/a")[1].attempt.key.trial == 1
        assert find_conversation(store, "run-1/a#1")[1].attempt.key.trial == 0
        for name, complaint in {
            "a": "write RUN/SAMPLE",
            "run-1/": "write RUN/SAMPLE",
            "run-9/a": "no run 'run-9'",
            "run-1/b": "no sample 'b'",
            "run-1/a#9": "no trial '9'",
        }.items():
            with pytest.raises(UsageError, match=complaint):
                find_conversation(store, name)
        with pytest.raises(UsageError, match="other"):
            find_conversation(store, "run-1/a", "other")


def row(name: str, place: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "input": "Hi", "metadata": {"captured_from": place}, **more}


def test_a_row_is_added_once_and_no_id_comes_twice(tmp_path: Path) -> None:
    place = tmp_path / "new" / "rows.jsonl"
    with pytest.raises(UsageError, match="cannot be read"):
        append_row(place.with_name("x" * 5000 + ".jsonl"), row("a", "run-1/a#1"))
    assert append_row(place, row("a", "run-1/a#1")).id == "a"
    before = place.read_bytes()
    again = append_row(place, row("a", "run-1/a#1"))
    assert (again.id, again.is_new, place.read_bytes()) == ("a", False, before)
    assert append_row(place, row("a", "run-2/a#1", goal="\ud800")).id == "a-2"
    assert place.read_bytes().startswith(before)
    assert check_samples(place).samples == 2


def test_what_was_in_the_file_stays_byte_for_byte(tmp_path: Path) -> None:
    place = tmp_path / "rows.jsonl"
    place.write_bytes(b'\xef\xbb\xbf{"id":  "a",   "input": "x"}\r\n\r\n{"id": 7, "input": "y"}')
    place.chmod(0o640)
    before = place.read_bytes()
    link = tmp_path / "link.jsonl"
    link.symlink_to(place)
    assert append_row(link, row("7", "run-1/7#1")).id == "7-2"
    assert place.read_bytes() == before + b"\n" + json.dumps(row("7-2", "run-1/7#1")).encode() + b"\n"
    assert place.stat().st_mode & 0o777 == 0o640
    assert link.is_symlink()


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("rows.jsonl", '{"id": "a", "input": "x"}\n{"id": "b", "in', "rows.jsonl:2"),
        ("rows.jsonl", '{"id": "a", "input": "x"}\n{"id": "a", "input": "y"}\n', "is already in line 1"),
        ("rows.csv", "id,input\na,x\n", "a row can be added to JSONL only"),
    ],
    ids=["half-written", "one id twice", "CSV"],
)
def test_a_file_that_is_broken_or_of_another_kind_stays_as_it_is(
    tmp_path: Path, name: str, text: str, complaint: str
) -> None:
    place = tmp_path / name
    place.write_text(text)
    with pytest.raises(UsageError) as caught:
        append_row(place, row("c", "run-1/c#1"))
    assert complaint in str(caught.value)
    assert place.read_text() == text
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_many_at_once_lose_no_row(tmp_path: Path) -> None:
    place = tmp_path / "rows.jsonl"
    work = [threading.Thread(target=append_row, args=(place, row("a", f"run-{n}/a#1"))) for n in range(12)]
    for task in work:
        task.start()
    for task in work:
        task.join()
    ids = [json.loads(line)["id"] for line in place.read_text().splitlines()]
    assert sorted(ids) == sorted(["a", *(f"a-{n}" for n in range(2, 13))])


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        append_row(tmp_path / "file" / "rows.jsonl", row("a", "run-1/a#1"))


def test_the_row_is_a_sample(run: Run) -> None:
    Sample.model_validate(capture(run, attempt({"input": "Hi", "must": ["be kind"]})).row)
