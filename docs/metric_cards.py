"""The cards of the metrics: what each one measures and how far it can be believed, from the classes themselves."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from vivavoce.grading.metrics import FunctionGrader
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.factory import metrics
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.validation import OMITTED

HEAD = """# The metrics

<!-- Written by docs/generate.py from the metrics themselves. Change their docstrings, then run: make docs -->

A card for each metric. *Judged* metrics ask a model; without one they are skipped, never replaced by something
cheaper. *Exact* ones compute. All take `name`, `threshold`, `scope` and `window`; judged ones also `model`, `settings`,
`shown`, `prompt`, `blocks`, `tokens`, `overlap` and `trial`. [The guide](../guides/metrics.md) says how to choose and
use them. [Grading functions](../guides/graders.md#graders) work as metrics, too.

Of every judged metric: code computes the score from findings with evidence, and the evidence is looked up in the
conversation. Its prompt is not calibrated against people: [check it](../guides/how-good-is-my-judge.md) on
conversations that you have labelled yourself before you rely on a threshold.
"""
MADE_WITH: Mapping[str, Mapping[str, Any]] = {
    "aspect_critic": {"definition": "…"},
    "guidelines": {"guidelines": ["…"]},
    "last_agent": {"expected": "…"},
    "rule": {"always": {"call": "…"}},
    "simple_criteria": {"criteria": "…"},
    "topic_adherence": {"topics": ["…"]},
}
"""What a metric cannot be made without."""
_SHARED = {"name", "threshold", "scope", "window", "model", "self"}


def metric_cards() -> str:
    """Return the page with all cards."""
    names = described()
    listed = "\n".join(f"- [`{name}`](#{name}): {_first(metrics.get(name))}" for name in names)
    return "\n".join([HEAD, listed, "", *(line for name in names for line in card(name))])


def described() -> list[str]:
    """Return the metrics that have a card; grading functions are described in the guide to graders."""
    return [name for name in metrics.names() if not issubclass(metrics.get(name), FunctionGrader)]


def card(name: str) -> Iterator[str]:
    """Yield the lines about one metric."""
    kind = metrics.get(name)
    config = kind(**MADE_WITH.get(name, {})).config
    yield from (f"## {name}", "", inspect.cleandoc(kind.__doc__ or ""), "")
    yield from ("| | |", "|---|---|")
    for label, value in rows(kind, config).items():
        yield f"| {label} | {value} |"
    yield ""


def rows(kind: type[BaseMultiTurnMetric], config: MetricConfig) -> dict[str, str]:
    """Return what the table of a card says."""
    needs = [*getattr(kind, "needs", ())]
    options = [
        p for p in inspect.signature(kind).parameters.values() if p.kind is p.KEYWORD_ONLY and p.default is not OMITTED
    ]
    named = [f"`{p.name}`" for p in options if p.name not in _SHARED]
    return {
        "class": f"`{kind.__name__}`, version {getattr(kind, 'version', '1')}",
        "method": "judged" if kind.judged else "exact",
        "needs": ", ".join(f"`{one}`" for one in needs) or "nothing but the conversation, unless said above",
        "range": _range(config),
        "direction": "best at the end" if config.categories else config.direction.replace("_", " "),
        "passes": _passes(config),
        "options": ", ".join(named) or "none of its own",
    }


def _range(config: MetricConfig) -> str:
    if config.categories:
        return " < ".join(f"`{name}`" for name in config.categories)
    if config.score_type == "binary":
        return "true or false"
    return f"{config.minimum:g} up" if config.maximum is None else f"{config.minimum:g} to {config.maximum:g}"


def _passes(config: MetricConfig) -> str:
    if config.passing_categories:
        return ", ".join(f"`{name}`" for name in config.passing_categories)
    if config.score_type == "binary":
        return "true" if config.direction == "higher_is_better" else "false"
    if config.threshold is None:
        return "with a `threshold` only"
    return f"{'from' if config.direction == 'higher_is_better' else 'up to'} {config.threshold:g}"


def _first(kind: type[BaseMultiTurnMetric]) -> str:
    return inspect.cleandoc(kind.__doc__ or "").split("\n")[0]
