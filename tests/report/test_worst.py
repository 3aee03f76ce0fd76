from __future__ import annotations

from vivavoce.records.run import AttemptKey, Reward
from vivavoce.records.score import failed, skipped
from vivavoce.report.worst import worst
from vivavoce.store.store import Store

from .cases import BROKEN_JUDGE, TIMEOUT, capitals, grade, keep, outcome


async def test_the_lowest_mean_over_the_graders_comes_first_and_what_is_perfect_is_left_out(store: Store) -> None:
    outcomes = [
        outcome("fine", {"exact": 1.0, "judge": 1.0}),
        outcome("half", {"exact": 0.5, "judge": 0.5}),
        outcome("low", {"exact": 1.0, "judge": grade(0.0, "rude")}),
        outcome("lowest", {"exact": 0.0, "judge": skipped("no judge")}),
    ]
    graded = await keep(store, outcomes)
    found = worst(store, graded.grading)
    assert [(one.key.sample_id, one.score) for one in found] == [("lowest", 0.0), ("half", 0.5), ("low", 0.5)]
    assert found[2].why == "judge: rude"


async def test_what_could_not_be_scored_comes_before_with_no_score_of_its_own(store: Store) -> None:
    outcomes = [
        outcome("low", {"exact": 0.25}),
        outcome("silent", {"exact": failed(TIMEOUT)}, failure=TIMEOUT),
        outcome("unjudged", {"exact": 1.0, "judge": failed(BROKEN_JUDGE)}),
        outcome("unrewarded", reward=Reward(state="error", failure=BROKEN_JUDGE)),
    ]
    graded = await keep(store, outcomes)
    found = [(one.key.sample_id, one.score, one.why) for one in worst(store, graded.grading)]
    assert found == [
        ("silent", None, "target: no answer within 5 s"),
        ("unjudged", None, "judge: judge: no verdict"),
        ("unrewarded", None, "reward: judge: no verdict"),
        ("low", 0.25, "exact: why"),
    ]


async def test_with_turns_the_reason_is_that_of_the_lowest_turn(store: Store) -> None:
    graded = await keep(store, [outcome(grades={"correctness": capitals()})])
    assert worst(store, graded.grading)[0].why == "correctness, turn 2: turn 2"


async def test_there_are_no_more_than_asked_for_and_the_earlier_of_equals_wins(store: Store) -> None:
    graded = await keep(
        store,
        [outcome(f"low-{i}", {"exact": 0.5}) for i in range(4)]
        + [outcome(f"lost-{i}", {"exact": failed(TIMEOUT)}) for i in range(4)],
    )
    found = [one.key.sample_id for one in worst(store, graded.grading, limit=2)]
    assert found == ["lost-0", "lost-1", "low-0", "low-1"]


async def test_each_trial_and_target_stands_for_itself(store: Store) -> None:
    outcomes = [
        outcome("a", {"exact": grade(0.5, "v1")}, target="v1"),
        outcome("a", {"exact": grade(0.25, "v2")}, target="v2"),
        outcome("a", {"exact": grade(0.0, "again")}, target="v2", trial=1),
    ]
    graded = await keep(store, outcomes)
    found = [(one.key, one.why) for one in worst(store, graded.grading)]
    assert found == [
        (AttemptKey("a", "v2", 1), "exact: again"),
        (AttemptKey("a", "v2", 0), "exact: v2"),
        (AttemptKey("a", "v1", 0), "exact: v1"),
    ]


async def test_a_reason_is_one_short_line_whatever_a_model_wrote(store: Store) -> None:
    graded = await keep(store, [outcome(grades={"exact": grade(0.0, "a\x1b[31m\n\n" + "b" * 10_000)})])
    why = worst(store, graded.grading)[0].why
    assert why.startswith("exact: a bbb")
    assert len(why) <= 200
