"""`Client`: the methods of `AsyncClient` for sync code."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Self, Unpack

from vivavoce.client.asynchronous import AsyncClient, AsyncJob
from vivavoce.client.connection import LOCAL, each
from vivavoce.client.together import Labelled, Place
from vivavoce.client.together_sync import TogetherSync
from vivavoce.features.clusters.records import Clusters
from vivavoce.features.compare.several import SeveralComparisons
from vivavoce.features.trends.trends import Trend
from vivavoce.features.watch.state import Bucket, Watched, WatchEntry
from vivavoce.metrics.evaluation import EvaluationReport, Known, OneOrMore
from vivavoce.metrics.factory import Choice
from vivavoce.metrics.metric import Conversation
from vivavoce.pacing.loops import LoopThread
from vivavoce.records.label import HumanVerdict, Label, LabelAgreement
from vivavoce.records.replies import JudgeExchange
from vivavoce.records.run import Grading, Outcome, Run
from vivavoce.records.score import State
from vivavoce.report.comparison.comparison import Comparison
from vivavoce.server.job_record import JobEvent, JobRecord
from vivavoce.server.replies import CapturedRow, Health, MetricLine, RunReport, SearchHit
from vivavoce.store.audit import AuditEntry
from vivavoce.store.browse.listing import GradedTurn, ListedScore, RunEntry, SampleEntry
from vivavoce.store.jobs import Kind
from vivavoce.store.search.search import Kind as SearchKind
from vivavoce.validation import shows_options


class Client(TogetherSync):
    """The sync version of `AsyncClient`, method by method; works where an event loop is running too.

    Use it with `with`, or close it.
    """

    def __init__(self, url: str = LOCAL, token: str | None = None, *, timeout: float = 300.0) -> None:
        self._together = self._client = AsyncClient(url, token, timeout=timeout)
        self._loop = LoopThread("vivavoce-client")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._loop.run(self._client.close())
        self._loop.stop()

    def runs(self, *, suite: str | None = None, text: str | None = None) -> Iterator[RunEntry]:
        """Yield the runs, the newest first."""
        return each(self._loop, self._client.runs(suite=suite, text=text))

    def run(self, name: str = "latest", *, grading: str | None = None) -> RunReport:
        """Return a run with its summary."""
        return self._loop.run(self._client.run(name, grading=grading))

    def samples(
        self,
        run: str = "latest",
        *,
        filter: str = "",  # noqa: A002
        sort: str = "position",
        grading: str | None = None,
    ) -> Iterator[SampleEntry]:
        """Yield the samples of a run that match a filter."""
        return each(self._loop, self._client.samples(run, filter=filter, sort=sort, grading=grading))

    def gradings(self, run: str = "latest") -> list[Grading]:
        """Return the sets of scores of a run."""
        return self._loop.run(self._client.gradings(run))

    def errors(self, run: str = "latest", *, grading: str | None = None) -> Iterator[SampleEntry]:
        """Yield the samples of a run with errors."""
        return each(self._loop, self._client.errors(run, grading=grading))

    def delete_run(self, run: str) -> None:
        """Delete a run, permanently."""
        self._loop.run(self._client.delete_run(run))

    def remark(
        self, run: str, *, title: str | None = None, notes: str | None = None, tags: Sequence[str] | None = None
    ) -> Run:
        """Change the title, the notes or the tags of a run, and return it; an empty text removes what was there."""
        return self._loop.run(self._client.remark(run, title=title, notes=notes, tags=tags))

    def trends(
        self,
        suite: str,
        grader: str | None = None,
        target: str | None = None,
        *,
        first: str | None = None,
        last: str | None = None,
        limit: int = 60,
    ) -> Trend:
        """Return the means of a grader over the runs of a suite, and what changed between them."""
        trend = self._client.trends(suite, grader, target, first=first, last=last, limit=limit)
        return self._loop.run(trend)

    def search(self, query: str, *, run: str | None = None, kind: SearchKind | None = None) -> Iterator[SearchHit]:
        """Yield the messages and reasons, or the comments, that fit a query."""
        return each(self._loop, self._client.search(query, run=run, kind=kind))

    def export(self, run: str = "latest", format: str = "json", *, grading: str | None = None) -> bytes:  # noqa: A002
        """Return a run as a file, in memory."""
        return self._loop.run(self._client.export(run, format, grading=grading))

    def export_to(
        self,
        path: str | os.PathLike[str],
        run: str = "latest",
        format: str = "json",  # noqa: A002
        *,
        grading: str | None = None,
    ) -> None:
        """Write a run to a file while it arrives; the file appears whole or not at all."""
        self._loop.run(self._client.export_to(path, run, format, grading=grading))

    def export_chunks(
        self,
        run: str = "latest",
        format: str = "json",  # noqa: A002
        *,
        grading: str | None = None,
    ) -> Iterator[bytes]:
        """Yield the bytes of a run as a file while they arrive."""
        return each(self._loop, self._client.export_chunks(run, format, grading=grading))

    def conversation(
        self, run: str, sample: str, trial: int = 0, *, target: str | None = None, grading: str | None = None
    ) -> Outcome:
        """Return a conversation with its grades."""
        return self._loop.run(self._client.conversation(run, sample, trial, target=target, grading=grading))

    def turns(
        self, run: str, sample: str, trial: int = 0, *, target: str | None = None, grading: str | None = None
    ) -> Iterator[GradedTurn]:
        """Yield the turns of a conversation with the graders' scores of each."""
        return each(self._loop, self._client.turns(run, sample, trial, target=target, grading=grading))

    def judge_exchange(
        self,
        run: str,
        sample: str,
        grader: str,
        trial: int = 0,
        *,
        turn: int | None = None,
        target: str | None = None,
        grading: str | None = None,
    ) -> JudgeExchange:
        """Return the questions to a grader's judge and its answers, for one turn or all."""
        exchange = self._client.judge_exchange(run, sample, grader, trial, turn=turn, target=target, grading=grading)
        return self._loop.run(exchange)

    def scores(
        self, run: str = "latest", *, grader: str | None = None, state: State | None = None, grading: str | None = None
    ) -> Iterator[ListedScore]:
        """Yield the scores of a run."""
        return each(self._loop, self._client.scores(run, grader=grader, state=state, grading=grading))

    def clusters(self, run: str = "latest", *, grader: str | None = None, grading: str | None = None) -> Clusters:
        """Return what failed in a run, grouped by what the failures have in common."""
        return self._loop.run(self._client.clusters(run, grader=grader, grading=grading))

    def name_clusters(
        self, run: str = "latest", *, judge: str | None = None, grader: str | None = None, grading: str | None = None
    ) -> Clusters:
        """Have a judge of the server name the clusters of a run, and return them."""
        return self._loop.run(self._client.name_clusters(run, judge=judge, grader=grader, grading=grading))

    def watches(self) -> list[WatchEntry]:
        """Return the production watches."""
        return self._loop.run(self._client.watches())

    def watched(self, name: str | None = None, *, per: Bucket = "hour") -> Watched:
        """Return a production watch's counts, its budget, and whether its gate passes."""
        return self._loop.run(self._client.watched(name, per=per))

    def compare(self, a: str, b: str) -> Comparison:
        """Return a comparison of two runs."""
        return self._loop.run(self._client.compare(a, b))

    def compare_several(self, baseline: str, *runs: str) -> SeveralComparisons:
        """Return comparisons of runs with a baseline run."""
        return self._loop.run(self._client.compare_several(baseline, *runs))

    def labels(self, run: str = "latest", *, grader: str | None = None, author: str | None = None) -> Iterator[Label]:
        """Yield the labels of the conversations of a run."""
        return each(self._loop, self._client.labels(run, grader=grader, author=author))

    @shows_options
    def label(
        self, run: str, sample: str, verdict: HumanVerdict, note: str | None = None, **where: Unpack[Labelled]
    ) -> Label:
        """Label a conversation as passing or not."""
        return self._loop.run(self._client.label(run, sample, verdict, note, **where))

    @shows_options
    def unlabel(self, run: str, sample: str, **where: Unpack[Place]) -> Label:
        """Delete your label and return it."""
        return self._loop.run(self._client.unlabel(run, sample, **where))

    def labels_of(self, run: str, sample: str, trial: int = 0, *, target: str | None = None) -> list[Label]:
        """Return the labels of a conversation and of its turns."""
        return self._loop.run(self._client.labels_of(run, sample, trial, target=target))

    def agreement(self, run: str, grader: str, *, author: str | None = None, turns: bool = False) -> LabelAgreement:
        """Return a grader's agreement with people."""
        return self._loop.run(self._client.agreement(run, grader, author=author, turns=turns))

    @shows_options
    def evaluate(
        self,
        conversation: Conversation,
        metrics: OneOrMore[str | Choice],
        goal: str | None = None,
        *,
        judge: str | None = None,
        **known: Unpack[Known],
    ) -> EvaluationReport:
        """Measure a conversation now."""
        return self._loop.run(self._client.evaluate(conversation, metrics, goal, judge=judge, **known))

    def evaluate_stored(
        self,
        run: str,
        sample: str,
        metrics: OneOrMore[str | Choice],
        *,
        trial: int | None = None,
        judge: str | None = None,
        store: bool = True,
    ) -> EvaluationReport:
        """Measure a stored conversation now; with `store`, save the scores as a separate set."""
        return self._loop.run(self._client.evaluate_stored(run, sample, metrics, trial=trial, judge=judge, store=store))

    def capture(
        self, run: str, sample: str, *, trial: int = 0, target: str | None = None, to: str | None = None
    ) -> CapturedRow:
        """Make a dataset row from a conversation; `to` adds it to a file in the server's folder."""
        return self._loop.run(self._client.capture(run, sample, trial=trial, target=target, to=to))

    def jobs(self) -> Iterator[JobRecord]:
        """Yield the jobs of the server."""
        return each(self._loop, self._client.jobs())

    def audit(self) -> Iterator[AuditEntry]:
        """Yield who changed what."""
        return each(self._loop, self._client.audit())

    def health(self) -> Health:
        """Check that the server and its store work."""
        return self._loop.run(self._client.health())

    def metrics(self) -> list[MetricLine]:
        """Return the metrics that requests may name."""
        return self._loop.run(self._client.metrics())

    def submit(self, kind: Kind, *, key: str | None = None, **fields: Any) -> Job:
        """Begin a job."""
        return Job(self._loop, self._loop.run(self._client.submit(kind, key=key, **fields)))

    def job(self, job_id: str) -> Job:
        """Return a job."""
        return Job(self._loop, self._loop.run(self._client.job(job_id)))

    def cancel(self, job_id: str) -> JobRecord:
        """Stop a job after the work in flight; if called again, drop that too."""
        return self._loop.run(self._client.cancel(job_id))

    def events(self, job_id: str, after: int = 0) -> Iterator[JobEvent]:
        """Yield the events of a job, past and new, after a given one, until it is over."""
        return each(self._loop, self._client.events(job_id, after))


class Job:
    """A job of a server, for sync code; see `AsyncJob`."""

    def __init__(self, loop: LoopThread, job: AsyncJob) -> None:
        self._loop, self._job = loop, job

    @property
    def id(self) -> str:
        """The id of the job."""
        return self._job.id

    @property
    def record(self) -> JobRecord:
        """The latest state of the job."""
        return self._job.record

    def events(self, after: int = 0) -> Iterator[JobEvent]:
        """Yield the events, past and new, after a given one, until the job is over."""
        return each(self._loop, self._job.events(after))

    def wait(self) -> JobRecord:
        """Wait until it is over, and return how it ended."""
        return self._loop.run(self._job.wait())

    def cancel(self) -> JobRecord:
        """Stop it after the work in flight; if called again, drop that too."""
        return self._loop.run(self._job.cancel())
