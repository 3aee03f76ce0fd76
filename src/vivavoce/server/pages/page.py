"""`page`: a template as the answer to a request."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi.responses import HTMLResponse

from vivavoce.report.html.rendering import rendered


def page(name: str, values: Mapping[str, object], status: int = 200) -> HTMLResponse:
    """Return a page made of a template."""
    return HTMLResponse(rendered(name, values), status)
