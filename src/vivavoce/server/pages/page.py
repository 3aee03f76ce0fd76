"""`page`: a template as the answer to a request."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi.responses import HTMLResponse

from vivavoce.report.html.rendering import render_template
from vivavoce.server.users import visitor


def page(name: str, values: Mapping[str, object], status: int = 200) -> HTMLResponse:
    """Return a page from a template; its head shows the user."""
    return HTMLResponse(render_template(name, {**values, "visitor": visitor.get()}), status)
