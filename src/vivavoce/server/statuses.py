"""The HTTP status and the code of each error, on every route and page."""

from __future__ import annotations

from http import HTTPStatus
from typing import NamedTuple

from vivavoce.errors import NotFound, StoreError, VivavoceError
from vivavoce.server.jobs import OtherBody, TooManyJobs
from vivavoce.server.pages.forms import ForeignForm
from vivavoce.server.turns import CLIENT_GONE
from vivavoce.store.access import NotYours
from vivavoce.store.runs.claim import Claimed


class Answered(NamedTuple):
    """The answer to an error: `code` is one word that programs can test, `wait` the seconds until a retry."""

    status: int
    code: str
    wait: int | None = None


INVALID = Answered(422, "invalid")
"""The answer to every other error of a request."""

_ANSWERS: dict[type[VivavoceError], Answered] = {
    NotFound: Answered(404, "not_found"),
    ForeignForm: Answered(403, "foreign_form"),
    NotYours: Answered(403, "forbidden"),
    OtherBody: Answered(409, "key_reused"),
    Claimed: Answered(409, "being_worked_on"),
    TooManyJobs: Answered(429, "too_many_jobs", 30),
    StoreError: Answered(503, "store_unavailable", 5),
}


_CODES = {INVALID.status: INVALID.code, CLIENT_GONE: "client_gone"}
"""The codes of statuses that have another name in HTTP, or none."""


def answered(error: Exception) -> Answered:
    """Return the answer to an error."""
    return next((answer for kind, answer in _ANSWERS.items() if isinstance(error, kind)), INVALID)


def code_of(status: int) -> str:
    """Return the code of an error that has only a status, such as `method_not_allowed` for 405."""
    return _CODES.get(status) or HTTPStatus(status).name.lower()
