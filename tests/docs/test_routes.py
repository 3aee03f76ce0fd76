"""The guides name every route of the API."""

from __future__ import annotations

import re
from pathlib import Path

from fastapi.routing import APIRoute

from vivavoce.server.app import routers

GUIDES = Path(__file__).parents[2] / "docs" / "guides"


def test_the_guides_to_the_server_and_to_labels_name_every_route_of_the_api() -> None:
    told = "".join((GUIDES / name).read_text("utf-8") for name in ("server.md", "labels.md", "together.md"))
    api = [route for router in routers() if router.prefix == "/api/v1" for route in router.routes]
    routes = [route for route in api if isinstance(route, APIRoute)]
    paths = {route.path.removeprefix("/api/v1").replace(":path", "") for route in routes}
    assert len(paths) > 20
    assert {path for path in paths if not re.search(rf"`[A-Z]+ {re.escape(path)}[`?]", told)} == set()
