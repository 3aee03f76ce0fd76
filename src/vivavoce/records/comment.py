"""`Comment`: what a person remarks on a conversation or a turn; unlike a label, it says nothing of a verdict."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

from vivavoce.records.run import AttemptKey

LONGEST_COMMENT = 4000
"""Characters of a comment."""

CommentText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_COMMENT)]
"""The text of a comment: plain text with line breaks, in which `#t3` refers to turn 3."""


class Comment(BaseModel):
    """A comment of a person; `turn` is None for the whole conversation, times are in seconds since the epoch.

    `resolved_by` and `resolved_at` are None while it is open.
    """

    model_config = ConfigDict(frozen=True)

    id: int
    sample_id: str
    target: str
    trial: int
    turn: int | None = None
    author: str
    text: str
    created_at: float
    resolved_by: str | None = None
    resolved_at: float | None = None

    @property
    def key(self) -> AttemptKey:
        """Which conversation of its run it is about."""
        return AttemptKey(self.sample_id, self.target, self.trial)
