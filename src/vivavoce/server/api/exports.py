"""A graded run as a file for another program, complete or not at all."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import IO, Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from vivavoce.errors import StoreError, UsageError
from vivavoce.records.run import Grading, Run
from vivavoce.report.export import export
from vivavoce.server.api.answers import ERRORS
from vivavoce.server.api.runs import GradingName, RunName
from vivavoce.server.api.strict import StrictRoute
from vivavoce.server.replies import ExportFormat
from vivavoce.store.store import Store

router = APIRouter(prefix="/api/v1", tags=["runs"], route_class=StrictRoute, responses=ERRORS)

KINDS: Mapping[ExportFormat, tuple[str, str]] = {
    "json": ("application/json", ".json"),
    "html": ("text/html; charset=utf-8", ".html"),
    "jsonl": ("application/x-ndjson", ".jsonl"),
    "csv": ("text/csv; charset=utf-8", ".csv"),
    "junit": ("application/xml", ".xml"),
    "markdown": ("text/markdown; charset=utf-8", ".md"),
    "github": ("text/plain; charset=utf-8", ".txt"),
    "baseline": ("application/json", ".json"),
    "parquet": ("application/vnd.apache.parquet", ".parquet"),
}
"""The content type of each format, and its file extension."""

CHUNK = 2**18
"""Bytes that are sent at a time."""

_CONTENT: dict[str, Any] = {
    kind.partition(";")[0]: {"schema": {} if "json" in kind else {"type": "string", "format": "binary"}}
    for kind, _ in KINDS.values()
}


class FileAnswer(StreamingResponse):
    """Sends an open file, and closes it however that ends."""

    def __init__(self, file: IO[bytes], name: str, kind: str) -> None:
        self._file = file
        length = file.seek(0, os.SEEK_END)
        file.seek(0)
        headers = {"content-disposition": f'attachment; filename="{name}"', "content-length": str(length)}
        super().__init__(iter(partial(file.read, CHUNK), b""), headers=headers, media_type=kind)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        with self._file:
            await super().__call__(scope, receive, send)


@router.get(
    "/runs/{run}/export",
    response_class=StreamingResponse,
    responses={200: {"content": _CONTENT, "description": "The file."}},
)
async def export_run(
    request: Request,
    run: RunName,
    to: Annotated[ExportFormat, Query(alias="format", description="The formats of `viva export`.")] = "json",
    grading: GradingName = None,
) -> Response:
    """Return a graded run as a file; it is complete before the first byte is sent."""
    make = partial(_made, request.app.state.store, run, grading, to)
    file, name = await to_thread.run_sync(make, limiter=request.app.state.exports)
    kind, ending = KINDS[to]
    return FileAnswer(file, name + ending, kind)


def _made(store: Store, run: str, grading: str | None, to: ExportFormat) -> tuple[IO[bytes], str]:
    """Return the file, which nobody else can open, and its name.

    Raises:
        UsageError: there is no such run or grading, or the run was deleted meanwhile.
        StoreError: the store cannot be read, or there is no room for the file.
    """
    found = store.run(run)
    file = _file(store, found, store.grading(found.id, grading), to)
    store.run(found.id)
    return file, re.sub(r"[^\w.-]", "-", found.id, flags=re.ASCII)[:80].lstrip(".") or "run"


def _file(store: Store, run: Run, grading: Grading, to: ExportFormat) -> IO[bytes]:
    try:
        with tempfile.TemporaryDirectory(prefix="vivavoce-") as folder:
            path = Path(folder) / "export"
            export(store, run, grading, to, path)
            return path.open("rb")
    except (OSError, UsageError) as error:
        if isinstance(error, UsageError) and not isinstance(error.__cause__, OSError):
            raise
        raise StoreError(f"the file cannot be created: {error}") from error
