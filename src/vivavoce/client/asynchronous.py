"""`AsyncClient`: the API of a server, every route a method."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack
from urllib.parse import urlencode

from pydantic import TypeAdapter

from vivavoce.client.connection import parse_answer, part, refusal_of
from vivavoce.client.together import Labelled, Place, Together
from vivavoce.errors import Fault
from vivavoce.features.clusters.records import Clusters
from vivavoce.features.compare.several import SeveralComparisons
from vivavoce.features.trends.trends import Trend
from vivavoce.features.watch.state import Bucket, Watched, WatchEntry
from vivavoce.files.paths import whole_file
from vivavoce.metrics.evaluation import EvaluationReport, Known, OneOrMore, as_several
from vivavoce.metrics.factory import Choice
from vivavoce.metrics.metric import Conversation, evaluation_input
from vivavoce.records.label import HumanVerdict, Label, LabelAgreement
from vivavoce.records.replies import JudgeExchange
from vivavoce.records.run import Grading, Outcome, Run
from vivavoce.records.score import State
from vivavoce.report.comparison.comparison import Comparison
from vivavoce.server.job_record import JobEvent, JobRecord
from vivavoce.server.replies import (
    CapturedRow,
    CountedSamples,
    Evaluated,
    Health,
    JobPage,
    MetricLine,
    RunReport,
    SearchHit,
    SearchPage,
)
from vivavoce.store.audit import AuditEntry, AuditPage
from vivavoce.store.browse.listing import (
    GradedTurn,
    LabelPage,
    ListedScore,
    RunEntry,
    RunPage,
    SampleEntry,
    ScorePage,
    TurnPage,
)
from vivavoce.store.jobs import Kind
from vivavoce.store.search.search import Kind as SearchKind
from vivavoce.validation import shows_options
from vivavoce.wire.session import open_session

if TYPE_CHECKING:
    from aiohttp import ClientResponse

_GRADINGS = TypeAdapter(list[Grading])
_LABELS = TypeAdapter(list[Label])
_METRICS = TypeAdapter(list[MetricLine])
_WATCHES = TypeAdapter(list[WatchEntry])
_OF_SAMPLE = {
    *("goal", "instructions", "context", "policy", "ground_truth", "reference_tool_calls", "must", "must_not"),
    *("rubric", "rubric_vars", "labels", "metadata", "expect"),
}
"""What a metric may need of a sample, and a request therefore holds."""


class AsyncClient(Together):
    """A client of a server; `token` is its access token, `timeout` the seconds to wait for an answer.

    Use it with `async with`, or close it.
    """

    def runs(self, *, suite: str | None = None, text: str | None = None) -> AsyncGenerator[RunEntry]:
        """Yield the runs, the newest first, a page at a time; `text` is a part of the name of the run or its suite."""
        return self._pages("/runs", {"suite": suite, "text": text}, RunPage, lambda page: page.runs)

    async def run(self, name: str = "latest", *, grading: str | None = None) -> RunReport:
        """Return a run with its summary.

        Raises:
            UsageError: there is no such run or grading.
        """
        return await self._get(f"/runs/{part(name)}", {"grading": grading}, RunReport)

    def samples(
        self,
        run: str = "latest",
        *,
        filter: str = "",  # noqa: A002
        sort: str = "position",
        grading: str | None = None,
    ) -> AsyncGenerator[SampleEntry]:
        """Yield the samples of a run that match a filter such as `state:error goal<0.5`, a page at a time.

        Raises:
            UsageError: there is no such run or grading, or the filter cannot be read.
        """
        params = {"filter": filter, "sort": sort, "grading": grading}
        return self._pages(f"/runs/{part(run)}/samples", params, CountedSamples, lambda page: page.samples)

    async def gradings(self, run: str = "latest") -> list[Grading]:
        """Return the sets of scores of a run, the oldest first.

        Raises:
            NotFound: there is no such run.
        """
        return _GRADINGS.validate_json((await self._send("GET", f"/runs/{part(run)}/gradings")).body)

    def errors(self, run: str = "latest", *, grading: str | None = None) -> AsyncGenerator[SampleEntry]:
        """Yield the samples of a run with errors, each with its cause, a page at a time.

        Raises:
            NotFound: there is no such run or grading.
        """
        return self._pages(f"/runs/{part(run)}/errors", {"grading": grading}, CountedSamples, lambda page: page.samples)

    async def delete_run(self, run: str) -> None:
        """Delete a run, named in full, with its conversations, scores and labels, permanently.

        Raises:
            NotFound: there is no such run.
            UsageError: it is being worked on, or the token may not do this.
        """
        await self._send("DELETE", f"/runs/{part(run)}")

    async def remark(
        self, run: str, *, title: str | None = None, notes: str | None = None, tags: Sequence[str] | None = None
    ) -> Run:
        """Change the title, the notes or the tags of a run, and return it; an empty text removes what was there.

        Raises:
            NotFound: there is no such run.
            UsageError: a text is too long, or the token may not do this.
        """
        changes = {"title": title, "notes": notes, "tags": None if tags is None else list(tags)}
        body = {name: value for name, value in changes.items() if value is not None}
        return parse_answer(Run, (await self._send("PATCH", f"/runs/{part(run)}", body)).body)

    async def trends(
        self,
        suite: str,
        grader: str | None = None,
        target: str | None = None,
        *,
        first: str | None = None,
        last: str | None = None,
        limit: int = 60,
    ) -> Trend:
        """Return the means of a grader over the newest runs of a suite, or from or up to a given run, and what changed.

        Raises:
            UsageError: there is no such suite, grader, target or run.
        """
        params = {"suite": suite, "grader": grader, "target": target, "from": first, "to": last, "limit": str(limit)}
        return await self._get("/trends", params, Trend)

    def search(
        self, query: str, *, run: str | None = None, kind: SearchKind | None = None
    ) -> AsyncGenerator[SearchHit]:
        """Yield the messages and reasons that fit a query such as `refund state:fail`, or comments, the newest first.

        Raises:
            UsageError: there is no such run, or the query cannot be read.
        """
        return self._pages("/search", {"q": query, "run": run, "kind": kind}, SearchPage, lambda page: page.hits)

    async def export(self, run: str = "latest", format: str = "json", *, grading: str | None = None) -> bytes:  # noqa: A002
        """Return a run as the file that `viva export` writes, in memory; see `export_to`.

        Raises:
            UsageError: there is no such run, grading or format.
            Fault: the server or the connection failed, or the answer is not complete.
        """
        async with aclosing(self.export_chunks(run, format, grading=grading)) as chunks:
            return b"".join([chunk async for chunk in chunks])

    async def export_to(
        self,
        path: str | os.PathLike[str],
        run: str = "latest",
        format: str = "json",  # noqa: A002
        *,
        grading: str | None = None,
    ) -> None:
        """Write a run to the file that `viva export` writes, while it arrives; the file appears whole or not at all.

        Raises:
            UsageError: there is no such run, grading or format, or the file cannot be written.
            Fault: the server or the connection failed, or the answer is not complete.
        """
        with whole_file(Path(path)) as new, new.open("wb") as file:
            async with aclosing(self.export_chunks(run, format, grading=grading)) as chunks:
                async for chunk in chunks:
                    await asyncio.to_thread(file.write, chunk)

    async def export_chunks(
        self,
        run: str = "latest",
        format: str = "json",  # noqa: A002
        *,
        grading: str | None = None,
    ) -> AsyncGenerator[bytes]:
        """Yield the bytes of a run as a file as they arrive, whatever the size.

        Raises:
            UsageError: there is no such run, grading or format.
            Fault: the server or the connection failed, or the answer is not complete.
        """
        params = urlencode({"format": format} | ({"grading": grading} if grading else {}), errors="replace")
        url = f"{self._url}/runs/{part(run)}/export?{params}"
        async with self._stream(url, self._headers, self._connections.limits.timeout) as response:
            async for chunk in response.content.iter_any():
                yield chunk

    async def conversation(
        self, run: str, sample: str, trial: int = 0, *, target: str | None = None, grading: str | None = None
    ) -> Outcome:
        """Return a conversation with its grades.

        Raises:
            UsageError: there is no such conversation.
        """
        place = f"/runs/{part(run)}/samples/{part(sample)}/{trial}"
        return await self._get(place, {"target": target, "grading": grading}, Outcome)

    def turns(
        self, run: str, sample: str, trial: int = 0, *, target: str | None = None, grading: str | None = None
    ) -> AsyncGenerator[GradedTurn]:
        """Yield the turns of a conversation with the graders' scores of each, a page at a time.

        Raises:
            UsageError: there is no such conversation.
        """
        place = f"/runs/{part(run)}/samples/{part(sample)}/{trial}/turns"
        return self._pages(place, {"target": target, "grading": grading}, TurnPage, lambda page: page.turns)

    async def judge_exchange(
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
        """Return the questions to a grader's judge and its answers, for one turn or all.

        Raises:
            UsageError: there is no such conversation, or it has no score of this grader.
        """
        place = f"/runs/{part(run)}/samples/{part(sample)}/{trial}/exchange"
        params = {"grader": grader, "turn": None if turn is None else str(turn), "target": target, "grading": grading}
        return await self._get(place, params, JudgeExchange)

    def scores(
        self, run: str = "latest", *, grader: str | None = None, state: State | None = None, grading: str | None = None
    ) -> AsyncGenerator[ListedScore]:
        """Yield the scores of a run, each conversation before its turns, a page at a time.

        Raises:
            UsageError: there is no such run or grading.
        """
        params = {"grader": grader, "state": state, "grading": grading}
        return self._pages(f"/runs/{part(run)}/scores", params, ScorePage, lambda page: page.scores)

    async def clusters(self, run: str = "latest", *, grader: str | None = None, grading: str | None = None) -> Clusters:
        """Return what failed in a run, grouped by what the failures have in common.

        Raises:
            UsageError: there is no such run, grader or grading.
        """
        return await self._get(f"/runs/{part(run)}/clusters", {"grader": grader, "grading": grading}, Clusters)

    async def name_clusters(
        self, run: str = "latest", *, judge: str | None = None, grader: str | None = None, grading: str | None = None
    ) -> Clusters:
        """Have a judge of the server name the clusters of a run, and return them.

        Raises:
            UsageError: there is no such run, grader or grading, or no judge that a request may use.
        """
        body = {"judge": judge, "grader": grader, "grading": grading}
        return parse_answer(Clusters, (await self._send("POST", f"/runs/{part(run)}/clusters/names", body)).body)

    async def watches(self) -> list[WatchEntry]:
        """Return the production watches, the most recently reported first."""
        return _WATCHES.validate_json((await self._send("GET", "/watches")).body)

    async def watched(self, name: str | None = None, *, per: Bucket = "hour") -> Watched:
        """Return a production watch's counts by hour or day, its budget, and whether its gate passes.

        Without a name: the watch that reported last.

        Raises:
            UsageError: no watch has this name.
        """
        return await self._get("/watch", {"name": name, "per": per}, Watched)

    async def compare(self, a: str, b: str) -> Comparison:
        """Return a comparison of the newest scores of two runs, paired sample by sample.

        Raises:
            UsageError: there is no such run, or they have no target in common.
        """
        return await self._get("/comparisons", {"a": a, "b": b}, Comparison)

    async def compare_several(self, baseline: str, *runs: str) -> SeveralComparisons:
        """Return comparisons of the newest scores of runs with those of a baseline run.

        Raises:
            UsageError: there is no such run, one is named twice, or one has no target in common with the baseline.
        """
        return await self._get("/comparisons/several", {"baseline": baseline, "run": runs}, SeveralComparisons)

    def labels(
        self, run: str = "latest", *, grader: str | None = None, author: str | None = None
    ) -> AsyncGenerator[Label]:
        """Yield the labels of the conversations of a run, a page at a time.

        Raises:
            UsageError: there is no such run.
        """
        params = {"grader": grader, "author": author}
        return self._pages(f"/runs/{part(run)}/labels", params, LabelPage, lambda page: page.labels)

    @shows_options
    async def label(
        self, run: str, sample: str, verdict: HumanVerdict, note: str | None = None, **where: Unpack[Labelled]
    ) -> Label:
        """Label a conversation as passing or not, replacing your earlier label; no score changes.

        Raises:
            UsageError: there is no such conversation, or there are several targets and none is named.
        """
        body = {"verdict": verdict, "note": note, "queue": where.pop("queue", None)}
        return parse_answer(Label, (await self._send("PUT", _labels_at(run, sample, **where), body)).body)

    @shows_options
    async def unlabel(self, run: str, sample: str, **where: Unpack[Place]) -> Label:
        """Delete your label and return it.

        Raises:
            UsageError: there is no such label.
        """
        return parse_answer(Label, (await self._send("DELETE", _labels_at(run, sample, **where))).body)

    async def labels_of(self, run: str, sample: str, trial: int = 0, *, target: str | None = None) -> list[Label]:
        """Return the labels of a conversation and of its turns, the oldest first.

        Raises:
            NotFound: there is no such conversation.
        """
        place = _labels_at(run, sample, trial=trial, target=target)
        return _LABELS.validate_json((await self._send("GET", place)).body)

    async def agreement(
        self, run: str, grader: str, *, author: str | None = None, turns: bool = False
    ) -> LabelAgreement:
        """Return how well a grader agrees with people, by conversation or by turn.

        Raises:
            UsageError: there is no such run.
        """
        params = {"grader": grader, "author": author, "turns": "true" if turns else None}
        return await self._get(f"/runs/{part(run)}/labels/agreement", params, LabelAgreement)

    @shows_options
    async def evaluate(
        self,
        conversation: Conversation,
        metrics: OneOrMore[str | Choice],
        goal: str | None = None,
        *,
        judge: str | None = None,
        **known: Unpack[Known],
    ) -> EvaluationReport:
        """Measure a conversation now, with the arguments of `evaluate_conversation`.

        Raises:
            ValueError: the messages are malformed.
            UsageError: a metric is unknown, or the judge is not allowed.
        """
        metric_input = evaluation_input(conversation, goal=goal, **known)
        apart = {"conversation_history", "sample"}
        body = metric_input.model_dump(mode="json", exclude=apart, exclude_defaults=True)
        if (sample := metric_input.sample) is not None:
            body = sample.model_dump(mode="json", exclude_unset=True, include=_OF_SAMPLE) | body
        body["messages"] = [message.model_dump(mode="json", exclude_unset=True) for message in metric_input.messages]
        body |= {"metrics": list(as_several(metrics)), "judge": judge}
        answer = await self._send("POST", "/evaluations", body)
        return EvaluationReport(parse_answer(Evaluated, (answer).body).results)

    async def evaluate_stored(
        self,
        run: str,
        sample: str,
        metrics: OneOrMore[str | Choice],
        *,
        trial: int | None = None,
        judge: str | None = None,
        store: bool = True,
    ) -> EvaluationReport:
        """Measure a stored conversation now; with `store`, save the scores as a separate set.

        The run keeps its verdict and its scores; `gradings` has the set.

        Raises:
            NotFound: there is no such conversation.
            UsageError: a metric is unknown, the judge is not allowed, or the run is not finished.
        """
        place = f"/test-results/{part(run)}/{part(sample)}/evaluations"
        body = {"metrics": list(as_several(metrics)), "trial": trial, "judge": judge, "store": store}
        return EvaluationReport(parse_answer(Evaluated, (await self._send("POST", place, body)).body).results)

    async def capture(
        self, run: str, sample: str, *, trial: int = 0, target: str | None = None, to: str | None = None
    ) -> CapturedRow:
        """Make a dataset row from a conversation; with `to`, the server adds it to that file in its folder.

        Raises:
            NotFound: there is no such conversation.
            UsageError: the file cannot be used, or the server may not write datasets.
        """
        place = f"/runs/{part(run)}/samples/{part(sample)}/{trial}/row"
        return parse_answer(CapturedRow, (await self._send("POST", place, {"target": target, "to": to})).body)

    def jobs(self) -> AsyncGenerator[JobRecord]:
        """Yield the jobs of the server, the newest first, a page at a time."""
        return self._pages("/jobs", {}, JobPage, lambda page: page.jobs)

    def audit(self) -> AsyncGenerator[AuditEntry]:
        """Yield who changed what, the newest first, a page at a time.

        Raises:
            UsageError: the token may not see this.
        """
        return self._pages("/audit", {}, AuditPage, lambda page: page.entries)

    async def health(self) -> Health:
        """Check that the server and its store work; return the server's version."""
        return await self._get("/health", {}, Health)

    async def metrics(self) -> list[MetricLine]:
        """Return the metrics that requests may name."""
        return _METRICS.validate_json((await self._send("GET", "/metrics")).body)

    async def submit(self, kind: Kind, *, key: str | None = None, **fields: Any) -> AsyncJob:
        """Begin a job, `evaluation`, `suite`, `test`, `grade` or `resume`, with the fields of that kind; see the API.

        The same key never begins a second job.

        Raises:
            UsageError: a field is wrong, or the job is not allowed.
        """
        headers = {} if key is None else {"idempotency-key": key}
        return AsyncJob(
            self, parse_answer(JobRecord, (await self._send("POST", "/jobs", {"kind": kind, **fields}, headers)).body)
        )

    async def job(self, job_id: str) -> AsyncJob:
        """Return a job.

        Raises:
            UsageError: there is no job with that id.
        """
        return AsyncJob(self, await self._get(f"/jobs/{part(job_id)}", {}, JobRecord))

    async def cancel(self, job_id: str) -> JobRecord:
        """Stop a job after the work in flight; if called again, drop that too."""
        return parse_answer(JobRecord, (await self._send("DELETE", f"/jobs/{part(job_id)}")).body)

    async def events(self, job_id: str, after: int = 0) -> AsyncGenerator[JobEvent]:
        """Yield the events of a job, past and new, after a given one, until it is over."""
        headers = self._headers | {"last-event-id": str(after), "accept": "text/event-stream"}
        async with self._stream(f"{self._url}/jobs/{part(job_id)}/events", headers, 60) as response:
            async for event in _events(response):
                yield event

    @asynccontextmanager
    async def _stream(
        self, url: str, headers: Mapping[str, str], read_seconds: float
    ) -> AsyncGenerator[ClientResponse]:
        """Give an answer that is read while it arrives; `read_seconds` is the longest pause in it."""
        import aiohttp

        source = f"GET {url.partition('?')[0]}"
        waits = aiohttp.ClientTimeout(total=None, sock_connect=self._connections.limits.timeout, sock_read=read_seconds)
        try:
            async with (
                open_session(1, timeout=waits, buffer_bytes=2**22) as session,
                session.get(url, headers=headers, allow_redirects=False) as response,
            ):
                if response.status != 200:
                    raise refusal_of(response.status, await response.text()) or Fault(
                        f"{source} answered {response.status}", kind="http"
                    )
                yield response
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Fault(f"{source}: the connection broke: {error}", kind="connection", retryable=True) from error


