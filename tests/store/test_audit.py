from __future__ import annotations

import time

import pytest

from vivavoce.errors import UsageError
from vivavoce.store.audit import note
from vivavoce.store.store import Store


def test_a_change_is_noted_with_who_made_it_and_when(store: Store) -> None:
    before = time.time()
    with store.database.writing() as connection:
        note(connection, "Ida", "run.delete", "run-1", {"attempts": 3})
    (entry,) = store.audit.entries().entries
    assert (entry.actor, entry.action, entry.subject, entry.detail) == ("Ida", "run.delete", "run-1", {"attempts": 3})
    assert before <= entry.at <= time.time()


def test_a_change_that_is_given_up_leaves_no_note(store: Store) -> None:
    def break_off() -> None:
        with store.database.writing() as connection:
            note(connection, "Ida", "run.delete", "run-1")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        break_off()
    assert store.audit.entries().entries == []


def test_the_log_is_read_from_the_newest_on_a_page_at_a_time(store: Store) -> None:
    with store.database.writing() as connection:
        for number in range(5):
            note(connection, "Ida", "run.delete", f"run-{number}")
    first = store.audit.entries(limit=3)
    rest = store.audit.entries(first.next, limit=3)
    assert [one.subject for one in first.entries + rest.entries] == [f"run-{n}" for n in (4, 3, 2, 1, 0)]
    assert rest.next is None


def test_a_place_of_another_list_is_refused(store: Store) -> None:
    with pytest.raises(UsageError, match="no cursor"):
        store.audit.entries("nowhere")


def test_names_that_no_database_takes_are_kept_in_escapes(store: Store) -> None:
    with store.database.writing() as connection:
        note(connection, "I\0da", "label.set", "\ud800", {"note": "\0 \ud800"})
    (entry,) = store.audit.entries().entries
    assert (entry.actor, entry.subject) == ("I\\u0000da", "\\ud800")
    assert entry.detail == {"note": "\0 \ud800"}
