"""`viva validate list`: the names that a suite can use."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, Literal, get_args

import typer
from rich.table import Table
from rich.text import Text

from vivavoce.cli.output import out
from vivavoce.conversations.format import Format, all_formats
from vivavoce.grading.extractors import extractors
from vivavoce.grading.functions import option_names
from vivavoce.grading.metrics import FunctionGrader
from vivavoce.metrics.factory import MetricClass
from vivavoce.metrics.factory import metrics as registered_metrics
from vivavoce.penelope.persona import built_in
from vivavoce.penelope.strategies import strategies
from vivavoce.penelope.strategies.strategy import Strategy
from vivavoce.suites.document import Spec
from vivavoce.suites.grading_spec import LogicalGateSpec, SimpleGateSpec, WeightedGateSpec
from vivavoce.suites.target_spec import BUILT_IN_TARGETS, target_kinds
from vivavoce.testing.defects import DEFECTS

Kind = Literal["extractors", "graders", "metrics", "targets", "gates", "strategies", "personas", "defects", "formats"]
_SCORERS = "graders and metrics"
_TITLES: dict[str, str] = {"graders": _SCORERS, "metrics": _SCORERS}
_ALL = tuple(dict.fromkeys(_TITLES.get(kind, kind) for kind in map(str, get_args(Kind))))
_GATES = (SimpleGateSpec, WeightedGateSpec, LogicalGateSpec)


def command(
    kind: Annotated[Kind | None, typer.Argument(help="The kind of names to list.", show_default=False)] = None,
) -> None:
    """List the names that a suite can use, and the formats of conversations that can be read and written."""
    titles = _ALL if kind is None else (_TITLES.get(kind, str(kind)),)
    for title in titles:
        table = Table(
            title=title, title_justify="left", title_style="bold", box=None, show_header=False, pad_edge=False
        )
        table.add_column(no_wrap=True)
        table.add_column()
        for name, line, options in _rows(title):
            table.add_row(name, Text.assemble(line, (f"\n{options}", "dim")) if options else line)
        out().print(table)
        out().print()


def _format_row(format_: Format) -> tuple[str, str, str]:
    ways = "in and out" if format_.read and format_.write else "in" if format_.read else "out"
    return format_.name, f"{format_.title}: {ways}", ""


def _rows(kind: str) -> list[tuple[str, str, str]]:
    if kind == "targets":
        added = target_kinds.entries(of_plugins=True)
        return [
            *(_spec_row(spec) for spec in BUILT_IN_TARGETS.values()),
            *((name, _first(make.__doc__), ", ".join(_config_names(make))) for name, make in added),
        ]
    if kind == "formats":
        return [_format_row(format_) for format_ in all_formats()]
    if kind == "gates":
        return [_spec_row(spec) for spec in _GATES]
    if kind == _SCORERS:
        return [_scorer_row(name, found) for name, found in registered_metrics.entries()]
    if kind == "strategies":
        return [_strategy_row(name, found) for name, found in strategies.entries()]
    if kind == "personas":
        return [(name, persona.description, "") for name, persona in built_in().items()]
    if kind == "defects":
        return [(name, _first(operator.__doc__), "") for name, operator in DEFECTS.items()]
    return [
        (name, _first(function.__doc__), ", ".join(option_names(function))) for name, function in extractors.entries()
    ]


def _spec_row(spec: type[Spec]) -> tuple[str, str, str]:
    fields = spec.model_fields
    kind = get_args(fields["kind"].annotation)[0]
    return kind, _first(spec.__doc__), ", ".join(name for name in fields if name != "kind")


def _config_names(make: Callable[..., Any]) -> list[str]:
    """Return the names of the options of a target kind; its first parameter is the name of the target."""
    return list(inspect.signature(make).parameters)[1:]


def _scorer_row(name: str, found: MetricClass) -> tuple[str, str, str]:
    if issubclass(found, FunctionGrader):
        return name, f"{_first(found.__doc__)} (function)", ", ".join(option_names(found.function))
    asks = "judged" if found.judged else "exact"
    return name, f"{_first(found.__doc__)} ({asks} metric)", ", ".join(option_names(found))


def _strategy_row(name: str, found: type[Strategy]) -> tuple[str, str, str]:
    attacks = " (attack)" if found.adversarial else ""
    return name, f"{_first(found.__doc__)}{attacks}", ", ".join(option_names(found))


def _first(docstring: str | None) -> str:
    return inspect.cleandoc(docstring or "").split("\n")[0]
