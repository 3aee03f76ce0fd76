"""`MetricResult`: a score under the names of the design document that metrics come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from pydantic import Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from vivavoce.records.score import ERROR as ERROR
from vivavoce.records.score import Evidence as Evidence
from vivavoce.records.score import Failure, Raw, Score, score_fields, with_passed

Prompt = Callable[[], str]


@dataclass(frozen=True, slots=True)
class About:
    """What `details` holds besides the score: the kind of score and its subject; ignored when results are compared."""

    score_type: str | None = field(default=None, compare=False)
    length: int | None = field(default=None, compare=False)
    goal: str | None = field(default=None, compare=False)
    exception: str | None = field(default=None, compare=False)
    prompt: Prompt | None = field(default=None, compare=False)

    def __reduce__(self) -> tuple[type[About], tuple[Any, ...]]:
        """Return the parts of a copy for another process: its prompt is text, for nothing there can render it."""
        prompt = None if self.prompt is None else partial(str, self.prompt())
        return About, (self.score_type, self.length, self.goal, self.exception, prompt)


class Details(dict[str, Any]):
    """The details of a result; the prompt is rendered when it is read, and never stored."""

    def __init__(self, values: Mapping[str, Any], prompt: Prompt | None = None) -> None:
        super().__init__(values)
        self.prompt = prompt

    def __missing__(self, key: str) -> Any:
        """Return the prompt."""
        if key == "prompt" and self.prompt is not None:
            return self.prompt()
        raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or (key == "prompt" and self.prompt is not None)

    def __reduce__(self) -> tuple[type[Details], tuple[dict[str, Any], Prompt | None]]:
        """Return the parts of a copy for another process, as `About` does."""
        return Details, (dict(self), None if self.prompt is None else partial(str, self.prompt()))

    def get(self, key: str, default: Any = None, /) -> Any:
        """Return a detail, or the default."""
        try:
            return self[key]
        except KeyError:
            return default


class MetricResult(Score):
    """The result of a metric for one conversation: a `Score` that also has the design document's names.

    `score` is the raw score, `"error"` where measuring failed, None where the metric does not apply. `details` has
    `score`, `score_type`, `is_successful`, `confidence`, `reasoning`, `evidence` as texts, `missing_criteria`,
    `conversation_length`, `goal`, on error `error` and `exception_type`, and what the metric adds. A result made of
    `score` and `details` alone takes its typed fields from them, so that a user-defined metric may return that.
    """

    about: SkipJsonSchema[About] = Field(default=About(), exclude=True, repr=False)

    def __init__(self, *, score: Raw | None = None, details: Mapping[str, Any] | None = None, **typed: Any) -> None:
        if score is not None:
            typed["score"] = score
        if details is not None:
            typed["details"] = details
        super().__init__(**typed)

    @model_validator(mode="before")
    @classmethod
    def _decide(cls, data: Any) -> Any:
        """Read the design document's names; the metric decides from a raw score whether it passes."""
        if not isinstance(data, Mapping):
            return data
        fields = cast("Mapping[str, Any]", data)
        typed, details = score_fields(fields), cast("Mapping[str, Any]", fields.get("details") or {})
        if "score_type" in details:
            typed.setdefault("about", About(score_type=details["score_type"]))
        return typed if typed.get("raw") is not None else with_passed(typed)

    @property
    def score(self) -> Raw | None:
        """The score in the metric's own terms; `"error"` where measuring failed."""
        return ERROR if self.state == "error" else self.raw

    @property
    def reasoning(self) -> str | None:
        """Why the score is what it is."""
        return self.reason

    @property
    def error(self) -> Failure | None:
        """What went wrong, where measuring failed."""
        return self.failure

    @property
    def details(self) -> Details:
        """The result under the design document's names, with what this metric adds."""
        about = self.about
        values: dict[str, Any] = {
            "score": self.score,
            "score_type": about.score_type or _kind(self.raw),
            "is_successful": False if self.state == "error" else self.passed,
            "confidence": self.confidence,
            "reasoning": self.reason,
            "evidence": list(dict.fromkeys(quote.text for quote in self.evidence)),
        }
        criteria = [finding for finding in self.findings if finding.kind in _CRITERIA]
        if criteria:
            values["missing_criteria"] = [finding.what for finding in criteria if finding.state == "fail"]
        if about.length is not None:
            values["conversation_length"] = about.length
        if about.goal is not None:
            values["goal"] = about.goal
        if self.failure is not None:
            message = self.failure.message
            values |= {"confidence": 0.0, "reasoning": f"Evaluation failed: {message}", "missing_criteria": []}
            values |= {"error": message, "exception_type": about.exception or self.failure.exception}
        return Details({**values, **self.extra}, about.prompt)


_CRITERIA = ("criterion", "prohibition")


def _kind(raw: Raw | None) -> str:
    return "binary" if isinstance(raw, bool) else "categorical" if isinstance(raw, str) else "numeric"
