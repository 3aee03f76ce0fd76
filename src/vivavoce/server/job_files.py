"""The files of jobs in the served folder: data about a job that is not in the store and that a restart needs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from pydantic import BaseModel, ValidationError

from vivavoce.errors import StoreError
from vivavoce.records.redaction import keys_of_environment
from vivavoce.report.strict_json import strict_json
from vivavoce.server.job_record import JobRecord
from vivavoce.server.job_requests import KeptRequest
from vivavoce.store.runs.claim import Claimed, claimed_in_file


class KeptJob(BaseModel):
    """The content of the file of a job.

    `request` is present while the job has to continue after a restart: until it is over or cancelled. Only hashes of
    the key and of the whole request are stored, and the conversations of an evaluation are in a separate file. `store`
    has its runs, and `new_run` is the id of the one that it begins, which is there a moment before the record says so.
    `starts` counts how often in a row the job was started and stopped without storing one more conversation; `calls`
    and `cost` are what it has used of its limits, up to date within a second.
    """

    record: JobRecord
    key: str | None = None
    body: str = ""
    store: str = ""
    new_run: str | None = None
    request: KeptRequest | None = None
    starts: int = 0
    calls: int = 0
    cost: float = 0.0


class JobFiles:
    """The folder of job files, one file per job."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def conversations(self, job_id: str) -> Path:
        """Return the file for the conversations of a request."""
        return self.folder / f"{job_id}.jsonl"

    def write(self, job: KeptJob) -> None:
        """Write the file of a job, completely or not at all, without the keys of the environment.

        Raises:
            StoreError: it cannot be written.
        """
        path = self._path(job.record.id)
        new = path.with_suffix(".new")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with open(new, "w", encoding="utf-8", opener=_ours_alone) as file:
                file.write(keys_of_environment().cut(strict_json(job.model_dump())))
                file.flush()
                os.fsync(file.fileno())
            os.replace(new, path)
        except OSError as error:
            raise StoreError(f"{self.folder}: the job cannot be saved: {error.strerror or error}") from error

    def read(self, job_id: str) -> KeptJob:
        """Return the saved job.

        Raises:
            StoreError: its file cannot be read.
        """
        path = self._path(job_id)
        try:
            return KeptJob.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            raise StoreError(f"{path}: this is not a job file; move it away ({error})") from error

    def ids(self) -> Iterator[str]:
        """Yield the ids of the saved jobs."""
        yield from (path.stem for path in sorted(self.folder.glob("job-*.json")))

    def claim(self, job_id: str) -> ExitStack | None:
        """Lock a job against other servers of this folder until the result is closed; None if another server has it.

        Raises:
            StoreError: the folder cannot be written.
        """
        claim = ExitStack()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            claim.enter_context(claimed_in_file(str(self.folder / "at-work"), job_id))
        except Claimed:
            return None
        except OSError as error:
            raise StoreError(f"{self.folder}: the job cannot be saved: {error.strerror or error}") from error
        return claim

    def _path(self, job_id: str) -> Path:
        return self.folder / f"{job_id}.json"


def _ours_alone(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
