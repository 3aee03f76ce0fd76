"""Records are grouped into conversations wherever they stand, and memory stays flat."""

from __future__ import annotations

import sqlite3
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.conversations.format import Loss, Member, Place
from vivavoce.conversations.grouping import group_members
from vivavoce.errors import UsageError

FILE = Path("spans.jsonl")


def member(value: Any, trace: str, conversation: str | None = None, **more: Any) -> Member:
    return Member(Place(FILE, 1), value, trace, conversation, **more)


def values(*members: Member) -> list[tuple[str, list[Any]]]:
    return [(group.id, [member.value for member in group.members]) for group in group_members(members, Loss())]


def test_members_of_a_trace_that_name_no_conversation_go_with_those_that_do() -> None:
    assert values(
        member("question", "trace 1", time=2),
        member("alone", "trace 2", time=5),
        member("answer", "trace 1", "talk", time=3),
        member("before", "trace 3", "talk", time=1),
    ) == [("talk", ["before", "question", "answer"]), ("trace 2", ["alone"])]


def test_of_several_conversations_in_a_trace_each_has_what_is_below_it() -> None:
    assert values(
        member("root", "t", identity="0"),
        member("first", "t", "a", identity="1", parent="0"),
        member("second", "t", "b", identity="2", parent="0"),
        member("tool of the second", "t", identity="3", parent="2"),
        member("below that", "t", identity="4", parent="3"),
        member("in a circle", "t", identity="5", parent="6"),
        member("and back", "t", identity="6", parent="5"),
    ) == [
        ("t", ["root", "in a circle", "and back"]),
        ("a", ["first"]),
        ("b", ["second", "tool of the second", "below that"]),
    ]


def test_a_conversation_and_a_trace_of_one_name_are_two() -> None:
    assert values(member(1, "x"), member(2, "y", "x")) == [("x", [1]), ("x", [2])]


def test_a_record_that_comes_again_is_kept_once_and_its_last_state_counts() -> None:
    loss = Loss()
    members = [member("begun", "t", identity="1"), member(5, "t"), member("done", "t", identity="1"), member(5, "t")]
    [group] = group_members([*members, member("done", "t", identity="1")], loss)
    assert [member.value for member in group.members] == ["done", 5, 5]
    assert [(entry.kind, entry.what, entry.count) for entry in loss.entries()] == [
        ("dropped", "an earlier state of a record that comes again", 1),
        ("repeated", "records with the same id", 2),
    ]


def test_members_without_a_time_come_last_in_the_order_of_the_file() -> None:
    assert values(
        member("c", "t"), member("b", "t", time=9.5), member("d", "t", time=float("nan")), member("a", "t", time=-1)
    ) == [("t", ["a", "b", "c", "d"])]


def test_names_with_halves_of_characters_are_names() -> None:
    [group] = group_members([member({"\udcff": "\ud800"}, "\ud800", "\udc80", identity="\udfff")], Loss())
    assert (group.id, group.members[0].value) == ("\udc80", {"\udcff": "\ud800"})


plain = st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(), st.lists)
names = st.none() | st.sampled_from("abc")


@given(
    st.lists(
        st.builds(
            member,
            plain,
            st.sampled_from("xyz"),
            names,
            parent=names,
            time=st.none() | st.floats() | st.integers(-(2**63), 2**63 - 1),
        )
    )
)
def test_nothing_is_lost(members: list[Member]) -> None:
    groups = list(group_members(members, Loss()))
    member_values = [member.value for group in groups for member in group.members]
    assert sorted(map(repr, member_values)) == sorted(repr(member.value) for member in members)
    for group in groups:
        assert {member.conversation or member.trace for member in group.members} == {group.id}


def test_memory_holds_one_conversation() -> None:
    def many() -> Iterator[Member]:
        for number in range(1000):
            yield member("word " * 20_000, f"trace {number % 100}", identity=str(number), time=-number)

    tracemalloc.start()
    try:
        assert sum(len(group.members) for group in group_members(many(), Loss())) == 1000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8_000_000, "100 MB came in, and each conversation has 1 MB"


def test_a_full_disk_is_an_error_that_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> sqlite3.Connection:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(sqlite3, "connect", full)
    with pytest.raises(UsageError, match=r"disk is full.*TMPDIR"):
        list(group_members([member(1, "t")], Loss()))
