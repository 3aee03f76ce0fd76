"""`Failure`: what went wrong inside a sample, whose fault it was, and what was seen."""

from __future__ import annotations

import traceback

from pydantic import BaseModel, ConfigDict

from vivavoce.errors import Blame, Fault
from vivavoce.records.redaction import keys_of_environment, without_keys

CANCELLED = "cancelled"
"""The kind of the failure of a conversation that was cancelled; a run that is resumed holds it again."""

EVIDENCE_LIMIT = 4000
"""Characters of evidence that are kept."""


class Failure(BaseModel):
    """One failure as data: `kind` is a word to test, `message` a sentence to read, `evidence` what was received."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    blame: Blame
    kind: str
    message: str
    exception: str | None = None
    evidence: str | None = None

    def __str__(self) -> str:
        return f"{self.blame}: {self.message}"

    def redacted(self) -> Failure:
        """Return it without keys, known ones and what has the shape of one: errors repeat what was sent."""
        cut = keys_of_environment().cut
        left = {
            "message": cut(without_keys(self.message)),
            "evidence": self.evidence and cut(without_keys(self.evidence)),
        }
        return self if left == {"message": self.message, "evidence": self.evidence} else self.model_copy(update=left)


def error_text(grader: str | None, failure: Failure | None, reason: str | None) -> str:
    """Return what an error says, after the name of the grader whose it is; None is the conversation itself."""
    said = str(failure) if failure is not None else reason or "error"
    return said if grader is None else f"{grader}: {said}"


def failure_of(error: BaseException, blame: Blame) -> Failure:
    """Return the record of an exception; a `Fault` says itself whose it is, anything else is `blame`'s."""
    if isinstance(error, Fault):
        cause = error.__cause__
        return Failure(
            blame=error.blame,
            kind=error.kind,
            message=str(error),
            exception=type(cause).__name__ if cause else None,
            evidence=shorten(error.evidence),
        ).redacted()
    message = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    seen = "".join(traceback.format_exception(error))[-EVIDENCE_LIMIT:]
    return Failure(blame=blame, kind="crash", message=message, exception=type(error).__name__, evidence=seen).redacted()


def shorten(text: str | None, limit: int = EVIDENCE_LIMIT) -> str | None:
    """Cut a text to `limit` characters and say how many were left out."""
    if text is None or len(text) <= limit:
        return text
    return f"{text[:limit]}… ({len(text) - limit} more characters)"
