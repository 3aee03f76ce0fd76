"""Answers of the API, apart from the records of the library."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from vivavoce.metrics.result import MetricResult
from vivavoce.records.run import Grading, Run
from vivavoce.records.score import Usage
from vivavoce.run.summary import Summary
from vivavoce.server.job_record import JobRecord
from vivavoce.store.browse.listing import AlikeErrors, RunEntry, SamplePage
from vivavoce.store.search.search import Hit


class Reply(BaseModel):
    """Immutable."""

    model_config = ConfigDict(frozen=True)


class RunReport(Reply):
    """A run with one of its gradings, the summary of that, and the verdict in one sentence.

    `errors` are those of its conversations, grouped by what they say, the most frequent first.
    """

    run: Run
    grading: Grading
    summary: Summary
    finding: str
    errors: list[AlikeErrors] = Field(default_factory=list[AlikeErrors])


class CountedSamples(SamplePage):
    """A page of samples; `matches` is the number of all matching samples, on the first page only."""

    matches: int | None = None


class CapturedRow(Reply):
    """A row of a dataset that was made of a conversation, and what was cut out of it, by kind.

    `left_out` has the fields that could not be kept. `file` is the dataset that has the row as `id`, None where it was
    added to none; `added` is False where the row of that conversation was there before.
    """

    row: dict[str, Any]
    cut: dict[str, int]
    left_out: list[str]
    file: str | None = None
    id: str | None = None
    added: bool = False


class SearchHit(Reply):
    """A search hit: in a reason of the scores `grading`, in the comment of the id `comment`, or else in a message.

    `turn` is None for a reason or a comment about a whole conversation. `by` is the role of the message, the grader of
    the reason, or the author of the comment. `text` is an excerpt in which the first words that were found are from
    `start` to `end`.
    """

    run: str
    sample_id: str
    target: str
    trial: int
    grading: str | None = None
    turn: int | None = None
    by: str | None = None
    comment: int | None = None
    text: str
    start: int
    end: int


def search_hit(hit: Hit) -> SearchHit:
    """Return a hit of the store as the answer has it."""
    where = {"run": hit.run_id, "grading": hit.grading_id, "turn": hit.turn, "by": hit.by, "comment": hit.comment}
    return SearchHit.model_validate({**hit.key._asdict(), **where, **hit.snippet._asdict()})


class SearchPage(Reply):
    """Some hits, newest first; `next` is the cursor of the next page, None if there is none.

    A page may have few hits or none although others follow. `comments` and `runs` are the newest ones that fit the
    query, on the first page of all kinds only.
    """

    hits: list[SearchHit]
    comments: list[SearchHit] = Field(default_factory=list[SearchHit])
    runs: list[RunEntry] = Field(default_factory=list[RunEntry])
    next: str | None = None


class Evaluated(Reply):
    """The results by the names of the metrics; see `EvaluationReport`."""

    results: dict[str, MetricResult]
    all_passed: bool
    usage: Usage | None = None


class StoredEvaluation(Evaluated):
    """The results for a stored conversation; `grading` is the set of scores that has them, None where none is stored.

    `left_out` are metrics whose results have no place in it, as they are neither a value nor a number.
    """

    grading: str | None = None
    left_out: list[str] = Field(default_factory=list[str])


class JobPage(Reply):
    """Some jobs, newest first; `next` is the cursor of the next page, None if there is none."""

    jobs: list[JobRecord]
    next: str | None = None


class Health(Reply):
    """The health of the server and its store."""

    status: str = "ok"
    version: str


class MetricLine(Reply):
    """A metric: its name, what it measures, and whether it needs a judge."""

    name: str
    line: str
    judged: bool


class Problem(Reply):
    """An error of a request; programs test `code`.

    For a not-found error, `what` is the kind, such as `run`, and `name` the unknown name.
    """

    detail: str
    code: str
    what: str | None = None
    name: str | None = None
