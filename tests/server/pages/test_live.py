from __future__ import annotations

from typing import Any

import pytest

from vivavoce.server.job_record import JobEvent, MessageNews
from vivavoce.server.pages import live as module
from vivavoce.server.pages.live import conversations
from vivavoce.store.browse.listing import ScoreEntry


def news(kind: str, sample: str, **more: Any) -> JobEvent:
    told = {"id": 1, "kind": kind, "done": 0, "errors": 0, "sample_id": sample, "target": "bot", "trial": 0}
    return JobEvent.model_validate({**told, **more})


def test_a_conversation_has_what_was_said_and_what_became_of_it() -> None:
    scores = [ScoreEntry(kind="grade", name="goal", state="scored", value=0.5, passed=False)]
    said = [MessageNews(role="assistant", text="hello")]
    (one,) = conversations(
        [news("held", "a"), news("turn", "a", turn=0, messages=said), news("graded", "a", scores=scores)], "run-1", "g2"
    )
    assert (one.name, one.state, one.over, one.messages) == ("a", "fail", True, [(0, said[0])])
    assert one.link == "/runs/run-1/samples/a?trial=1&target=bot&grading=g2"


def test_those_that_are_held_have_a_place_before_those_that_are_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PLACES", 3)
    begun = [news("held", name) for name in "abcde"]
    over = [news("graded", name, id=number) for number, name in enumerate("dab", 6)]
    assert [conversation.name for conversation in conversations([*begun, *over], "r", None)] == ["b", "c", "e"]
    assert [conversation.name for conversation in conversations(begun, "r", None)] == ["a", "b", "c"]


def test_a_call_is_shown_where_nothing_is_said() -> None:
    assert MessageNews(role="assistant", text="", calls=["look_up", "pay"]).line == "→ look_up → pay"
