"""Rows of datasets from stored conversations."""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict

from vivavoce.records.run import AttemptKey
from vivavoce.server.api.answers import ERRORS, answer
from vivavoce.server.api.runs import RunName, Trial
from vivavoce.server.api.strict import StrictRoute
from vivavoce.server.capturing import add_row, captured_row
from vivavoce.server.process_route import RequestProcesses
from vivavoce.server.replies import CapturedRow
from vivavoce.server.users import user_of

router = APIRouter(prefix="/api/v1", tags=["runs"], route_class=StrictRoute, responses=ERRORS)


class ToCapture(BaseModel):
    """What to do with the row: `to` is a JSONL file of the served folder, to which it is added.

    `target` is needed if the run has several; `region` is the country whose phone numbers may stand without +.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    target: str | None = None
    to: str | None = None
    region: str | None = None


@router.post("/runs/{run}/samples/{sample:path}/{trial}/row", response_model=CapturedRow)
async def capture(request: Request, run: RunName, sample: str, trial: Trial, body: ToCapture) -> Response:
    """Make a row of a dataset of a conversation, without keys and personal data, and add it to a file if one is named.

    A file is written only by a server that was started with `--write-datasets`.
    """
    processes: RequestProcesses = request.app.state.processes
    key = AttemptKey(sample, body.target or "", trial)
    return await processes.run(user_of(request), partial(_answer_with_row, request, run, key, body))


def _answer_with_row(request: Request, run: str, key: AttemptKey, body: ToCapture) -> Response:
    """Answer with a row; personal data is searched for in all messages, which takes long in long ones."""
    found = captured_row(request, run, key, body.region)
    row = CapturedRow(row=found.row, cut=dict(found.cut), left_out=list(found.left_out))
    if body.to is None:
        return answer(row)
    added = add_row(request, found, body.to)
    return answer(row.model_copy(update={"file": body.to, "id": added.id, "added": added.is_new}))
