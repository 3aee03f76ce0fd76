from __future__ import annotations

import asyncio

import pytest

from vivavoce.errors import NotFound, UsageError
from vivavoce.records.run import AttemptKey
from vivavoce.store.access import NotYours
from vivavoce.store.store import Store

from . import cases
from .cases import FINGERPRINTS, GRADING, RUN

KEY = AttemptKey("sample-1", "bot", 0)


def quiet(_run: str, _done: int, _count: int) -> None:
    """Hear how a copy goes on, and say nothing."""


async def fill(store: Store, *, replaces: bool = False) -> None:
    async with store.writer(RUN, GRADING, FINGERPRINTS, replaces=replaces) as writer:
        for number in range(4):
            await writer.put(cases.outcome(number, number))


@pytest.fixture
def held(store: Store) -> Store:
    """A store with four conversations of two turns."""
    asyncio.run(fill(store))
    return store


def test_comments_stand_in_the_order_in_which_they_were_written(held: Store) -> None:
    first = held.comments.add(RUN, KEY, None, "Ida", "whole")
    second = held.comments.add(RUN, KEY, 1, "Olu", "see #t1")
    assert held.comments.of(RUN, KEY) == [first, second]
    assert (second.turn, second.author, second.text, second.resolved_by) == (1, "Olu", "see #t1", None)
    assert held.comments.of(RUN, AttemptKey("sample-2", "bot", 0)) == []


@pytest.mark.parametrize(("key", "turn"), [(AttemptKey("other", "bot", 0), None), (KEY, 2)])
def test_what_is_not_there_cannot_be_commented_on(held: Store, key: AttemptKey, turn: int | None) -> None:
    with pytest.raises(NotFound, match=r"no (sample|turn) '"):
        held.comments.add(RUN, key, turn, "Ida", "x")
    assert held.audit.entries().entries == []


def test_a_comment_is_resolved_and_opened_again_and_the_log_knows_who_did(held: Store) -> None:
    number = held.comments.add(RUN, KEY, None, "Ida", "why?").id
    assert held.comments.resolve(RUN, number, "Olu").resolved_by == "Olu"
    again = held.comments.resolve(RUN, number, "Ida", resolved=False)
    assert (again.resolved_by, again.resolved_at) == (None, None)
    entries = [(one.actor, one.action) for one in reversed(held.audit.entries().entries)]
    assert entries == [("Ida", "comment.add"), ("Olu", "comment.resolve"), ("Ida", "comment.reopen")]


def test_only_its_author_or_an_admin_removes_a_comment(held: Store) -> None:
    number = held.comments.add(RUN, KEY, None, "Ida", "mine").id
    with pytest.raises(NotYours, match=f"comment {number} is by Ida"):
        held.comments.remove(RUN, number, "Olu")
    assert held.comments.remove(RUN, number, "Olu", anyones=True).text == "mine"
    assert held.comments.of(RUN, KEY) == []
    with pytest.raises(UsageError, match=f"no comment '{number}' in run {RUN}"):
        held.comments.remove(RUN, number, "Ida")


def test_a_comment_is_found_only_in_its_own_run(held: Store) -> None:
    number = held.comments.add(RUN, KEY, None, "Ida", "mine").id
    with pytest.raises(NotFound):
        held.comments.resolve("another", number, "Ida")


def test_lists_say_how_many_and_filters_find_them(held: Store) -> None:
    held.comments.add(RUN, KEY, None, "Ida", "one")
    number = held.comments.add(RUN, KEY, 1, "Ida", "two").id
    held.comments.add(RUN, AttemptKey("sample-3", "bot", 0), None, "Ida", "three")
    listed = held.browse.samples(GRADING).samples
    assert [one.comments for one in listed] == [0, 2, 0, 1]

    def found(terms: str) -> list[str]:
        return [one.sample_id for one in held.browse.samples(GRADING, terms).samples]

    assert found("has:comment") == ["sample-1", "sample-3"]
    assert found("-has:comment") == ["sample-0", "sample-2"]
    for comment in held.comments.all(RUN):
        if comment.id != number:
            held.comments.resolve(RUN, comment.id, "Ida")
    assert found("has:open-comment") == ["sample-1"]
    assert found("has:label") == []
    with pytest.raises(UsageError, match=r"no has:coment; did you mean 'comment'\?"):
        held.browse.samples(GRADING, "has:coment")


def test_comments_of_a_run_come_a_page_at_a_time(held: Store) -> None:
    for number in range(3):
        held.comments.add(RUN, KEY, None, "Ida", str(number))
    first = held.comments.page(RUN, limit=2)
    rest = held.comments.page(RUN, limit=2, after=first.next)
    assert [one.text for one in first.comments + rest.comments] == ["0", "1", "2"]
    assert rest.next is None


def test_comments_stay_when_their_conversation_is_tried_again(held: Store) -> None:
    held.comments.add(RUN, KEY, 1, "Ida", "stays")
    asyncio.run(fill(held, replaces=True))
    assert [one.text for one in held.comments.of(RUN, KEY)] == ["stays"]


def test_comments_go_with_their_run(held: Store) -> None:
    held.comments.add(RUN, KEY, 1, "Ida", "gone")
    held.maintenance.delete_run(RUN, "Ida")
    assert held.maintenance.contents().rows["comments"] == 0


def test_a_copy_takes_comments_once_and_what_was_resolved_since(held: Store, other_address: str) -> None:
    number = held.comments.add(RUN, KEY, 1, "Ida", "once").id
    with Store.open(other_address) as there:
        assert held.maintenance.copy_to(there, quiet).comments == 1
        held.comments.resolve(RUN, number, "Olu")
        assert held.maintenance.copy_to(there, quiet).comments == 0
        (copied,) = there.comments.of(RUN, KEY)
        assert (copied.text, copied.resolved_by) == ("once", "Olu")
