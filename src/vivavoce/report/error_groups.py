"""The errors of a graded run, one line for all that say the same: for its page, the terminal, Markdown and JSON."""

from __future__ import annotations

from dataclasses import dataclass

from vivavoce.records.run import AttemptKey, Grading
from vivavoce.records.score import error_text
from vivavoce.report.text import one_line
from vivavoce.store.browse.listing import AlikeErrors
from vivavoce.store.store import Store

_REMEDY = 400
"""Characters of an error at most: the end says what to do."""
_ANSWER = 200
"""Characters of what a system answered, at most."""


@dataclass(frozen=True, slots=True)
class ErrorGroup:
    """Errors of one target that say the same; `key` is the first, `why` one line, `cause` what a filter calls them."""

    key: AttemptKey
    number: int
    why: str
    cause: str

    @property
    def filter(self) -> str:
        """The filter that lets these conversations through, of whichever target."""
        return f"cause:{self.cause}"


@dataclass(frozen=True, slots=True)
class ErrorGroups:
    """The groups, the most frequent first, and how many conversations have another error."""

    shown: list[ErrorGroup]
    more: int


def error_groups(store: Store, grading: Grading, limit: int) -> ErrorGroups:
    """Return up to `limit` groups of errors."""
    found = store.browse.errors_alike(grading.id, limit)
    return ErrorGroups([_group(one) for one in found.groups], found.more)


def _group(one: AlikeErrors) -> ErrorGroup:
    said = one_line(error_text(one.grader, one.failure, one.reason), _REMEDY)
    return ErrorGroup(AttemptKey(one.sample_id, one.target, one.trial), one.number, said + _answered(one), one.cause)


def _answered(one: AlikeErrors) -> str:
    """Return what a system answered instead, where that was no answer to use."""
    failure = one.failure
    if failure is None or failure.evidence is None or failure.kind != "http":
        return ""
    return f", “{one_line(failure.evidence, _ANSWER)}”"
