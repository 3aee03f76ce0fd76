"""The templates of the pages: Jinja that escapes whatever is put in, from this package only."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import cast

from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from vivavoce.report.text import one_line, safe
from vivavoce.server.pages import wording
from vivavoce.server.pages.marks import WORDS

HERE = Path(__file__).parents[1]


@cache
def environment() -> Environment:
    """Return the templates; nothing of a request ever names one."""
    found = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    cast("dict[str, object]", found.globals)["words"] = WORDS
    found.filters |= {
        "brief": one_line,
        "clock": wording.clock,
        "day": wording.day,
        "percent": wording.percent,
        "score": wording.score,
        "shown": safe,
        "span": wording.span,
    }
    return found


def page(name: str, values: Mapping[str, object], status: int = 200) -> HTMLResponse:
    """Return a page made of a template; half a surrogate pair, which no page can hold, becomes a question mark."""
    text = environment().get_template(name).render(values)
    return HTMLResponse(text.encode("utf-8", "replace"), status)
