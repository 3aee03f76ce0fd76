"""Strategies by name."""

from __future__ import annotations

import inspect
from typing import Any, cast, get_type_hints

from pydantic import PydanticSchemaGenerationError, TypeAdapter, ValidationError

from vivavoce.errors import UsageError, did_you_mean
from vivavoce.penelope.strategies.strategy import Strategy
from vivavoce.plugins import Registry

_HERE = "vivavoce.penelope.strategies"

strategies: Registry[type[Strategy]] = Registry(
    "strategy",
    {
        "improvise": f"{_HERE}.free:Improvise",
        "domain_probing": f"{_HERE}.domain_probing:DomainProbing",
        "capability_mapping": f"{_HERE}.capability_mapping:CapabilityMapping",
        "boundary_discovery": f"{_HERE}.boundary_discovery:BoundaryDiscovery",
        "crescendo": f"{_HERE}.crescendo:Crescendo",
        "goat": f"{_HERE}.goat:Goat",
        "pair": f"{_HERE}.pair:Pair",
    },
)
"""Every strategy that can be named; `strategies.add(name, class)` or an entry point adds a user-defined one."""


def make_strategy(strategy: str | Strategy | type[Strategy], /, **options: Any) -> Strategy:
    """Return a strategy, by name, of a class, or as it is; options are those of its constructor.

    Raises:
        UsageError: no strategy has that name, it has no such option, or the object is not a strategy.
    """
    thing: Any = strategies.get(strategy) if isinstance(strategy, str) else strategy
    if not callable(getattr(thing, "move", None)):
        raise UsageError(f"a strategy has a name, says whether it is adversarial, and has move(state); got {thing!r}")
    if isinstance(thing, type):
        kind = cast("type[Any]", thing)
        return kind(**_options(kind, strategy if isinstance(strategy, str) else kind.__name__, options))
    if options:
        raise UsageError(f"the strategy '{thing.name}' is made already and takes no options")
    return thing


def _options(kind: type[Any], label: str, options: dict[str, Any]) -> dict[str, Any]:
    parameters = inspect.signature(kind).parameters.values()
    known = {p.name: p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
    for name in options:
        if name not in known and not takes_any:
            raise UsageError(f"strategy '{label}': no option '{name}'{did_you_mean(name, known)}")
    for name, parameter in known.items():
        if parameter.default is parameter.empty and name not in options:
            raise UsageError(f"strategy '{label}': the option '{name}' is missing")
    hints = get_type_hints(kind.__init__)
    return {
        name: _validated(value, hints.get(name, Any), f"strategy '{label}': option '{name}'")
        for name, value in options.items()
    }


def _validated(value: Any, hint: Any, where: str) -> Any:
    try:
        return TypeAdapter(hint).validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise UsageError(f"{where}: {first['msg']}, got {value!r}") from error
    except PydanticSchemaGenerationError:
        return value  # a user-defined type, which the constructor checks itself
