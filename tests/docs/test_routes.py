"""The reference of the HTTP API names every route."""

from __future__ import annotations

import re
from pathlib import Path

from fastapi.routing import APIRoute

from vivavoce.server.app import routers

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "api.md"


def test_the_reference_names_every_route_of_the_api() -> None:
    page = PAGE.read_text("utf-8")
    api = [route for router in routers() if router.prefix == "/api/v1" for route in router.routes]
    routes = [route for route in api if isinstance(route, APIRoute)]
    paths = {route.path.removeprefix("/api/v1").replace(":path", "") for route in routes}
    assert len(paths) > 20
    assert {path for path in paths if not re.search(rf"`[A-Z]+ {re.escape(path)}[`?]", page)} == set()
