from __future__ import annotations

import asyncio

import pytest

from vivavoce.records.label import HumanVerdict, Label
from vivavoce.records.run import Outcome
from vivavoce.records.score import Score, failed, skipped
from vivavoce.store.labels.agreement import agreement_with
from vivavoce.store.labels.people import agreement_of_all
from vivavoce.store.store import Store

from .. import cases
from ..cases import BROKEN, FINGERPRINTS, GRADING, RUN

GRADES = {
    0: Score(value=1.0),
    1: Score(value=0.9),  # 1 passes, unless the score says otherwise
    2: Score(value=0.6, passed=True),
    3: Score(value=1.0, passed=False),
    4: failed(BROKEN),
    5: skipped("no judge"),
}


async def fill(store: Store) -> None:
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
    asyncio.run(fill(store))
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
