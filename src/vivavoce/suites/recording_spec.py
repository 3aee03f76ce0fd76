"""What a suite says about a recording: that it answers the tools, and that conversations are compared with it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from vivavoce.suites.part import Spec


class RecordingSpec(Spec):
    """A recording, as viva export writes it: it answers tools of targets, and conversations are compared with it.

    `live` names the tools that are answered by their handlers for real, and the targets that call tools of their own.
    """

    path: str = Field(min_length=1)
    live: list[str] = Field(default_factory=list[str])

    @model_validator(mode="before")
    @classmethod
    def _path_alone(cls, value: Any) -> Any:
        return {"path": value} if isinstance(value, str) else value


class RecordingGraderSpec(Spec):
    """Compares conversations with those of a recording, turn by turn; it needs no judge."""

    kind: Literal["recording"]
    path: str = Field(min_length=1)
    display_name: str | None = None
