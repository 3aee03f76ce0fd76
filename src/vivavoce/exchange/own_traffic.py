"""How requests of tests are told from those of users: what a target is sent, and what its spans then show.

A request that a run makes carries W3C's `traceparent` and `baggage`. A system that continues the trace has the id of
it in all its spans, and the id of such a trace begins with fixed bytes; so nothing has to be set up there. A system
that copies baggage into attributes, or whose resource has the attribute `vivavoce.run`, is recognised as well.
Source: W3C Trace Context, of which level 2 asks for random bytes at the end of an id only; W3C Baggage.
"""

from __future__ import annotations

import secrets
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

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


def marked(headers: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """Return the headers of a request to a target with those that mark it, unless it has its own."""
    run = _RUN.get()
    if not run:
        return dict(headers)
    names = {name.lower() for name in headers}
    marks = {
        "traceparent": f"00-{PREFIX}{secrets.token_hex(12)}-{secrets.token_hex(8)}-01",
        "baggage": f"{RUN}={run}",
    }
    return {**headers, **{name: value for name, value in marks.items() if name not in names}}


def is_own(trace: str, *attributes: Mapping[str, Any]) -> bool:
    """Return whether a span belongs to a test: by the id of its trace, its attributes or those of its resource."""
    return trace.startswith(PREFIX) or any(one.get(key) for one in attributes for key in _ATTRIBUTES)
