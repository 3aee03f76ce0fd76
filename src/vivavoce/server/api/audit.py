"""The audit log, for administrators."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from vivavoce.server.api.answers import ERRORS, answer
from vivavoce.server.api.runs import After, Limit
from vivavoce.server.api.strict import StrictRoute
from vivavoce.server.state import store_of
from vivavoce.server.users import needs
from vivavoce.store.audit import AuditPage

router = APIRouter(prefix="/api/v1", tags=["audit"], route_class=StrictRoute, responses=ERRORS)


@router.get("/audit", response_model=AuditPage, dependencies=[needs("admin")])
def audit(request: Request, after: After = None, limit: Limit = 50) -> Response:
    """List who changed what, newest first: labels, deletions and tokens. Requires the role admin."""
    return answer(store_of(request).audit.entries(after, limit))
