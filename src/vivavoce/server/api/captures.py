"""Rows of datasets from stored conversations; personal data is searched for in all messages, which may take long."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict

from vivavoce.records.run import AttemptKey
from vivavoce.server.api.answers import ERRORS, answer
from vivavoce.server.api.runs import RunName, Trial
from vivavoce.server.capturing import add_row, captured_row
from vivavoce.server.process_route import ProcessRoute
from vivavoce.server.replies import CapturedRow

router = APIRouter(prefix="/api/v1", tags=["runs"], route_class=ProcessRoute, responses=ERRORS)


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
    found = captured_row(request, run, AttemptKey(sample, body.target or "", trial), body.region)
    row = CapturedRow(row=found.row, cut=dict(found.cut), left_out=list(found.left_out))
    if body.to is None:
        return answer(row)
    added = add_row(request, found, body.to)
    return answer(row.model_copy(update={"file": body.to, "id": added.id, "added": added.is_new}))
