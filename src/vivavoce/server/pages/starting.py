"""Starting a job from a page: a suite of the served folder, a test of its target, or its graders on a stored run.

The form names a suite and sets limits, as the API does; it never brings code. The suite is shown as it is.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import ValidationError

from vivavoce.errors import UsageError
from vivavoce.safe_text import safe
from vivavoce.server.job_requests import GradeJob, SuiteJob, TestJob
from vivavoce.server.pages.forms import Form, form_key
from vivavoce.server.pages.links import job_page, new_job_page
from vivavoce.server.pages.page import page
from vivavoce.server.pages.route import PageRoute
from vivavoce.server.state import policy_of, server_of, store_of
from vivavoce.server.statuses import INVALID, answered
from vivavoce.server.suite_files import look_at, suite_files
from vivavoce.server.users import needs, user_of

router = APIRouter(route_class=PageRoute, include_in_schema=False)

What = Literal["suite", "test", "grade"]
WHATS: dict[What, str] = {"suite": "Run a suite", "test": "Test one goal", "grade": "Grade a run again"}

OPTIONS = ("trials", "max_samples", "max_concurrent", "max_calls", "max_cost")
"""Options of a run of a suite in the form, besides tags."""

_OF_TEST = ("suite", "goal", "instructions", "persona", "max_turns", "trials", "max_calls", "max_cost")
_OF_GRADING = ("run", "suite", "max_calls", "max_cost")
_REQUESTS: dict[str, type[SuiteJob | TestJob | GradeJob]] = {"suite": SuiteJob, "test": TestJob, "grade": GradeJob}


@router.get("/jobs/new", dependencies=[needs("write")])
async def new(request: Request, what: What = "suite", suite: str = "", grade: str = "") -> Response:
    """Show what can be started, and the text of the chosen suite; nothing runs."""

    def form() -> Response:
        if grade:
            store_of(request).run(grade)
        return _form(request, "grade" if grade else what, {"suite": suite, "run": grade})

    processes = server_of(request).processes
    return await processes.run(request, form)  # a suite and its rows may take long to read


@router.post("/jobs/new")
async def begin(request: Request, form: Form) -> Response:
    """Start the job of a form; sending the same form twice starts one job."""
    policy = policy_of(request)
    fields = {name: value.strip() for name, value in form.items() if value.strip()}
    what = fields.get("what", "suite")
    if what not in _REQUESTS:
        raise UsageError("unknown kind of job")
    processes = server_of(request).processes
    try:
        job_request = _REQUESTS[what].model_validate(_request_fields(what, fields))
        submit = partial(server_of(request).jobs.submit, job_request, fields.get("key"), user_of(request).id)
        record = await processes.run(request, submit)
    except ValidationError as error:
        wrong, status = [_wrong(one) for one in error.errors()], INVALID.status
        return await processes.run(request, partial(_form, request, what, form, wrong, status))
    except UsageError as error:
        wrong, status = [policy.shown(str(problem)) for problem in error.problems], answered(error).status
        return await processes.run(request, partial(_form, request, what, form, wrong, status))
    return RedirectResponse(job_page(record.id), 303)


def _request_fields(what: str, fields: Mapping[str, str]) -> dict[str, Any]:
    """Return the request of a form, in the form of the API."""
    if what == "suite":
        options: dict[str, Any] = {name: fields[name] for name in OPTIONS if name in fields}
        if "tags" in fields:
            options["tags"] = [tag.strip() for tag in fields["tags"].split(",") if tag.strip()]
        return {"suite": fields.get("suite", ""), "options": options}
    return {name: fields[name] for name in (_OF_TEST if what == "test" else _OF_GRADING) if name in fields}


def _wrong(error: Mapping[str, Any]) -> str:
    return f"{error['loc'][-1] if error['loc'] else 'the form'}: {error['msg']}"


def _form(
    request: Request, what: str, fields: Mapping[str, str], wrong: list[str] | None = None, status: int = 200
) -> Response:
    policy = policy_of(request)
    suite = fields.get("suite", "")
    files = suite_files(policy.workspace)
    look = None
    if suite:
        try:
            look = look_at(policy, suite)
        except UsageError as error:
            if not wrong:
                wrong, status = [policy.shown(str(error))], answered(error).status
    run = fields.get("run", "")
    values: dict[str, object] = {
        "section": "jobs",
        "what": what,
        "whats": [(one, word, new_job_page(what=one, suite=suite or None)) for one, word in WHATS.items()],
        "files": [name for name in files if safe(name) == name],
        "suite": suite,
        "look": look,
        "fields": {"run": run, **fields},
        "wrong": [safe(one) for one in wrong or ()],
        "form_key": form_key(request),
        "key": secrets.token_hex(16),
    }
    return page("new_job.html", values, status)
