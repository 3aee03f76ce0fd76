"""The requests of a suite in files, in place of calls of its judges."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from vivavoce.features.batches.files import RequestFile
from vivavoce.grading.grader import Grader
from vivavoce.models.cache import CachedModel
from vivavoce.models.model import Model
from vivavoce.models.names import UNUSED_KEY, open_model
from vivavoce.pacing.limits import Budget
from vivavoce.pacing.loops import run as run_loop
from vivavoce.records.score import conversation_label
from vivavoce.run.batches import Export
from vivavoce.run.drivers import replay
from vivavoce.run.execution import kept_answers
from vivavoce.run.options import RunOptions
from vivavoce.samples.sample import Sample
from vivavoce.store.store import Store
from vivavoce.suites.check import prepare
from vivavoce.suites.grading_spec import JudgeSpec
from vivavoce.suites.judges import JudgeOpener
from vivavoce.suites.load import Suite
from vivavoce.suites.plan import plan_of

EXPORTED = "exported"
"""The kind of failure of a verdict whose request was exported."""


@dataclass(frozen=True, slots=True)
class RequestOpener(JudgeOpener):
    """Opens a request file in place of each judge; questions with cached answers are not exported."""

    requests: RequestFile | None = None

    def open(self, judge: str | Model, spec: JudgeSpec) -> Model:
        """Return the request file as a model."""
        del judge, spec
        assert self.requests is not None
        assert self.replies is not None
        return CachedModel(self.requests, self.replies)


async def write_requests(suite: Suite, model: str, path: Path, store: Store, options: RunOptions) -> Export:
    """Export the requests about recorded conversations to files, in the line format of OpenAI's Batch API.

    Raises:
        UsageError: the suite is wrong, a file already exists, or the model has no OpenAI-compatible API.
    """
    plan = plan_of(suite, options)
    requests = RequestFile(path, open_model(model, api_key=UNUSED_KEY))
    async with kept_answers(store, cache=True) as replies:
        try:
            prepared = prepare(suite, plan, RequestOpener(Budget(), replies, requests=requests))
            answered, broken = await _ask(requests, prepared.scoring.graders, prepared.plan.samples())
        finally:
            await requests.close()
    return Export(requests.asked, tuple(requests.files), answered, broken)


async def _ask(
    requests: RequestFile, graders: Sequence[Grader], samples: Iterable[Sample]
) -> tuple[int, tuple[str, ...]]:
    """Grade everything; return the number of verdicts, and the errors that no answer can fix."""
    answered = 0
    broken: list[str] = []
    for sample in samples:
        trajectory = replay(sample)
        name = conversation_label(sample.id, sample.trial or 0)
        for grader in graders:
            requests.ask_for(name, grader.name)
            grade = await grader.grade(sample, trajectory, sample.trial or 0)
            if grade.state != "error":
                answered += 1
            elif grade.failure is None or grade.failure.kind != EXPORTED:
                broken.append(f"{sample.id}: {grader.name}: {grade.reason}")
        await asyncio.sleep(0)
    return answered, tuple(broken)


def export_requests(suite: Suite, judge: str, path: Path, store: Store, options: RunOptions) -> Export:
    """Return what `write_requests` does, from code that is not asynchronous."""
    return run_loop(write_requests(suite, judge, path, store, options))
