from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from provider_model import ProviderModel
from vivavoce.errors import UsageError
from vivavoce.messages import HumanMessage
from vivavoce.models.cache import CachedModel, OfflineModel, export_replies, import_replies
from vivavoce.models.model import Request
from vivavoce.store.replies import ReplyStore
from vivavoce.store.store import Store

HEAD = '{"vivavoce_replies":1}\n'
GOOD: dict[str, Any] = {
    "key": "a" * 32,
    "model": "m",
    "reply": {"text": "x", "parsed": None, "tool_calls": [], "usage": None, "applied": {}},
    "created_at": 1,
}


def asked(number: int) -> Request:
    return Request([HumanMessage(content=f"Question {number} 🎓\ud800")], trial=number)


@pytest.fixture
async def replies(tmp_path: Path) -> AsyncIterator[ReplyStore]:
    with Store.open(str(tmp_path / "x.db")) as store:
        async with store.replies() as replies:
            yield replies


async def recorded(replies: ReplyStore, *names: str) -> None:
    for name in names:
        model = CachedModel(ProviderModel(["one\ud800", "two"], name=name), replies)
        for number in range(2):
            await model.complete(asked(number))


async def test_a_cassette_answers_elsewhere_and_offline(replies: ReplyStore, tmp_path: Path) -> None:
    await recorded(replies, "m")
    assert export_replies(replies, "replies.jsonl") == 2
    with Store.open(str(tmp_path / "other.db")) as store:
        async with store.replies() as others:
            assert import_replies(others, "replies.jsonl") == 2
            offline = CachedModel(OfflineModel("m"), others, offline=True)
            assert [(await offline.complete(asked(number))).text for number in range(2)] == ["one\ud800", "two"]
            assert [(one.key, one.model) for one in others.all()] == [(one.key, one.model) for one in replies.all()]


async def test_importing_twice_adds_nothing(replies: ReplyStore) -> None:
    await recorded(replies, "m")
    export_replies(replies, "replies.jsonl")
    assert import_replies(replies, "replies.jsonl") == 0
    before = Path("replies.jsonl").read_bytes()
    export_replies(replies, "replies.jsonl")
    assert Path("replies.jsonl").read_bytes() == before
    assert [path.name for path in Path().iterdir() if path.suffix == ".part"] == []


async def test_the_models_to_export_can_be_chosen(replies: ReplyStore) -> None:
    await recorded(replies, "m", "n")
    assert export_replies(replies, "replies.jsonl", ["n"]) == 2
    assert {json.loads(line).get("model") for line in Path("replies.jsonl").read_text().splitlines()[1:]} == {"n"}


async def test_an_empty_store_makes_an_empty_cassette(replies: ReplyStore) -> None:
    assert export_replies(replies, "replies.jsonl") == 0
    assert import_replies(replies, "replies.jsonl") == 0


@pytest.mark.parametrize(
    ("head", "why"),
    [
        ("", "replies.jsonl:1 is not a file of replies: its first line is not"),
        ('{"id": 1}\n', "replies.jsonl:1 is not a file of replies"),
        ('{"vivavoce_replies": 2}\n', "replies.jsonl:1 was written by a newer vivavoce"),
    ],
)
def test_another_file_is_refused(replies: ReplyStore, head: str, why: str) -> None:
    Path("replies.jsonl").write_text(head)
    with pytest.raises(UsageError) as caught:
        import_replies(replies, "replies.jsonl")
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "not valid JSON"),
        ("[]", ""),
        (json.dumps({**GOOD, "key": "../x"}), "key: expected 32 hexadecimal digits, got '../x'"),
        (json.dumps({**GOOD, "model": 1}), "model: expected a name, got 1"),
        (json.dumps({**GOOD, "created_at": True}), "created_at: expected seconds, got True"),
        (json.dumps({**GOOD, "reply": None}), "reply: it has an unexpected format"),
        (json.dumps({**GOOD, "reply": {"text": ""}}), "reply: 'parsed' is missing"),
    ],
)
def test_a_broken_line_is_named_and_nothing_is_kept(replies: ReplyStore, line: str, why: str) -> None:
    Path("replies.jsonl").write_text(f"{HEAD}{json.dumps(GOOD)}\n{line}\n")
    with pytest.raises(UsageError) as caught:
        import_replies(replies, "replies.jsonl")
    assert str(caught.value).startswith("replies.jsonl:3")
    assert why in str(caught.value)
    assert list(replies.all()) == []


def test_files_that_cannot_be_used_are_named(replies: ReplyStore) -> None:
    with pytest.raises(UsageError, match=r"none\.jsonl: there is no such file"):
        import_replies(replies, "none.jsonl")
    with pytest.raises(UsageError, match=r"replies\.jsonl: cannot be written"):
        export_replies(replies, "no/folder/replies.jsonl")
