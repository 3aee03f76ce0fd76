"""One answer for each conversation, however many people answered."""

from __future__ import annotations

from typing import Any

from vivavoce.records.label import Decision, HumanVerdict, Label
from vivavoce.store.labels.agreement import Paired
from vivavoce.store.labels.truth import truth_of


def pair(sample: str, author: str, verdict: HumanVerdict, *, passed: bool | None = True, **more: Any) -> Paired:
    label = Label(sample_id=sample, target="bot", trial=0, author=author, verdict=verdict, created_at=1.0, **more)
    score = None if passed is None else float(passed)
    return Paired(label, "error" if passed is None else "scored", score, passed, 0.8)


def decision(sample: str, verdict: HumanVerdict) -> Decision:
    return Decision(sample_id=sample, target="bot", trial=0, author="Eve", verdict=verdict, created_at=2.0)


def test_most_people_decide_and_a_decision_counts_before_them() -> None:
    said = [pair("a", name, verdict) for name, verdict in zip("xyz", ("pass", "fail", "fail"), strict=True)]
    assert [one.good for one in truth_of(said).labels] == [False]
    assert [one.good for one in truth_of(said, [decision("a", "pass")]).labels] == [True]


def test_what_nobody_can_decide_is_counted_apart() -> None:
    found = truth_of(
        [
            pair("even", "x", "pass"),
            pair("even", "y", "fail"),
            pair("doubt", "x", "unsure"),
            pair("broken", "x", "pass", passed=None),
            pair("clear", "x", "fail", passed=False),
            pair("clear", "y", "unsure", passed=False),
        ]
    )
    assert [(one.sample_id, one.good, one.passed, one.confidence) for one in found.labels] == [
        ("clear", False, False, 0.8)
    ]
    assert (found.split, found.unsure, found.unscored) == (1, 1, 1)


def test_one_draw_is_enough_and_one_look_at_the_judge_too() -> None:
    (found,) = truth_of([pair("a", "x", "pass", drawn=0.5, blind=True), pair("a", "y", "pass")]).labels
    assert (found.drawn, found.blind) == (0.5, False)
