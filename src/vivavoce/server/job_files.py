"""The files with the conversations of requests, in the served folder: a run reads them as its dataset.

The store has them, too, until the job is finished, so that a server without the file can continue the job.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from vivavoce.errors import StoreError
from vivavoce.records.redaction import keys_of_environment
from vivavoce.report.strict_json import strict_json


class JobFiles:
    """The folder of the files, one for each job that brought conversations."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, job_id: str) -> Path:
        """Return the file of a job."""
        return self.folder / f"{job_id}.jsonl"

    def write(self, job_id: str, content: str) -> None:
        """Write the file of a job, completely or not at all.

        Raises:
            StoreError: it cannot be written.
        """
        path = self.path(job_id)
        new = path.with_suffix(f".{os.getpid()}.new")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with open(new, "w", encoding="utf-8", opener=_ours_alone) as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(new, path)
        except OSError as error:
            with suppress(OSError):  # it was never made
                new.unlink()
            raise StoreError(f"{self.folder}: the job cannot be saved: {error.strerror or error}") from error

    def restore(self, inputs: Mapping[str, str]) -> None:
        """Write the files that are not here; `inputs` is their content by job.

        Raises:
            StoreError: one cannot be written.
        """
        for job_id, content in inputs.items():
            if not self.path(job_id).exists():
                self.write(job_id, content)

    def remove(self, job_id: str) -> None:
        """Delete the file of a job, if there is one."""
        with suppress(OSError):  # it was never made
            self.path(job_id).unlink()


def lines_of(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return conversations as JSON lines, without the keys of the environment."""
    return keys_of_environment().cut("".join(strict_json(row) + "\n" for row in rows))


def _ours_alone(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
