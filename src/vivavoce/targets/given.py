"""What users give as a target: a function, an object of a framework, or a target itself."""

from __future__ import annotations

import copy
from functools import partial
from types import FunctionType, MethodType
from typing import Any, cast

from vivavoce.errors import UsageError
from vivavoce.plugins import lazy
from vivavoce.targets.function import FunctionTarget
from vivavoce.targets.target import Target


def as_target(thing: object, name: str | None = None, *, stream: bool = False) -> Target:
    """Return what is given as a target called `name`, by default as it calls itself.

    With `stream` the framework of an object is asked for the pieces of a reply.

    Raises:
        UsageError: it is neither a function, nor an object of a framework that is known, nor a target; or it gives no
            pieces.
    """
    if not isinstance(thing, type):
        if callable(getattr(thing, "open", None)) and isinstance(getattr(thing, "name", None), str):
            return _called(cast("Target", thing), name, stream=stream)
        framework = None if _is_plain(thing) else lazy("vivavoce.targets.frameworks.framework:framework_of")(thing)
        if framework is not None:
            made = lazy("vivavoce.targets.frameworks.target:FrameworkTarget")
            return cast("Target", made(thing, name, stream=stream, framework=framework))
    if not callable(thing):
        frameworks = lazy("vivavoce.targets.frameworks.framework:frameworks")()
        known = ", ".join(framework.title for framework in frameworks)
        raise UsageError(f"a function is needed, or an object of {known}; got a {type(thing).__name__}")
    if stream:
        raise UsageError("stream: a function returns its whole reply; use stream with an object of a framework")
    return FunctionTarget(cast("Any", thing), name)


def _is_plain(thing: object) -> bool:
    """Return whether a thing is called as it is, and no framework need be asked about it."""
    return isinstance(thing, FunctionType | MethodType | partial)


def _called(target: Target, name: str | None, *, stream: bool) -> Target:
    if stream:
        raise UsageError(f"stream: set it where the target {target.name} is created")
    if name is None or name == target.name:
        return target
    named = copy.copy(target)
    named.name = name
    return named
