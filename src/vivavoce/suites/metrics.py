"""User-defined metrics in YAML: a name, a prompt, and the kind of score. No Python needed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, StringConstraints, ValidationError, model_validator

from vivavoce.errors import UsageError
from vivavoce.files.file_mentions import check_text
from vivavoce.metrics.config import Scope
from vivavoce.metrics.custom import AnyScoreKind, PromptMetric
from vivavoce.metrics.transcript import Shown
from vivavoce.models.custom import ModelLike
from vivavoce.models.model import Model
from vivavoce.models.names import open_model
from vivavoce.suites.document import Document, read_document
from vivavoce.suites.mistakes import mistakes_in
from vivavoce.suites.part import Address, SettingsOfModel, Spec

_OPTIONS = ("settings", "scope", "window", "tokens", "overlap")
"""Fields that every judged metric has, in the same form."""


class ShownSpec(Spec):
    """Which parts of the conversation the judge sees."""

    policy: bool = True
    tools: bool = True
    retrieved: bool = True


class MetricSpec(Spec):
    """A metric defined by a prompt; `prompt_path` is a file beside this one, `model` the default judge."""

    name: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    description: str = ""
    prompt: str | None = None
    prompt_path: str | None = None
    score: AnyScoreKind
    model: Address | None = None
    settings: SettingsOfModel = Field(default_factory=dict)
    scope: Scope = "conversation"
    window: int = Field(default=5, ge=1)
    shown: ShownSpec = ShownSpec()
    tokens: int = Field(default=100_000, ge=1)
    overlap: int = Field(default=2, ge=0)

    @model_validator(mode="after")
    def _one_prompt(self) -> Self:
        if (self.prompt is None) == (self.prompt_path is None):
            raise ValueError("needs exactly one of prompt and prompt_path")
        return self


def load_metric(
    path: str | Path, model: ModelLike | None = None, *, opening: Callable[[str], Model] = open_model
) -> PromptMetric:
    """Read a metric from a YAML file; `model` replaces the file's own judge, which `opening` opens.

    Raises:
        UsageError: the file does not describe a metric, its prompt cannot be used, or its model cannot be opened; each
            mistake has its place in the file.
    """
    document = read_document(Path(path), kind="metric", keys="name, prompt and score")
    try:
        spec = MetricSpec.model_validate(document.data)
    except ValidationError as error:
        raise UsageError(*mistakes_in(document, error, MetricSpec)) from error
    if model is None and spec.model is not None:
        try:
            model = opening(spec.model)
        except UsageError as error:
            raise UsageError(*document.placed(("model",), error)) from error
    return _metric(document, spec, model)


def _metric(document: Document, spec: MetricSpec, model: ModelLike | None) -> PromptMetric:
    if spec.prompt is not None:
        try:
            check_text(spec.prompt, document.path.parent, "prompt_path")
        except ValueError as error:
            raise UsageError(document.problem(("prompt",), str(error))) from error
    prompt = document.path.parent / spec.prompt_path if spec.prompt_path is not None else spec.prompt
    options: dict[str, Any] = {name: getattr(spec, name) for name in _OPTIONS if name in spec.model_fields_set}
    options["shown"] = Shown(**dict(spec.shown))
    try:
        return PromptMetric(
            model, name=spec.name, prompt=prompt, score=spec.score, description=spec.description, **options
        )
    except UsageError as error:
        at = "prompt" if spec.prompt_path is None else "prompt_path"
        raise UsageError(*document.placed((at,), error)) from error
