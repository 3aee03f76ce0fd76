"""`SessionMark`: which session of a conversation a message belongs to, and whose it is.

A conversation of several sessions is one list of messages. Each message of a user has the mark of its session, as has
what is said in a session before its user says something; so a part of the conversation still says which one it is of.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, JsonValue


class SessionMark(BaseModel, frozen=True):
    """A session by its number, which counts from 1 as people do, and the name of its user where there is one."""

    model_config = ConfigDict(extra="forbid")

    number: int = Field(ge=1, strict=True)
    user: str | None = None

    @property
    def label(self) -> str:
        """What people read: `session 2 · ana`."""
        return f"session {self.number}" if self.user is None else f"session {self.number} · {self.user}"


MarkOrOther = Annotated[SessionMark | JsonValue, Field(union_mode="left_to_right")]
"""A mark, or what a message of somebody else has under that name."""
