"""Every route of the API refuses a parameter that it does not have."""

from __future__ import annotations

import pytest
from fastapi.routing import APIRoute

from vivavoce.server.api.strict import StrictRoute
from vivavoce.server.app import routers

from ..live import get, send

ROUTES = [route for router in routers() if router.prefix == "/api/v1" for route in router.routes]


@pytest.mark.parametrize("route", ROUTES, ids=lambda one: f"{'/'.join(one.methods)} {one.path}")
def test_every_route_is_strict(route: APIRoute) -> None:
    assert isinstance(route, StrictRoute)


@pytest.mark.parametrize(
    "path", ["health", "metrics", "audit", "comparisons?a=latest&b=latest&threshold=0.7", "runs/latest"]
)
def test_an_unknown_parameter_is_refused_by_its_name(server: str, path: str) -> None:
    mark = "&" if "?" in path else "?"
    reply = get(f"{server}/api/v1/{path}{mark}wrong=1")
    assert (reply.status, "no parameter" in reply.json()["detail"]) == (422, True)


def test_nothing_is_deleted_with_an_unknown_parameter(server: str) -> None:
    run = get(f"{server}/api/v1/runs/latest").json()["run"]["id"]
    assert send("DELETE", f"{server}/api/v1/runs/{run}?dry_run=true").status == 422
    assert get(f"{server}/api/v1/runs/{run}").status == 200
