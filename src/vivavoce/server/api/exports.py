"""A graded run as a file for another program, sent while it is written.

An error after the first byte ends the connection before the last chunk, so that no client takes a part for the whole.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import IO, Annotated, Any, TextIO, cast

from anyio import to_thread
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core.core_schema import CoreSchema, no_info_after_validator_function
from starlette.types import Receive, Scope, Send

from vivavoce.errors import StoreError, UsageError, VivavoceError, did_you_mean
from vivavoce.records.run import Grading, Run
from vivavoce.report.export import Exporter, export, file_formats, plugin_exporter
from vivavoce.server.api.answers import ERRORS
from vivavoce.server.api.runs import GradingName, RunName
from vivavoce.server.api.strict import StrictRoute
from vivavoce.server.monitoring import log
from vivavoce.server.state import server_of, store_of
from vivavoce.server.text_stream import TextStream
from vivavoce.server.traffic import until_sent
from vivavoce.server.users import user_of
from vivavoce.store.store import Store

router = APIRouter(prefix="/api/v1", tags=["runs"], route_class=StrictRoute, responses=ERRORS)

KINDS: Mapping[str, tuple[str, str]] = {
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
"""The content type of each built-in format that is a single file, and its file extension."""


class ExportName:
    """The name of a format that is a single file: a built-in one, or one of a plugin."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Check the name."""
        return no_info_after_validator_function(_check_name, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """List the names."""
        return {**handler(schema), "enum": _names()}


def _names() -> list[str]:
    return [*KINDS, *file_formats()]


def _check_name(name: str) -> str:
    if name not in KINDS and name not in (names := _names()):
        raise ValueError(f"no export format '{name}'{did_you_mean(name, names)}")
    return name


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
    to: Annotated[str, ExportName(), Query(alias="format", description="The formats of `viva export`.")] = "json",
    grading: GradingName = None,
) -> Response:
    """Return a graded run as a file, sent while it is written; a Parquet file is complete before the first byte."""
    store = store_of(request)
    places = server_of(request).exports
    found, scores = await to_thread.run_sync(partial(_find_grading, store, run, grading))
    exporter = None if to in KINDS else plugin_exporter(to)
    kind, ending = (exporter.content_type, exporter.extension) if isinstance(exporter, Exporter) else KINDS[to]
    name = _file_name(found) + ending
    await until_sent(request).enter_async_context(places.take(user_of(request)))
    if to == "parquet":
        threads = server_of(request).export_threads
        file = await to_thread.run_sync(partial(_file, store, found, scores, to), limiter=threads)
        return FileAnswer(file, name, kind)

    def write(out: TextStream) -> None:
        export(store, found, scores, to, cast("TextIO", out))
        store.run(found.id)  # it may have been deleted meanwhile

    stream = TextStream(write)
    stream.start()
    chunks = stream.chunks()
    first = await anext(chunks, b"")  # what cannot be exported is refused as usual
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return StreamAnswer(first, chunks, headers, kind)


class StreamAnswer(StreamingResponse):
    """Sends chunks, and closes their source however that ends."""

    def __init__(
        self, first: bytes, chunks: AsyncGenerator[bytes], headers: Mapping[str, str], media_type: str
    ) -> None:
        self._chunks = chunks
        super().__init__(self._all(first), headers=headers, media_type=media_type)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send them."""
        async with aclosing(self._chunks):
            await super().__call__(scope, receive, send)

    async def _all(self, first: bytes) -> AsyncGenerator[bytes]:
        yield first
        try:
            async for chunk in self._chunks:
                yield chunk
        except VivavoceError as error:
            log("error", "export.failed", detail=str(error))
            raise


def _find_grading(store: Store, run: str, grading: str | None) -> tuple[Run, Grading]:
    stored_run = store.run(run)
    return stored_run, store.grading(stored_run.id, grading)


def _file_name(run: Run) -> str:
    return re.sub(r"[^\w.-]", "-", run.id, flags=re.ASCII)[:80].lstrip(".") or "run"


def _file(store: Store, run: Run, grading: Grading, to: str) -> IO[bytes]:
    """Return the file, which nobody else can open.

    Raises:
        UsageError: the run was deleted meanwhile.
        StoreError: the store cannot be read, or there is no room for the file.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="vivavoce-") as folder:
            path = Path(folder) / "export"
            export(store, run, grading, to, path)
            store.run(run.id)
            return path.open("rb")
    except (OSError, UsageError) as error:
        if isinstance(error, UsageError) and not isinstance(error.__cause__, OSError):
            raise
        raise StoreError(f"the file cannot be created: {error}") from error
