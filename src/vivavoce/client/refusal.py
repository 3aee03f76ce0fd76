"""A server's answer that it did not do what was asked, as the error that it stands for."""

from __future__ import annotations

import json
from typing import Any, cast

from vivavoce.errors import NotFound, UsageError


def refusal_of(status: int | None, body: str | None) -> UsageError | None:
    """Return the server's error about a request, None where the error is not in the request."""
    if status is None or not 400 <= status < 500:
        return None
    try:
        parsed: Any = json.loads(body or "")
    except ValueError:
        parsed = None
    fields = cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else {}
    detail = fields.get("detail")
    if fields.get("code") == "not_found" and "what" in fields:
        return NotFound(str(fields["what"]), str(fields.get("name")), message=str(detail))
    return UsageError(str(detail or (body or "").strip() or f"the server refused it ({status})"))
