"""The names that the design document of metrics gives to the fields of a score, and the fields that they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from vivavoce.records.failure import Failure

ERROR = "error"
"""What `score` is where nothing could be measured: a word, neither a number nor a category."""

_OLDER = {"score": "raw", "reasoning": "reason", "error": "failure", "evidence": "other_evidence"}
_REPEATED = frozenset(
    ("score", "score_type", "is_successful", "confidence", "reasoning", "evidence", "error", "exception_type")
)
"""Details that a score holds elsewhere."""


def score_fields(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a score from those of the design document, where they are not given as such."""
    typed = {_OLDER.get(name, name): value for name, value in data.items() if name != "details"}
    details = cast("Mapping[str, Any]", data.get("details") or {})
    if typed.get("raw") == ERROR:
        if typed.setdefault("state", "error") != "error":
            raise ValueError(f"the score 'error' has state 'error'; got {typed['state']}")
        typed["raw"] = None
        if typed.get("failure") is None:
            message = str(details.get("error") or details.get("reasoning") or "the metric gave no reason")
            kind = details.get("exception_type")
            typed["failure"] = Failure(blame="judge", kind="crash", message=message, exception=kind)
    elif details.get("is_successful") is not None and typed.get("raw") is not None:
        typed.setdefault("passed", details["is_successful"])
    for older, name in (("confidence", "confidence"), ("reasoning", "reason")):
        if details.get(older) is not None:
            typed.setdefault(name, details[older])
    if "other_evidence" not in typed and details.get("evidence"):
        typed["other_evidence"] = [{"text": one} if isinstance(one, str) else one for one in details["evidence"]]
    extra = {name: value for name, value in details.items() if name not in _REPEATED}
    if extra:
        typed["extra"] = {**extra, **typed.get("extra", {})}
    return typed
