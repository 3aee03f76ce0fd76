"""Labels: human verdicts on conversations and turns, stored beside the scores, and how far a judge agrees with them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import text

from store import cases
from store.cases import BROKEN, FINGERPRINTS, GRADING, RUN
from vivavoce.errors import NotFound, UsageError
from vivavoce.records.label import Decision, HumanVerdict, Label
from vivavoce.records.run import AttemptKey, Outcome
from vivavoce.records.score import Score, failed, skipped
from vivavoce.report.label_agreement import agreement_of_all
from vivavoce.store.labels import LabelPlace, Paired, agreement_with, now_label, truth_of
from vivavoce.store.store import Store

KEY = AttemptKey("sample-1", "bot", 0)


def label(number: int = 1, **more: Any) -> Label:
    """Return a label of Ida on a conversation."""
    said = Label(sample_id=f"sample-{number}", target="bot", trial=0, author="Ida", verdict="fail", created_at=5.0)
    return said.model_copy(update={"grader": "judge", **more})


def quiet(_run: str, _done: int, _count: int) -> None:
    """Hear how a copy goes on, and say nothing."""


async def fill(store: Store, run: str = RUN, grading: str = GRADING, *, replaces: bool = False) -> None:
    async with store.writer(run, grading, FINGERPRINTS, replaces=replaces) as writer:
        for number in range(4):
            await writer.put(cases.outcome(number, number))


@pytest.fixture
def held(store: Store) -> Store:
    """A store with four conversations of two turns."""
    asyncio.run(fill(store))
    return store


def test_a_label_is_kept_beside_the_scores_and_changes_none(held: Store) -> None:
    before = list(held.outcomes(GRADING))
    said = label(note="no money came", blind=True)
    assert held.labels.set(RUN, said) is None
    assert held.labels.of(RUN, KEY) == [said]
    assert list(held.outcomes(GRADING)) == before


def test_labels_are_read_while_their_conversation_is_written(held: Store) -> None:
    with held.database.writing() as connection:
        connection.execute(text("UPDATE attempts SET seconds = 1 WHERE sample_id = 'sample-1'"))
        assert held.labels.of(RUN, KEY) == []


def test_one_author_has_one_label_in_a_place_and_the_log_keeps_what_it_said_before(held: Store) -> None:
    held.labels.set(RUN, label(note="at first sight"))
    assert held.labels.set(RUN, label(verdict="pass", created_at=6.0)) == label(note="at first sight")
    assert held.labels.of(RUN, KEY) == [label(verdict="pass", created_at=6.0)]
    second, first = held.audit.entries().entries
    assert (first.actor, first.action, first.subject) == ("Ida", "label.set", f"{RUN}/sample-1#1")
    assert first.detail is not None
    assert (first.detail["verdict"], first.detail["note"]) == ("fail", "at first sight")
    assert second.detail is not None
    assert second.detail["before"] == {"verdict": "fail", "note": "at first sight", "blind": False, "created_at": 5.0}


def test_turns_graders_and_authors_have_labels_of_their_own(held: Store) -> None:
    several = [label(), label(turn=0), label(turn=1), label(grader=""), label(author="Olu")]
    for one in several:
        held.labels.set(RUN, one)
    assert held.labels.of(RUN, KEY) == several
    assert [one.author for one in held.labels.all(RUN, author="Olu")] == ["Olu"]
    assert [one.grader for one in held.labels.all(RUN, grader="")] == [""]


def test_a_label_is_taken_away_and_the_log_knows_it(held: Store) -> None:
    held.labels.set(RUN, label())
    place = LabelPlace.of(RUN, label())
    assert held.labels.remove(place) == label()
    assert held.labels.of(RUN, KEY) == []
    assert [one.action for one in held.audit.entries().entries] == ["label.remove", "label.set"]
    with pytest.raises(UsageError, match="no label by Ida here"):
        held.labels.remove(place)


@pytest.mark.parametrize("wrong", [{"sample_id": "other"}, {"target": "x"}, {"trial": 7}, {"turn": 2}, {"grader": "x"}])
def test_what_is_not_there_cannot_be_labelled(held: Store, wrong: dict[str, Any]) -> None:
    with pytest.raises(NotFound, match=r"no (sample|target|trial|turn|grader) '"):
        held.labels.set(RUN, label(**wrong))
    assert held.audit.entries().entries == []


def test_labels_of_a_run_are_listed_a_page_at_a_time(held: Store) -> None:
    for number in range(4):
        held.labels.set(RUN, label(number))
    first = held.labels.page(RUN, limit=3)
    rest = held.labels.page(RUN, after=first.next, limit=3)
    assert [one.sample_id for one in first.labels + rest.labels] == [f"sample-{n}" for n in range(4)]
    assert rest.next is None
    assert held.labels.page("another").labels == []


def test_labels_stay_when_their_conversation_is_tried_again(held: Store) -> None:
    held.labels.set(RUN, label(turn=1))
    asyncio.run(fill(held, replaces=True))
    assert held.labels.of(RUN, KEY) == [label(turn=1)]
    assert [one.key for one in held.replaced(RUN)] == [AttemptKey(f"sample-{n}", "bot", 0) for n in range(4)]
    assert len(list(held.outcomes(GRADING))) == 4


def test_names_and_notes_that_no_database_takes_are_kept_in_escapes(held: Store) -> None:
    held.labels.set(RUN, label(note="\ud800", author="I\ud800da"))
    (found,) = held.labels.all(RUN, author="I\ud800da")
    assert (found.note, found.author) == ("\\ud800", "I\\ud800da")


def test_a_verdict_must_be_one_and_a_note_has_an_end() -> None:
    place = LabelPlace(RUN, KEY, None, "judge", "Ida")
    assert now_label(place, "unsure", "  ").note is None
    with pytest.raises(ValueError, match="verdict"):
        now_label(place, "good")
    with pytest.raises(ValueError, match="note"):
        now_label(place, "pass", "x" * 4001)


def test_labels_go_with_their_run(held: Store) -> None:
    held.labels.set(RUN, label())
    held.update_run(cases.run().model_copy(update={"status": "finished", "finished_at": 9.0}))
    assert held.maintenance.contents().rows["labels"] == 1
    held.maintenance.collect(keep_last=0)
    assert held.maintenance.contents().rows["labels"] == 0
    assert [one.action for one in held.audit.entries().entries][-1] == "label.set"


@pytest.fixture
def target(held: Store, other_address: str) -> Iterator[Store]:
    """A store that has a copy."""
    with Store.open(other_address) as target:
        held.maintenance.copy_to(target, quiet)
        yield target


def test_a_copy_brings_labels_once_and_of_two_the_newer_stays(held: Store, target: Store) -> None:
    target.labels.set(RUN, label(2, note="there already", created_at=9.0))
    target.labels.set(RUN, label(3, created_at=1.0))
    for number in (1, 2, 3):
        held.labels.set(RUN, label(number, note="copied"))
    assert held.maintenance.copy_to(target, quiet).labels == 2
    found = {one.sample_id: one.note for one in target.labels.all(RUN)}
    assert found == {"sample-1": "copied", "sample-2": "there already", "sample-3": "copied"}
    assert [one.action for one in target.audit.entries(limit=2).entries] == ["label.copy", "label.copy"]
    assert held.maintenance.copy_to(target, quiet).labels == 0


GRADES = {
    0: Score(value=1.0),
    1: Score(value=0.9),  # 1 passes, unless the score says otherwise
    2: Score(value=0.6, passed=True),
    3: Score(value=1.0, passed=False),
    4: failed(BROKEN),
    5: skipped("no judge"),
}


async def fill_with_labels(store: Store) -> None:
    async with store.writer(RUN, GRADING, FINGERPRINTS) as writer:
        for number, grade in GRADES.items():
            talk = cases.outcome(number, number).attempt
            turn = Score(turn=1, value=1.0)
            apart = Score(value=1.0, turns=(turn,))
            await writer.put(Outcome(attempt=talk, scores={"judge": grade, "apart": apart}))


def say(store: Store, number: int, verdict: HumanVerdict, author: str = "Ida", turn: int | None = None) -> None:
    grader = "judge" if turn is None else "apart"
    said = Label(sample_id=f"sample-{number}", target="bot", trial=0, author=author, verdict=verdict, created_at=1.0)
    store.labels.set(RUN, said.model_copy(update={"grader": grader, "turn": turn}))


@pytest.fixture
def graded(store: Store) -> Store:
    """A store with six conversations, of which two have no score."""
    asyncio.run(fill_with_labels(store))
    return store


def test_a_judge_lets_pass_what_its_grades_say(graded: Store) -> None:
    for number in range(6):
        say(graded, number, "pass")
    found = graded.labels.paired(graded.grading(RUN), "judge")
    assert [one.passed for one in found] == [True, False, True, False, None, None]
    assert [one.state for one in found] == ["scored"] * 4 + ["error", "skipped"]


def test_what_cannot_be_told_or_has_no_score_is_counted_apart(graded: Store) -> None:
    verdicts: list[HumanVerdict] = ["pass", "fail", "fail", "pass", "pass", "unsure"]
    for number, verdict in enumerate(verdicts):
        say(graded, number, verdict)
    say(graded, 0, "unsure", "Olu")
    found = agreement_with(graded.labels.paired(graded.grading(RUN), "judge"))
    assert (found.n, found.both_pass, found.both_fail, found.too_lenient, found.too_strict) == (4, 1, 1, 1, 1)
    assert (found.unsure, found.unscored, found.agreement, found.kappa) == (2, 1, 0.5, 0.0)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0 < found.high
    assert [(one.label.sample_id, one.lenient) for one in found.disagreements] == [
        ("sample-2", True),
        ("sample-3", False),
    ]


def test_an_author_is_compared_alone(graded: Store) -> None:
    say(graded, 0, "pass")
    say(graded, 0, "fail", "Olu")
    grading = graded.grading(RUN)
    assert agreement_with(graded.labels.paired(grading, "judge", author="Olu")).too_lenient == 1
    assert agreement_with(graded.labels.paired(grading, "judge")).n == 2


def test_turns_are_compared_with_the_grades_of_turns(graded: Store) -> None:
    say(graded, 0, "pass", turn=1)
    say(graded, 0, "pass", turn=0)
    grading = graded.grading(RUN)
    found = agreement_with(graded.labels.paired(grading, "apart", turns=True))
    assert (found.both_pass, found.unscored) == (1, 1)
    assert graded.labels.paired(grading, "apart") == []


def test_without_labels_there_is_no_agreement(graded: Store) -> None:
    found = agreement_with(graded.labels.paired(graded.grading(RUN), "judge"))
    assert (found.n, found.agreement, found.kappa, found.low, found.high) == (0, None, None, None, None)


def test_people_are_compared_with_each_other(graded: Store) -> None:
    scores = graded.grading(RUN)
    verdicts: list[tuple[HumanVerdict, HumanVerdict]] = [("pass", "pass"), ("fail", "fail"), ("pass", "fail")]
    verdicts.append(("unsure", "pass"))
    for number, (ida, bo) in enumerate(verdicts):
        say(graded, number, ida)
        say(graded, number, bo, "Bo")
    say(graded, 4, "pass")
    found = agreement_of_all(graded.labels.paired(scores, "judge")).people
    assert found is not None
    assert (found.people, found.n, found.same) == (["Bo", "Ida"], 3, 2)
    (differing,) = found.disputed
    assert (differing.sample_id, differing.verdicts) == ("sample-2", {"Ida": "pass", "Bo": "fail"})
    assert found.kappa == pytest.approx(0.4)
    assert found.alpha == pytest.approx(4 / 9)
    assert agreement_of_all(graded.labels.paired(scores, "judge", author="Ida")).people is None
    say(graded, 0, "fail", "Cy")
    of_three = agreement_of_all(graded.labels.paired(scores, "judge")).people
    assert of_three is not None
    assert (of_three.kappa, len(of_three.people)) == (None, 3)


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
