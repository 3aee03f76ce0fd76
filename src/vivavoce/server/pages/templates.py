"""The templates of the pages: Jinja that escapes whatever is put in, from this package only."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

HERE = Path(__file__).parents[1]


@cache
def environment() -> Environment:
    """Return the templates; nothing of a request ever names one."""
    return Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def page(name: str, values: Mapping[str, object], status: int = 200) -> HTMLResponse:
    """Return a page made of a template; half a surrogate pair, which no page can hold, becomes a question mark."""
    text = environment().get_template(name).render(values)
    return HTMLResponse(text.encode("utf-8", "replace"), status)
