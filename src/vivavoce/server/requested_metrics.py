"""What a request may name and set: metrics with options that are data, settings of judges, and graders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, cast

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from vivavoce.errors import UsageError, did_you_mean
from vivavoce.grading.extractors import extractors
from vivavoce.metrics.config import Scope
from vivavoce.metrics.factory import LOCAL, Choice, named_metric, reaches_out
from vivavoce.records.run import Grading
from vivavoce.report.graded_run import require_grader
from vivavoce.store.browse.filter import NUMBERS, Compares, Term
from vivavoce.suites.document import SettingsOfModel

MAX_STOPS = 16
"""Texts that a request may name at which an answer stops."""

MAX_STOP_CHARS = 200
"""Characters of each."""

_SHOWN_CHARS = 40


@dataclass(frozen=True, slots=True)
class NumberSetting:
    """A number from `least` to `most`."""

    least: float
    most: float

    @property
    def expected(self) -> str:
        """The values that are allowed, in words."""
        return f"a number from {self.least:,g} to {self.most:,g}"

    def allows(self, value: object) -> bool:
        """Return whether a value is one of them: NaN is not."""
        return isinstance(value, int | float) and not isinstance(value, bool) and self.least <= value <= self.most


@dataclass(frozen=True, slots=True)
class CountSetting:
    """A whole number from `least` to `most`."""

    least: int
    most: int

    @property
    def expected(self) -> str:
        """The values that are allowed, in words."""
        return f"a whole number from {self.least:,} to {self.most:,}"

    def allows(self, value: object) -> bool:
        """Return whether a value is one of them."""
        return isinstance(value, int) and not isinstance(value, bool) and self.least <= value <= self.most


@dataclass(frozen=True, slots=True)
class WordSetting:
    """One of several words."""

    words: tuple[str, ...]

    @property
    def expected(self) -> str:
        """The values that are allowed, in words."""
        return f"one of {', '.join(self.words)}"

    def allows(self, value: object) -> bool:
        """Return whether a value is one of them."""
        return isinstance(value, str) and value in self.words


@dataclass(frozen=True, slots=True)
class TextsSetting:
    """A text, or a list of a few."""

    most: int
    max_chars: int

    @property
    def expected(self) -> str:
        """The values that are allowed, in words."""
        return f"a text of 1 to {self.max_chars} characters, or a list of 1 to {self.most} of them"

    def allows(self, value: object) -> bool:
        """Return whether a value is one of them."""
        texts = cast("list[object]", value) if isinstance(value, list) else [value]
        return 1 <= len(texts) <= self.most and all(
            isinstance(text, str) and 1 <= len(text) <= self.max_chars for text in texts
        )


_TOKENS = CountSetting(1, 1_000_000)
_PENALTY = NumberSetting(-2, 2)

SETTINGS: Mapping[str, NumberSetting | CountSetting | WordSetting | TextsSetting] = {
    "temperature": NumberSetting(0, 2),
    "top_p": NumberSetting(0, 1),
    "top_k": CountSetting(-1, 1_000_000),
    "min_p": NumberSetting(0, 1),
    "max_tokens": _TOKENS,
    "max_completion_tokens": _TOKENS,
    "seed": CountSetting(-(2**63), 2**63 - 1),
    "stop": TextsSetting(MAX_STOPS, MAX_STOP_CHARS),
    "reasoning_effort": WordSetting(("none", "minimal", "low", "medium", "high", "xhigh", "max")),
    "verbosity": WordSetting(("low", "medium", "high")),
    "frequency_penalty": _PENALTY,
    "presence_penalty": _PENALTY,
}
"""What a request may set of a judge; anything else could choose another model, address, header or price.

Each may also be null, which a service takes for its own default.
"""


def check_setting(name: str, value: object) -> None:
    """Check that a request may set something of a judge to a value.

    Raises:
        ValueError: it may not.
    """
    if name not in SETTINGS:
        raise ValueError(f"'{_cut(name)}' cannot be set in a request{did_you_mean(name, SETTINGS)}")
    if value is not None and not SETTINGS[name].allows(value):
        raise ValueError(f"'{name}' needs {SETTINGS[name].expected}, got {_setting_text(value)}")


def check_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings of a judge unchanged.

    Raises:
        ValueError: one of them cannot be set in a request, or not to this value.
    """
    for name, value in settings.items():
        check_setting(name, value)
    return settings


def _setting_text(value: object) -> str:
    if isinstance(value, str):
        return f"'{_cut(value)}'"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, int):
        return str(value) if value.bit_length() < 100 else "a number with too many digits"
    if isinstance(value, list):
        return f"a list of {len(cast('list[object]', value)):,}"
    return f"a {type(value).__name__}"


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"


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
    for metric in metrics:
        named_metric(metric if isinstance(metric, str) else metric.metric)
        if isinstance(metric, RequestedMetric):
            _check_options(metric)


def as_named(metrics: Sequence[str | RequestedMetric]) -> list[str | Choice]:
    """Return metrics as names and mappings."""
    return [
        metric if isinstance(metric, str) else cast("Choice", metric.model_dump(exclude_unset=True))
        for metric in metrics
    ]


def _check_options(requested_metric: RequestedMetric) -> None:
    if requested_metric.extractor is not None:
        extractors.get(requested_metric.extractor)
    option = reaches_out(requested_metric.config)
    if option == "prompt_path":
        raise UsageError(f"metric '{requested_metric.metric}': a request cannot name a file; send the prompt itself")
    if option in ("extractor", "extractor_config"):
        raise UsageError(f"metric '{requested_metric.metric}': {option} belongs next to config, not in it")
    if option == "embedder":
        raise UsageError(f"metric '{requested_metric.metric}': a request can use only the embedder '{LOCAL}'")


ORDERS = ("position", *NUMBERS)
"""What samples can be ordered by besides the graders."""


def check_graders(grading: Grading, terms: Sequence[Term], sort: str) -> None:
    """Check that a set of scores has the graders in a filter and a sort order.

    Raises:
        NotFound: it has none of such a name.
    """
    named = [term.name for term in terms if isinstance(term, Compares) and term.grader]
    if (order := sort.removeprefix("-")) not in ORDERS:
        named.append(order)
    for name in named:
        check_grader(name, grading)


def check_grader(name: str, *gradings: Grading) -> None:
    """Check that one of some sets of scores has a grader, or that the reward is meant.

    Raises:
        NotFound: none has one of that name.
    """
    if name != "reward":
        require_grader(name, *gradings)
