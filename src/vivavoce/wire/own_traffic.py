"""How to tell requests of tests from those of users: what a target is sent, and what its spans then show.

A request that a run makes carries W3C's `traceparent` and `baggage`. A system that continues the trace has the id of
it in all its spans, and the id of such a trace begins with fixed bytes; so nothing has to be set up there. A system
that copies baggage into attributes, or whose resource has the attribute `vivavoce.run`, is recognised as well. Where a
target runs in our own process, OpenTelemetry's context carries the same marks, if it is loaded there.
Source: W3C Trace Context, of which level 2 asks for random bytes at the end of an id only; W3C Baggage; OpenTelemetry
says how environment variables carry them.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, cast

from vivavoce.plugins import lazy

RUN = "vivavoce.run"
"""The attribute, and the member of baggage, that holds the id of the run."""

PREFIX = b"viva".hex()
"""The hexadecimal digits that the id of a trace of ours begins with."""

_ATTRIBUTES = (RUN, f"baggage.{RUN}")
_RUN: ContextVar[str] = ContextVar("the run that holds a conversation", default="")


@contextmanager
def of_run(run_id: str) -> Generator[None]:
    """Say of the requests made inside which run makes them."""
    token = _RUN.set(run_id)
    try:
        yield
    finally:
        _RUN.reset(token)


def add_marks(headers: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """Return the headers of a request to a target with those that mark it, unless it has its own."""
    run = _RUN.get()
    if not run:
        return dict(headers)
    names, (trace, span) = {name.lower() for name in headers}, _ids()
    marks = {"traceparent": f"00-{trace}-{span}-01", "baggage": f"{RUN}={run}"}
    return {**headers, **{name: value for name, value in marks.items() if name not in names}}


def marked_environment() -> dict[str, str]:
    """Return the environment variables of a process that mark what it does."""
    return {name.upper(): value for name, value in add_marks().items()}


@contextmanager
def marked_spans() -> Generator[None]:
    """Let the spans that are made inside, in our own process, be marked; nothing is loaded for it."""
    run, trace = _RUN.get(), cast("Any", sys.modules.get("opentelemetry.trace"))
    if not run or trace is None:
        yield
        return
    trace_id, span_id = (int(identifier, 16) for identifier in _ids())
    parent = trace.SpanContext(trace_id, span_id, is_remote=True, trace_flags=trace.TraceFlags(1))
    marks = lazy("opentelemetry.baggage:set_baggage")(
        RUN, run, trace.set_span_in_context(trace.NonRecordingSpan(parent))
    )
    token = lazy("opentelemetry.context:attach")(marks)
    try:
        yield
    finally:
        lazy("opentelemetry.context:detach")(token)


def _ids() -> tuple[str, str]:
    """Return the hexadecimal ids of a trace and of a span."""
    return PREFIX + secrets.token_hex(12), secrets.token_hex(8)


def is_own(trace: str, *attributes: Mapping[str, Any]) -> bool:
    """Return whether a span belongs to a test: by the id of its trace, its attributes or those of its resource."""
    return trace.startswith(PREFIX) or any(attribute.get(key) for attribute in attributes for key in _ATTRIBUTES)
