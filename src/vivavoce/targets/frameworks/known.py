"""The frameworks that we know, in the order in which an object is tried; each is loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from vivavoce.plugins import lazy
from vivavoce.targets.frameworks.framework import Framework

_MODULES = (
    *("openai_agents", "pydantic_ai", "crewai", "google_adk", "autogen", "llama_index", "haystack"),
    "langchain",
)


def frameworks() -> Iterator[Framework]:
    """Yield every framework."""
    return (cast("Framework", lazy(f"vivavoce.targets.frameworks.{module}:FRAMEWORK")) for module in _MODULES)


def framework_of(thing: object) -> Framework | None:
    """Return the framework whose object this is, None if it is of none."""
    return next((framework for framework in frameworks() if framework.adapts(thing)), None)
