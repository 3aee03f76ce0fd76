from __future__ import annotations

from vivavoce.records.score import Score, failed, skipped
from vivavoce.report.rows import flat_rows
from vivavoce.store.store import Store

from .cases import BROKEN_JUDGE, capitals, grade, keep, outcome


async def test_a_conversation_comes_before_its_turns_and_the_reward_last(store: Store) -> None:
    graded = await keep(store, [outcome(grades={"correctness": capitals(), "exact": 1.0}, reward=Score(value=0.5))])
    rows = list(flat_rows(store, graded.run, graded.grading))
    assert [(row.grader, row.turn, row.score) for row in rows] == [
        ("correctness", None, 2 / 3),
        ("correctness", 1, 1.0),
        ("correctness", 2, 1.0),
        ("correctness", 3, 0.0),
        ("exact", None, 1.0),
        ("reward", None, 0.5),
    ]
    assert (rows[3].submission, rows[3].ground_truth, rows[3].rationale) == ("Madrid", "Rome", "turn 2")


async def test_a_row_says_what_its_score_is_about(store: Store) -> None:
    graded = await keep(store, [outcome("a", trial=2, target="v2", scenario="abc")])
    (row,) = flat_rows(store, graded.run, graded.grading)
    assert (row.run, row.grading, row.sample_id, row.target, row.trial) == ("run-1", "run-1-g1", "a", "v2", 3)
    assert (row.scenario, row.fingerprint, row.seconds, row.state) == ("abc", "f1", 1.5, "scored")


async def test_a_turn_has_the_seconds_of_that_turn_and_none_when_it_was_not_held(store: Store) -> None:
    graded = await keep(store, [outcome(grades={"correctness": capitals()}, said=["a", "b"])])
    rows = list(flat_rows(store, graded.run, graded.grading))
    assert [row.seconds for row in rows] == [1.5, 0.5, 0.5, None]


async def test_an_error_and_a_skip_have_no_score_and_say_why(store: Store) -> None:
    graded = await keep(store, [outcome(grades={"judge": failed(BROKEN_JUDGE), "exact": skipped("no ground truth")})])
    error, skip = flat_rows(store, graded.run, graded.grading)
    assert (error.state, error.score) == ("error", None)
    assert (error.blame, error.failure_kind, error.failure_message) == ("judge", "format", "no verdict")
    assert (skip.state, skip.score, skip.rationale, skip.blame) == ("skipped", None, "no ground truth", None)


async def test_a_ground_truth_that_is_not_text_is_json(store: Store) -> None:
    truths = ["text", {"total": 3}, ["é"], None]
    grades = {f"g{i}": grade(1, ground_truth=truth) for i, truth in enumerate(truths)}
    graded = await keep(store, [outcome(grades=grades)])
    rows = flat_rows(store, graded.run, graded.grading)
    assert [row.ground_truth for row in rows] == ["text", '{"total":3}', '["é"]', None]
