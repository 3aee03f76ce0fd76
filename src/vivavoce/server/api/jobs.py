"""Jobs: background work, with its events as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from functools import partial
from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Body, Header, HTTPException, Query, Request, Response
from sse_starlette import EventSourceResponse

from vivavoce.server.api.answers import ERRORS, answer
from vivavoce.server.api.strict import StrictRoute
from vivavoce.server.job_record import EventFrame, JobRecord
from vivavoce.server.job_requests import JobRequest
from vivavoce.server.replies import JobPage, Problem
from vivavoce.server.state import server_of
from vivavoce.server.traffic import until_sent
from vivavoce.server.users import user_of

router = APIRouter(prefix="/api/v1", tags=["jobs"], route_class=StrictRoute, responses=ERRORS)

PING = 15
"""Seconds of silence after which a stream sends a keep-alive."""

FAREWELL = 60
"""Seconds that a stream has to report the end of its job when the server stops."""

PART_BYTES = 2**16
"""Bytes of events that are sent at a time, at least."""

_MORE = {409: {"model": Problem, "description": "The key was used for another request."}, 429: {"model": Problem}}


@router.post("/jobs", status_code=202, response_model=JobRecord, responses={**ERRORS, **_MORE})
async def submit(
    request: Request,
    body: Annotated[JobRequest, Body()],
    idempotency_key: Annotated[
        str | None, Header(min_length=1, max_length=200, description="The same key never starts a second job.")
    ] = None,
) -> Response:
    """Start a job; `Location` is its address."""
    processes = server_of(request).processes
    submit = partial(server_of(request).jobs.submit, body, idempotency_key, user_of(request).id)
    record = await processes.run(request, submit)
    return answer(record, 202, {"location": f"/api/v1/jobs/{record.id}"})


@router.get("/jobs", response_model=JobPage)
def jobs(request: Request, after: str | None = None, limit: Annotated[int, Query(ge=1, le=500)] = 50) -> Response:
    """List jobs, newest first."""
    found = server_of(request).jobs.list(after, limit + 1)
    following = found[limit - 1].id if len(found) > limit else None
    return answer(JobPage(jobs=found[:limit], next=following))


@router.get("/jobs/{job}", response_model=JobRecord)
def job(request: Request, job: str) -> Response:
    """Return a job."""
    return answer(server_of(request).jobs.get(job).record)


@router.delete("/jobs/{job}", status_code=202, response_model=JobRecord)
def cancel(request: Request, job: str) -> Response:
    """Stop a job after the conversations in progress; a second request stops these, too."""
    return answer(server_of(request).jobs.cancel(job), 202)


@router.get(
    "/jobs/{job}/events",
    response_class=EventSourceResponse,
    responses={200: {"content": {"text/event-stream": {}}, "description": "Each `data` is a `JobEvent`."}},
)
async def events(
    request: Request,
    job: str,
    after: Annotated[
        int, Query(ge=0, le=2**53, description="The same as Last-Event-ID, for clients that cannot send headers.")
    ] = 0,
    last_event_id: Annotated[
        str | None, Header(description="The last event that the client has; later events follow.")
    ] = (None),
) -> Response:
    """Stream the past and future events of a job until it is over."""
    last = last_event_id or ""
    seen = int(last) if last.isascii() and last.isdigit() and len(last) < 16 else after
    user, streams = user_of(request), server_of(request).streams
    if not streams.is_free(user):
        why = f"{user.name} follows {streams.used_by(user)} jobs at a time; try again when one of these streams is over"
        raise HTTPException(429, why, {"retry-after": "10"})
    await until_sent(request).enter_async_context(streams.take(user))
    await to_thread.run_sync(server_of(request).jobs.get, job)
    replays = server_of(request).replays
    stream = _stream(server_of(request).jobs.follow(job, seen, lambda: replays.take(user)))
    return EventSourceResponse(stream, ping=PING, shutdown_grace_period=FAREWELL, headers={"x-accel-buffering": "no"})


async def _stream(events: AsyncGenerator[list[EventFrame]]) -> AsyncIterator[bytes]:
    """Yield events in parts, between which others have their turn."""
    async with aclosing(events):
        async for frames in events:
            part: list[bytes] = []
            size = 0
            for frame in frames:
                part.append(frame.data)
                size += len(frame.data)
                if size >= PART_BYTES:
                    yield b"".join(part)
                    part, size = [], 0
                    await asyncio.sleep(0)
            if part:
                yield b"".join(part)
