"""What the API answers besides the library's own records."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from vivavoce.metrics.result import MetricResult
from vivavoce.records.run import Grading, Run
from vivavoce.records.usage import Usage
from vivavoce.run.summary import Summary
from vivavoce.server.job_record import JobRecord
from vivavoce.store.browse.listing import SamplePage

ExportFormat = Literal["json", "html", "jsonl", "csv", "junit", "markdown", "github", "parquet"]
"""What a run is exported as, in one file."""


class Reply(BaseModel):
    """Immutable."""

    model_config = ConfigDict(frozen=True)


class RunReport(Reply):
    """A run with one of its gradings, and the summary of that."""

    run: Run
    grading: Grading
    summary: Summary


class CountedSamples(SamplePage):
    """A page of samples; `matches` is how many the filter lets through in all, told on the first page."""

    matches: int | None = None


class SearchHit(Reply):
    """Where words stand: in a rationale of the scores `grading`, or where that is None, in what was said.

    `turn` is None for a rationale about a whole conversation. `text` is a piece, and in it the first of the words
    stands from `start` to `end`.
    """

    run: str
    sample_id: str
    target: str
    trial: int
    grading: str | None = None
    turn: int | None = None
    text: str
    start: int
    end: int


class SearchPage(Reply):
    """Some places, the newest first; `next` is where the next page begins, None where there is none."""

    hits: list[SearchHit]
    next: str | None = None


class Evaluated(Reply):
    """The results by the names of the metrics; see `EvaluationReport`."""

    results: dict[str, MetricResult]
    all_passed: bool
    usage: Usage | None = None


class JobPage(Reply):
    """Some jobs, the newest first; `next` is where the next page begins, None where there is none."""

    jobs: list[JobRecord]
    next: str | None = None


class Health(Reply):
    """A server that works, and its store with it."""

    status: str = "ok"
    version: str


class MetricLine(Reply):
    """A metric by its name: what it measures, and whether it asks a judge."""

    name: str
    line: str
    judged: bool


class Problem(Reply):
    """What is wrong with a request; a program tests `code`.

    Of what is not found, `what` is its kind, such as `run`, and `name` the name that stands for nothing.
    """

    detail: str
    code: str
    what: str | None = None
    name: str | None = None
