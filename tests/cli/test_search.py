from __future__ import annotations

import json
from pathlib import Path

import pytest

from server.pages.cases import keep, outcome, turn
from vivavoce.records.label import remarks_of
from vivavoce.records.run import AttemptKey
from vivavoce.records.score import Score
from vivavoce.store.store import Store

from .conftest import Viva


@pytest.fixture
def kept(tmp_path: Path) -> str:
    """The path of a store with two conversations."""
    path = str(tmp_path / "kept.db")
    with Store.open(path) as store:
        late = Score(value=0.0, reason="the refund\nwas late")
        keep(store, [outcome("one", [turn(0, "Hi"), turn(1, "A refund?", "\x1b[31mNo refund")], {"goal": late})])
    return path


def test_hits_are_listed_with_their_place(viva: Viva, kept: str) -> None:
    done = viva("search", "refund", "--store", kept)
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "run-1 one, reason of goal",
        "  the refund was late",
        "run-1 one, turn 2, user",
        "  A refund?",
    ]
    assert "\x1b" not in viva("search", "no refund role:assistant", "--store", kept).stdout
    assert viva("search", "support", "--store", kept).stdout == "run run-1, support\n"
    assert viva("search", "unheard", "--store", kept).stdout == "nothing found\n"


def test_hits_are_data_too(viva: Viva, kept: str) -> None:
    lines = viva("search", "refund role:user", "--json", "--store", kept).stdout.splitlines()
    (hit,) = map(json.loads, lines)
    assert (hit["run"], hit["sample_id"], hit["turn"], hit["by"], hit["text"]) == (
        "run-1",
        "one",
        1,
        "user",
        "A refund?",
    )


def test_comments_and_titles_of_runs_are_found(viva: Viva, kept: str) -> None:
    with Store.open(kept) as store:
        store.comments.add("run-1", AttemptKey("one", "bot", 0), 1, "Ida", "Odd \x1b[31mtone")
        store.remark("run-1", remarks_of({"title": "An odd one"}), "Ida")
    done = viva("search", "odd", "--store", kept)
    lines = done.stdout.splitlines()
    assert lines[:2] == ["run run-1, support, An odd one", "run-1 one, turn 2, comment by Ida"]
    assert "\x1b" not in done.stdout
    (hit,) = map(json.loads, viva("search", "odd", "--json", "--store", kept).stdout.splitlines())
    assert (hit["by"], hit["comment"], hit["turn"]) == ("Ida", 1, 1)


def test_a_mistyped_operator_is_named(viva: Viva, kept: str) -> None:
    done = viva("search", "sate:fail", "--store", kept)
    assert done.returncode == 2
    assert "no operator 'sate'; did you mean 'state'?" in done.stderr
