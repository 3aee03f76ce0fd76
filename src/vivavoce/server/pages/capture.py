"""Making a row of a dataset of a conversation from its page: to copy, or to add to a file of the served folder."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from vivavoce.errors import UsageError
from vivavoce.records.run import AttemptKey
from vivavoce.report.text import strict_json
from vivavoce.safe_text import safe
from vivavoce.server.capturing import add_row, captured_row
from vivavoce.server.pages.forms import Form, form_key, index_of
from vivavoce.server.pages.links import sample_page
from vivavoce.server.pages.page import page
from vivavoce.server.pages.route import ProcessPageRoute
from vivavoce.server.state import policy_of
from vivavoce.server.statuses import answered

router = APIRouter(route_class=ProcessPageRoute, include_in_schema=False)

PLACE = "captured.jsonl"
"""The file that the page offers."""


@router.post("/capture")
async def capture(request: Request, form: Form) -> Response:
    """Show the row of a conversation, and add it to a file if the form names one."""
    policy = policy_of(request)
    key = AttemptKey(form.get("sample", ""), form.get("target", ""), index_of(form.get("trial", "1")))
    run = form.get("run", "")
    found = captured_row(request, run, key)
    to, done, wrong, status = form.get("to", "").strip(), "", "", 200
    if to:
        try:
            added = add_row(request, found, to)
            done = f"{'Added to' if added.is_new else 'It already exists:'} {to}, as '{added.id}'."
        except UsageError as error:
            wrong, status = safe(str(error)), answered(error).status
    values: dict[str, object] = {
        "section": "runs",
        "run": run,
        "key": key,
        "row": strict_json(found.row),
        "notes": found.notes(),
        "writes": policy.writes_datasets,
        "to": to or PLACE,
        "done": safe(done),
        "wrong": wrong,
        "back": sample_page(run, key.sample_id, trial=key.trial, target=key.target or None),
        "form_key": form_key(request),
    }
    return page("captured.html", values, status)
