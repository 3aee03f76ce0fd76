"""The jobs of a store: a list, a live view of one job, cancelling a job, and resuming a stopped one."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from vivavoce.errors import UsageError
from vivavoce.records.run import Grading, Run
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.html.run import gates_of, metrics, scale_of
from vivavoce.report.text import day
from vivavoce.server.job import Job
from vivavoce.server.job_record import JobRecord
from vivavoce.server.job_requests import ResumeJob
from vivavoce.server.jobs import DistantJob, Jobs
from vivavoce.server.pages.forms import Form, form_key
from vivavoce.server.pages.links import job_data, job_list, job_page, new_job_page, run_page, webhook_list
from vivavoce.server.pages.live import PLACES, SPEAKERS, conversations
from vivavoce.server.pages.page import page
from vivavoce.server.pages.route import PageRoute
from vivavoce.server.state import server_of, store_of
from vivavoce.server.users import user_of
from vivavoce.store.jobs import JobStatus, Kind
from vivavoce.store.store import Store

router = APIRouter(route_class=PageRoute, include_in_schema=False)

SHOWN = 30
"""Jobs on one page."""

KINDS: dict[Kind, str] = {
    "evaluation": "Evaluation of conversations",
    "suite": "Run of a suite",
    "test": "Test of a goal",
    "grade": "Grading again",
    "resume": "Resumed run",
    "demo": "Demo",
}
STATES: dict[JobStatus, tuple[str, str]] = {
    "waiting": ("skip", "Waiting"),
    "running": ("live", "Running"),
    "finished": ("pass", "Finished"),
    "interrupted": ("error", "Interrupted"),
    "failed": ("error", "Failed"),
}
"""The glyph and the word of each status."""


@dataclass(frozen=True, slots=True)
class Row:
    """A job in a list, or at the head of its page; `resumes` means that it can be resumed."""

    record: JobRecord
    resumes: bool

    @property
    def link(self) -> str:
        """The address of its page."""
        return job_page(self.record.id)

    @property
    def what(self) -> str:
        """What it does."""
        return KINDS[self.record.kind]

    @property
    def status(self) -> tuple[str, str]:
        """The glyph and the word of its status."""
        return STATES[self.record.status]

    @property
    def run_link(self) -> str | None:
        """The address of its run with its scores, once it has one."""
        if self.record.run is None:
            return None
        return run_page(self.record.run, grading=self.record.grading)


@router.get("/jobs")
def jobs(request: Request, after: str | None = None) -> Response:
    """Show the jobs of all servers of the store, newest first."""
    work = server_of(request).jobs
    found = work.list(after, SHOWN + 1)
    rows = [_row(work, record) for record in found[:SHOWN]]
    values = {
        "section": "jobs",
        "days": [(name, list(group)) for name, group in groupby(rows, lambda row: day(row.record.created_at))],
        "busy": any(not row.record.over for row in rows),
        "next_page": job_list(after=found[SHOWN - 1].id) if len(found) > SHOWN else None,
        "first_page": job_list() if after else None,
        "new_page": new_job_page(),
        "webhooks": webhook_list() if user_of(request).may("admin") else None,
        **_writing(request),
    }
    return page("jobs.html", values)


@router.get("/jobs/{job}")
def job(request: Request, job: str) -> Response:
    """Show one job: its current conversations and its results."""
    work = server_of(request).jobs
    found = work.get(job)
    news = found.since(0)
    record = found.record
    shown = conversations(news, record.run, record.grading)
    values = {
        "section": "jobs",
        "row": _row(work, record),
        "seen": news[-1].id if news else 0,
        "held": sum(not one.over for one in shown),
        "conversations": shown,
        "places": PLACES,
        "speakers": dict(SPEAKERS),
        "json_link": job_data(record.id),
        **_scores(request, found),
        **_writing(request),
    }
    return page("job.html", values)


@router.post("/jobs/{job}/cancel")
def cancel(request: Request, job: str, form: Form) -> Response:
    """Stop a job after the conversations in progress; a second request stops these, too."""
    del form
    return RedirectResponse(job_page(server_of(request).jobs.cancel(job).id), 303)


@router.post("/jobs/{job}/resume")
async def resume(request: Request, job: str, form: Form) -> Response:
    """Start a job that resumes another one."""
    del form
    work, user = server_of(request).jobs, user_of(request)

    def submit() -> JobRecord:
        run = work.get(job).record.run
        if run is None:
            raise UsageError(f"job '{job}' has started no run, so there is nothing to resume")
        return work.submit(ResumeJob(resume=run), user=user.id)

    processes = server_of(request).processes
    return RedirectResponse(job_page((await processes.run(request, submit)).id), 303)


def _row(work: Jobs, record: JobRecord) -> Row:
    return Row(record, record.status == "interrupted" and work.is_last(record))


def _scores(request: Request, job: Job | DistantJob) -> dict[str, object]:
    """Return the scores so far; none if nothing is graded yet or the run has been deleted."""
    store = store_of(request)
    stored_run = _find_run(store, job.record)
    if stored_run is None:
        return {"run": None, "metrics": [], "scale": None, "led": job.record.kind == "test", "awaited": []}
    run, grading = stored_run
    summary = server_of(request).live_summary.summary(GradedRun(store, run, grading))
    gates = gates_of(grading)
    scale = scale_of(summary, gates)
    lines = metrics(summary, scale, gates, provisional=not job.record.over)
    led = run.spec.get("driver") == "penelope"
    return {"run": run, "metrics": lines, "scale": scale, "led": led, "awaited": list(grading.fingerprints)}


def _find_run(store: Store, record: JobRecord) -> tuple[Run, Grading] | None:
    if record.run is None or record.grading is None:
        return None
    try:
        return store.run(record.run), store.grading(record.run, record.grading)
    except UsageError:  # somebody has deleted it since
        return None


def _writing(request: Request) -> dict[str, object]:
    """Return the values for forms, and whether the user may see them."""
    return {"form_key": form_key(request), "may_write": user_of(request).may("write")}
