"""Metrics in requests: registered ones, with options that are data, never a file or an address."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, cast

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from vivavoce.errors import UsageError
from vivavoce.grading.extractors import extractors
from vivavoce.metrics.config import Scope
from vivavoce.metrics.factory import LOCAL, Choice, named_metric, reaches_out
from vivavoce.server.request_settings import check_setting, check_settings
from vivavoce.suites.part import SettingsOfModel


def _check_temperature(value: object) -> object:
    check_setting("temperature", value)
    return value


class RequestedMetric(BaseModel):
    """A metric by name with options, with the keys of a grader of a suite; `name` is the name of its scores."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    metric: str
    name: str | None = Field(default=None, min_length=1, max_length=200)
    threshold: float | None = Field(default=None, allow_inf_nan=False)
    scope: Scope | None = None
    config: dict[str, Any] = Field(default_factory=dict)
    extractor: str | None = None
    extractor_config: dict[str, Any] = Field(default_factory=dict)
    temperature: Annotated[float | None, BeforeValidator(_check_temperature)] = Field(default=0.0, allow_inf_nan=False)
    settings: Annotated[SettingsOfModel, AfterValidator(check_settings)] = Field(default_factory=dict)


Metrics = Annotated[list[str | RequestedMetric], Field(min_length=1, max_length=100)]


def check_metrics(metrics: Sequence[str | RequestedMetric]) -> None:
    """Check that metrics are registered ones: a request never names a file.

    Raises:
        UsageError: one is not, or an option names a file or an address.
    """
    for one in metrics:
        named_metric(one if isinstance(one, str) else one.metric)
        if isinstance(one, RequestedMetric):
            _check_options(one)


def as_named(metrics: Sequence[str | RequestedMetric]) -> list[str | Choice]:
    """Return metrics as names and mappings."""
    return [one if isinstance(one, str) else cast("Choice", one.model_dump(exclude_unset=True)) for one in metrics]


def _check_options(one: RequestedMetric) -> None:
    if one.extractor is not None:
        extractors.get(one.extractor)
    option = reaches_out(one.config)
    if option == "prompt_path":
        raise UsageError(f"metric '{one.metric}': a request cannot name a file; send the prompt itself")
    if option == "embedder":
        raise UsageError(f"metric '{one.metric}': a request can use only the embedder '{LOCAL}'")
