from __future__ import annotations

from vivavoce.report.graded_run import GradedRun
from vivavoce.report.verdict import explain_verdict
from vivavoce.store.store import Store

from .cases import TIMEOUT, keep, outcome


async def test_the_summary_of_a_run_that_ended_is_the_stored_one(store: Store) -> None:
    graded = await keep(store, [outcome("a"), outcome("b", {"exact": 0.0})])
    summary = graded.summary()
    assert graded.ended
    assert (summary.verdict, summary.attempts, summary.grader("exact").mean) == ("pass", 2, 0.5)


async def test_a_run_that_was_killed_is_inconclusive_with_what_it_has(store: Store) -> None:
    graded = await keep(store, [outcome("a"), outcome("b", {}, failure=TIMEOUT)], ended=False)
    summary = graded.summary()
    assert not graded.ended
    assert (summary.verdict, summary.attempts, summary.failed_attempts) == ("inconclusive", 2, 1)
    assert (summary.grader("exact").scored, explain_verdict(summary)) == (1, ["unfinished after 2 conversations"])


async def test_the_verdict_of_an_interrupted_run_is_that_of_its_record(store: Store) -> None:
    ended = await keep(store, [outcome("a")])
    run = ended.run.model_copy(update={"status": "interrupted"})
    grading = ended.grading.model_copy(update={"verdict": "inconclusive"})
    summary = GradedRun(store, run, grading).summary()
    assert summary.verdict == "inconclusive"
    assert explain_verdict(summary) == [
        "interrupted after 1 conversation",
        "so far: pass · exact: mean must be ≥ 0.5; it is 1",
    ]


async def test_a_run_that_was_killed_when_it_went_on_is_counted_anew(store: Store) -> None:
    ended = await keep(store, [outcome("a")])
    run = ended.run.model_copy(update={"status": "running"})
    async with store.writer(run.id, ended.grading.id, {}) as writer:
        await writer.put(outcome("b"))
    assert explain_verdict(GradedRun(store, run, ended.grading).summary()) == ["unfinished after 2 conversations"]
