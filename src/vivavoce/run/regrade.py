"""Grading a run again: the conversations are read from the store, no target is called, the old scores stay."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

from vivavoce.errors import UsageError
from vivavoce.pacing.budget import Budget
from vivavoce.records.events import AttemptEnded, Listener, RunEnded, RunStarted
from vivavoce.records.run import Attempt, Grading, Run
from vivavoce.run.attempt import Grades
from vivavoce.run.crew import Crew
from vivavoce.run.suite_run import RunResult, dump_spec, stored_suite, sum_up
from vivavoce.samples.rows import read_samples
from vivavoce.samples.sample import Sample
from vivavoce.store.store import Store
from vivavoce.suites.build import Builder
from vivavoce.suites.build import Grading as Graded
from vivavoce.suites.dataset import dataset_path
from vivavoce.suites.judges import JudgeOpener
from vivavoce.suites.load import Suite, load_suite


async def regrade(
    store: Store,
    name: str,
    suite: Path | None = None,
    *,
    listeners: Sequence[Listener] = (),
    max_calls: int | None = None,
) -> RunResult:
    """Grade the conversations of a run again and return the new set of scores.

    `suite` brings other graders, and other truths for samples of the same id; without it the run's own suite is used,
    with its grading functions as they are now.

    Raises:
        UsageError: there is no such run, the suite is wrong, or a sample of it asks something else than the run did.
    """
    run = store.run(name)
    chosen = load_suite(suite) if suite else stored_suite(run)
    graded = Builder(chosen, JudgeOpener(Budget(max_calls=max_calls)).open).grading()
    try:
        return await _regrade(store, run, chosen, graded, _truths(chosen) if suite else {}, listeners)
    finally:
        for model in graded.models:
            await model.close()


async def _regrade(
    store: Store, run: Run, suite: Suite, graded: Graded, truths: dict[str, str], listeners: Sequence[Listener]
) -> RunResult:
    number = len(store.gradings(run.id)) + 1
    grading = Grading(
        id=f"{run.id}-g{number}",
        run_id=run.id,
        spec=dump_spec(suite.spec),
        fingerprints=graded.fingerprints,
        created_at=time.time(),
    )
    for attempt in store.attempts(run.id):
        sample_of(attempt, truths)
    store.add_grading(grading)
    for listener in listeners:
        await listener.on(RunStarted(run, grading, len(store.done(run.id)), 0))
    crew = Crew(2 * suite.spec.max_concurrent if graded.models else 1)
    grades = Grades(graded.graders, graded.composer)
    async with store.writer(run.id, grading.id, graded.fingerprints) as writer:

        async def grade(attempt: Attempt) -> None:
            outcome = await grades.grade(attempt, sample_of(attempt, truths))
            await writer.put_grades(attempt.key, outcome.grades, outcome.reward)
            for listener in listeners:
                await listener.on(AttemptEnded(outcome))

        await crew.run(store.attempts(run.id), grade)
    summary = sum_up(store, grading, graded)
    verdict = summary.verdict if crew.stopped_by is None else "inconclusive"
    ended = {"finished_at": time.time(), "verdict": verdict, "summary": summary.model_dump(mode="json")}
    grading = grading.model_copy(update=ended)
    store.update_grading(grading)
    for listener in listeners:
        await listener.on(RunEnded(run, grading))
    return RunResult(run, grading, summary, suite.notes, crew.stopped_by)


def _truths(suite: Suite) -> dict[str, str]:
    """Return the rows of a dataset by id, as JSON text without recorded conversations."""
    path = dataset_path(suite)
    if not path.exists():
        raise UsageError(suite.document.problem(("dataset",), f"there is no file '{suite.spec.dataset.path}'"))
    rows = read_samples(path, fields=suite.spec.dataset.fields, base=suite.base)
    return {sample.id: sample.model_dump_json(exclude={"messages", "trial"}, exclude_unset=True) for sample in rows}


def sample_of(attempt: Attempt, truths: dict[str, str] | None = None) -> Sample:
    """Return the sample of an attempt; `truths` replaces rows by id, where they ask the same.

    Raises:
        UsageError: the row of that id asks something else than was asked.
    """
    stored = json.loads(attempt.sample)
    row = json.loads(truths[attempt.key.sample_id]) if truths and attempt.key.sample_id in truths else stored
    if row.get("input") != stored.get("input"):
        raise UsageError(f"sample '{attempt.key.sample_id}' asks something else than the run did; run the suite again")
    if "input" not in row:
        row["messages"] = attempt.trajectory.messages
    return Sample.model_validate(row)
