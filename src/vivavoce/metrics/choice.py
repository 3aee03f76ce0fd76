"""A metric chosen by its name with options, in the words of a suite, wherever a name is taken."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Required

from typing_extensions import TypedDict

from vivavoce.comparing.thresholds import compare
from vivavoce.errors import UsageError
from vivavoce.metrics.config import MetricConfig, Scope
from vivavoce.metrics.factory import MetricClass, make_metric, named_metric
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.metrics.options import read_options
from vivavoce.models.custom import ModelLike, as_model
from vivavoce.models.model import Model
from vivavoce.plugins import lazy


class Choice(TypedDict, total=False):
    """A metric by its name with what it is made with, in the words of a grader of a suite; only `metric` is needed.

    `name` is what its scores are called and `config` its own options; `threshold` is in its own terms. With an
    `extractor` it measures the text that this picks. `model`, `temperature` and `settings` say whom it asks, and how.
    """

    metric: Required[str]
    name: str
    threshold: float | None
    scope: Scope | None
    config: Mapping[str, Any]
    extractor: str | None
    extractor_config: Mapping[str, Any]
    model: Any
    temperature: float | None
    settings: Mapping[str, Any]


_OF_GRADERS = ("extractor", "extractor_config", "scope", "threshold")
"""What a grading function takes itself."""


def choose_metric(
    choice: str | Choice, model: ModelLike | None = None, base: Path | None = None
) -> BaseMultiTurnMetric:
    """Return a new metric, by its name or as a `Choice` says; `model` judges where the choice names no judge.

    Files that it names stand beside `base`, the current folder unless it is given.

    Raises:
        UsageError: no metric has that name, or it has no such option.
    """
    how = read_options(Choice, {"metric": choice} if isinstance(choice, str) else choice)
    kind = named_metric(how["metric"])
    judge = how.get("model") or model
    return make_chosen(kind, how, base or Path(), None if judge is None else as_model(judge))


def make_chosen(kind: MetricClass, how: Choice, base: Path, judge: Model | None = None) -> BaseMultiTurnMetric:
    """Return a metric of a class, made as a choice says.

    Raises:
        UsageError: it has no such option, or the value is wrong.
    """
    name = how["metric"]
    options = _config(how, base)
    if "extractor" in inspect.signature(kind).parameters:
        grader_options: dict[str, Any] = {
            option: how.get(option) for option in _OF_GRADERS if how.get(option) is not None
        }
        if judge is not None and kind.may_ask:
            options["model"] = judge
        return make_metric(kind, name, judging=_judging(how), **options, **grader_options)
    if judge is not None and kind.judged:
        options["model"] = judge
    scope = how.get("scope")
    apart = how.get("extractor") is not None or (scope == "turn" and not _takes_scope(kind))
    if scope in ("turn", "window") and not apart:
        options["scope"] = scope
    metric = make_metric(kind, name, judging=_judging(how), **options)
    if (threshold := how.get("threshold")) is not None:
        metric.config = passing_from(metric, threshold)
    _check_can_fail(metric.name, metric.config)
    return lazy("vivavoce.grading.metrics:extracted")(metric, how, base) if apart else metric


def passing_from(metric: BaseMultiTurnMetric, threshold: float) -> MetricConfig:
    """Return the configuration of a metric with a threshold from which its scores pass.

    Raises:
        UsageError: the threshold lies outside the range of its scores, or lets every score pass.
    """
    config = metric.config
    if config.score_type == "categorical":
        raise UsageError(
            f"'{metric.name}' gives a label, which no threshold decides; name passing_categories in config"
        )
    if threshold < config.minimum or (config.maximum is not None and threshold > config.maximum):
        highest = "" if config.maximum is None else f" to {config.maximum:g}"
        raise UsageError(
            f"the scores of '{metric.name}' go from {config.minimum:g}{highest}; got threshold: {threshold:g}"
        )
    passing = config.model_copy(update={"threshold": threshold})
    _check_can_fail(metric.name, passing)
    return passing


def _check_can_fail(name: str, config: MetricConfig) -> None:
    """Raise if the threshold of a metric is the worst score that it can give."""
    higher = config.direction == "higher_is_better"
    worst = config.minimum if higher else config.maximum
    if config.threshold is None or worst is None or not compare(config.threshold, "eq", worst):
        return
    side = "above" if higher else "below"
    raise UsageError(
        f"every score of '{name}' passes with threshold: {config.threshold:g}; write a number {side} {worst:g}"
    )


LOCAL = "local"
"""The embedder that needs no address."""


def reaches_out(config: Mapping[str, Any]) -> str | None:
    """Return an option that names a file or an address, None where all are data."""
    if "prompt_path" in config:
        return "prompt_path"
    return "embedder" if config.get("embedder", LOCAL) != LOCAL else None


def _config(how: Choice, base: Path) -> dict[str, Any]:
    options: dict[str, Any] = {"name": how["name"]} if "name" in how else {}
    options |= how.get("config", {})
    for option in ("model", "settings"):
        if option in options:
            raise UsageError(f"{option} stands beside config, not in it")
    if "prompt_path" in options:
        options["prompt"] = base / str(options.pop("prompt_path"))
    return options


def _judging(how: Choice) -> dict[str, Any] | None:
    if "temperature" not in how and "settings" not in how:
        return None
    return {**({"temperature": how["temperature"]} if "temperature" in how else {}), **how.get("settings", {})}


def _takes_scope(kind: MetricClass) -> bool:
    parameters = inspect.signature(kind).parameters
    return "scope" in parameters or any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
