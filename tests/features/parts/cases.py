"""Conversations in files, and jobs over them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from vivavoce.features.parts.job import Job, job_of, kept_job
from vivavoce.features.parts.work import Share, Worked, Worker
from vivavoce.files.places import Folder
from vivavoce.run.options import RunOptions
from vivavoce.suites.command_line import judging_suite
from vivavoce.suites.load import Suite
from vivavoce.suites.metric_names import read_metrics

Row = dict[str, Any]


def talk(number: int) -> Row:
    """Return a conversation, of which every fourth refuses."""
    answer = "I'm sorry, I cannot help with that." if number % 4 == 3 else f"Answer {number}."
    messages = [{"role": "user", "content": f"Question {number}?"}, {"role": "assistant", "content": answer}]
    return {"id": f"r{number}", "messages": messages}


def write_jsonl(path: Path, numbers: Iterable[int], *more: str) -> Path:
    """Write conversations, and further lines as they are."""
    path.write_text("".join(f"{line}\n" for line in (*map(json.dumps, map(talk, numbers)), *more)), "utf-8")
    return path


def write_parquet(path: Path, numbers: Iterable[int], group: int = 1_000_000) -> Path:
    """Write conversations in row groups of that size; messages are JSON text."""
    rows = [{"id": one["id"], "messages": json.dumps(one["messages"])} for one in map(talk, numbers)]
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=group)  # pyright: ignore
    return path


def suite(metrics: str = "refusal", judge: str | None = None) -> Suite:
    return judging_suite(Path("talks.jsonl"), read_metrics(metrics), judge, name="talks")


def begun(
    folder: Folder, patterns: Sequence[str], *, rows: int = 4, metrics: str = "refusal", judge: str | None = None
) -> Job:
    """Return the job over these files, kept in a folder."""
    return kept_job(folder, job_of(suite(metrics, judge), patterns, RunOptions(), rows=rows))


def worked(job: Job, folder: Folder, scratch: Path, share: Share | None = None) -> list[Worked]:
    """Work on every part, one after the other."""
    worker = Worker(job, folder, scratch)
    try:
        return [worker.work_on(part, share or Share(1)) for part in job.parts]
    finally:
        worker.close()
