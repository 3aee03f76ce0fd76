"""Rendering: Jinja templates of this package, with automatic escaping."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import cast

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from vivavoce.extensions import Page, answers, answers_of
from vivavoce.records.details import dollars
from vivavoce.records.score import conversation_label, to_number
from vivavoce.report import text
from vivavoce.report.details import judged_text, mean_text, range_text, score_number
from vivavoce.report.html.score_notes import WORDS
from vivavoce.report.text import one_line
from vivavoce.report.verdict import net_text
from vivavoce.safe_text import safe

FOLDER = Path(__file__).parent
STATIC = FOLDER / "static"
"""The stylesheets, the scripts and the mark."""


def page_folders() -> list[Path]:
    """Return the folders of plugins that hold templates, and files that pages need."""
    return list(answers("register_page_files"))


def _tabs() -> list[Page]:
    return [Page("Runs", "/"), *answers_of(Page, "page_tabs"), Page("Jobs", "/jobs")]


@cache
def environment() -> Environment:
    """Return the templates; a request can never choose one.

    In them, `alone` means that the page is a file without a server. Turns and trials are those of records;
    the filter `number` gives what a person reads.
    """
    templates = Environment(
        loader=FileSystemLoader([FOLDER / "templates", *(folder / "templates" for folder in page_folders())]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    cast("dict[str, object]", templates.globals).update(
        words=WORDS, alone=False, label_of=conversation_label, tabs=_tabs()
    )
    filters: dict[str, Callable[..., object]] = {
        "brief": one_line,
        "clock": text.clock,
        "date": text.date,
        "day": text.day,
        "dollars": dollars,
        "percent": text.percent,
        "judged": judged_text,
        "net_of_tester": net_text,
        "number": to_number,
        "mean_text": mean_text,
        "range_text": range_text,
        "score": text.score,
        "score_number": score_number,
        "shown": safe,
        "span": text.span,
    }
    cast("dict[str, object]", templates.filters).update(filters)
    return templates


def read_templates() -> None:
    """Read all templates, which takes half a second, before one is asked for; requests are answered in between."""
    for name in environment().list_templates():
        environment().get_template(name)
        time.sleep(0.05)


def render_template(name: str, values: Mapping[str, object]) -> bytes:
    """Return a rendered template as UTF-8; half a surrogate pair becomes a question mark."""
    return environment().get_template(name).render(values).encode("utf-8", "replace")


def pieces(name: str, values: Mapping[str, object]) -> Iterator[str]:
    """Yield a template filled in, piece by piece; values that are iterators are read when they are written."""
    for piece in environment().get_template(name).generate(values):
        yield piece.encode("utf-8", "replace").decode()
