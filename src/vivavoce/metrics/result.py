"""`MetricResult`: what a metric says about one conversation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from vivavoce.records.failure import Failure
from vivavoce.records.score import State
from vivavoce.records.usage import Usage

ERROR = "error"
"""The score of something that could not be measured, as a word that is no number and no category."""


class Evidence(BaseModel):
    """Something a verdict rests on: the words of a message, or a tool call by its reference, such as `c2`.

    `turn` counts from 0; None stands for what precedes the first user message, and for evidence that was not found.
    Evidence is `verified` when it occurs in the conversation.
    """

    model_config = ConfigDict(frozen=True)

    text: str
    kind: Literal["quote", "call"] = "quote"
    turn: int | None = None
    verified: bool = False


class Details(dict[str, Any]):
    """The details of a result; the prompt is put together when it is asked for, and never stored."""

    def __init__(self, values: Mapping[str, Any], prompt: Callable[[], str] | None = None) -> None:
        super().__init__(values)
        self.prompt = prompt

    def __missing__(self, key: str) -> Any:
        """Return the prompt."""
        if key == "prompt" and self.prompt is not None:
            return self.prompt()
        raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or (key == "prompt" and self.prompt is not None)

    def __reduce__(self) -> tuple[type[Details], tuple[dict[str, Any], Callable[[], str] | None]]:
        """Return what a copy for another process is made of: its prompt is text, for nothing there can render it."""
        return Details, (dict(self), None if self.prompt is None else partial(str, self.prompt()))

    def get(self, key: str, default: Any = None, /) -> Any:
        """Return a detail, or the default."""
        try:
            return self[key]
        except KeyError:
            return default


class MetricResult(BaseModel):
    """The score of one metric for one conversation, with its reasons and its state.

    `score` is a number, a category or a yes or no; `"error"` where measuring failed, None where the metric does not
    apply. `value` is the same score from 0, worst, to 1, best, where its range allows that. `details` repeats what is
    typed here under the names of the field's older interfaces (`is_successful`, `reasoning`, …), and adds the metric's
    own. A result made of `score` and `details` alone takes what is typed from them.
    """

    model_config = ConfigDict(frozen=True)

    score: bool | float | str | None = None
    details: dict[str, Any] = Field(default_factory=dict[str, Any])
    name: str = ""
    state: State = "scored"
    value: float | None = None
    passed: bool | None = None
    confidence: float | None = None
    reasoning: str | None = None
    evidence: tuple[Evidence, ...] = ()
    error: Failure | None = None
    usage: Usage | None = None
    fingerprint: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_details(cls, data: Any) -> Any:
        typed = dict(cast("Mapping[str, Any]", data)) if isinstance(data, Mapping) else {}
        details = typed.get("details")
        if not details:
            return cast("Any", data)
        if typed.get("score") == ERROR and "state" not in typed:
            typed["state"] = "error"
            said = str(details.get("error") or details.get("reasoning") or "the metric gave no reason")
            kind = details.get("exception_type")
            typed.setdefault("error", Failure(blame="judge", kind="crash", message=said, exception=kind))
        typed.setdefault("passed", None if typed.get("state") == "error" else details.get("is_successful"))
        for name in ("confidence", "reasoning"):
            typed.setdefault(name, details.get(name))
        if "evidence" not in typed:
            given: list[Any] = details.get("evidence") or []
            typed["evidence"] = [{"text": one} if isinstance(one, str) else one for one in given]
        return typed

    @field_validator("details", mode="wrap")
    @classmethod
    def _as_they_are(cls, value: Any, handler: Callable[[Any], Any]) -> Any:
        return value if isinstance(value, Details) else handler(value)

    @field_validator("score", mode="before")
    @classmethod
    def _yes_or_no_or_number(cls, value: Any) -> Any:
        return value if isinstance(value, bool | float | str) else float(value) if isinstance(value, int) else value

    def model_post_init(self, context: Any, /) -> None:
        """Refuse a state that contradicts the score, and a score that is no number."""
        if isinstance(self.score, float) and not math.isfinite(self.score):
            raise ValueError(f"a score is a finite number, got {self.score}")
        if (self.state == "scored") != (self.score is not None and self.score != ERROR):
            raise ValueError(f"{self.state} goes with no score such as {self.score!r}")
