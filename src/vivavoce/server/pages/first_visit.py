"""The first visit: a store without runs explains itself, and starts a demo that ends at a comparison."""

from __future__ import annotations

import secrets
from typing import get_args

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from vivavoce.errors import UsageError
from vivavoce.extensions import first_answer
from vivavoce.server.demo import Release
from vivavoce.server.job_requests import DemoJob
from vivavoce.server.pages.forms import Form, form_key
from vivavoce.server.pages.jobs import Row
from vivavoce.server.pages.links import demo_page, run_page
from vivavoce.server.pages.page import page
from vivavoce.server.pages.route import PageRoute
from vivavoce.server.state import server_of
from vivavoce.server.users import user_of

router = APIRouter(route_class=PageRoute, include_in_schema=False)

AGAIN = 1
"""Seconds until the page of a running demo asks for itself again."""


def first_visit(request: Request) -> Response:
    """Return the page of a store without runs; who may start jobs gets a button for the demo."""
    values: dict[str, object] = {
        "section": "runs",
        "may_write": user_of(request).may("write"),
        "form_key": form_key(request),
        "key": secrets.token_hex(16),
    }
    return page("first_visit.html", values)


@router.post("/demo")
def begin(request: Request, form: Form) -> Response:
    """Start the demo, a job for each release of the bot; sending the same form twice starts it once."""
    key = form.get("key", "")
    if not key:
        raise UsageError("this form has no key; reload the first page and submit the form again")
    jobs = server_of(request).jobs
    user = user_of(request).id
    older, newer = (
        jobs.submit(DemoJob(release=release), f"demo-{key}-{release}", user).id for release in get_args(Release)
    )
    return RedirectResponse(demo_page(older, newer), 303)


@router.get("/demo/{older}/{newer}")
def follow(request: Request, older: str, newer: str) -> Response:
    """Show how far the demo is; once both runs are finished, lead to their comparison."""
    jobs = server_of(request).jobs
    records = [jobs.get(older).record, jobs.get(newer).record]
    if all(record.status == "finished" for record in records):
        first, second = (record.run or "" for record in records)
        comparison = first_answer("comparison_link", a=first, b=second, target=None)
        return RedirectResponse(comparison or run_page(second), 303)
    going = any(not record.over for record in records)
    values: dict[str, object] = {
        "section": "runs",
        "rows": [(f"Release {number}", Row(record, resumes=False)) for number, record in enumerate(records, 1)],
        "going": going,
        "here": demo_page(older, newer),
    }
    shown = page("demo.html", values)
    if going:
        shown.headers["refresh"] = str(AGAIN)
    return shown