class AsyncJob:
    """A job of a server; `record` is its latest state."""

    def __init__(self, client: AsyncClient, record: JobRecord) -> None:
        self._client, self.record = client, record

    @property
    def id(self) -> str:
        """The id of the job."""
        return self.record.id

    async def events(self, after: int = 0) -> AsyncGenerator[JobEvent]:
        """Yield the events, past and new, after a given one, until the job is over."""
        async for event in self._client.events(self.id, after):
            self.record = event.job or self.record
            yield event

    async def wait(self) -> JobRecord:
        """Wait until it is over, and return how it ended."""
        async for _ in self.events():
            pass
        return self.record

    async def cancel(self) -> JobRecord:
        """Stop it after the work in flight; if called again, drop that too."""
        self.record = await self._client.cancel(self.id)
        return self.record


async def _events(response: ClientResponse) -> AsyncIterator[JobEvent]:
    """Read server-sent events, of which every one here has its data in one line."""
    async for line in response.content:
        if line.startswith(b"data:"):
            yield parse_answer(JobEvent, line[5:])


def _labels_at(run: str, sample: str, **where: Unpack[Place]) -> str:
    trial = where.pop("trial", 0)
    query = urlencode({name: value for name, value in where.items() if value is not None}, errors="replace")
    return f"/runs/{part(run)}/samples/{part(sample)}/{trial}/labels?{query}"
