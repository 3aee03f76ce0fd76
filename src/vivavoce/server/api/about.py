"""About this server: its health, and the metrics that requests can use."""

from __future__ import annotations

import inspect
from importlib.metadata import version

from fastapi import APIRouter, Request, Response

from vivavoce.metrics.factory import metrics as registered
from vivavoce.server.api.answers import ERRORS, answer
from vivavoce.server.api.strict import StrictRoute
from vivavoce.server.replies import Health, MetricLine
from vivavoce.server.state import store_of

router = APIRouter(prefix="/api/v1", tags=["about"], route_class=StrictRoute, responses=ERRORS)


@router.get("/health", response_model=Health)
def health(request: Request) -> Response:
    """Check whether the server and its store work."""
    store_of(request).runs(limit=1)
    return answer(Health(version=version("vivavoce")))


@router.get("/metrics", response_model=list[MetricLine])
def metrics() -> Response:
    """List the metrics that requests can use."""
    return answer([_line(name) for name in registered.names()])


def _line(name: str) -> MetricLine:
    kind = registered.get(name)
    line = inspect.cleandoc(kind.__doc__ or "").partition("\n")[0]
    return MetricLine(name=name, line=line, judged=kind.judged)
