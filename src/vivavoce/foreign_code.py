"""The boundary to code that others wrote: graders, extractors, metrics, rewards, tools, targets, models, plugins.

Such code may raise anything. Some exceptions are not `Exception`, such as those of `pytest.fail`, and would end a run.
Whoever calls foreign code does so inside `foreign_code()` and handles `Exception`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from math import isfinite
from numbers import Rational, Real
from types import TracebackType
from typing import Any

from vivavoce.errors import Deferred, UsageError

_SKIPS = (("_pytest.outcomes", "Skipped"), ("unittest.case", "SkipTest"))
"""The exceptions by which a test says that it does not apply, and the modules that have them."""


class foreign_code:  # noqa: N801  # called like a function
    """Let the code inside raise nothing that would end more than its own call.

    `Exception` and our own `Deferred` pass unchanged. So do an interrupt from the keyboard, the cancellation of this
    task from outside, and the closing of this coroutine. With `raises_interrupts`, an interrupt that comes while nobody
    has cancelled this task is one that the code raised itself.

    Raises:
        RuntimeError: the code raised anything else, which is the cause: it called `sys.exit`, cancelled itself, or
            raised a base exception such as that of `pytest.fail`.
    """

    __slots__ = ("_raises_interrupts", "_task")

    def __init__(self, *, raises_interrupts: bool = False) -> None:
        self._raises_interrupts = raises_interrupts
        self._task = _current_task()

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, Exception | Deferred):
            return
        if isinstance(error, KeyboardInterrupt):
            if not self._raises_interrupts or is_cancelled():
                return
            raise RuntimeError("it raised KeyboardInterrupt") from error
        if isinstance(error, SystemExit):
            raise RuntimeError(f"it called sys.exit({error.code!r})") from error
        if isinstance(error, asyncio.CancelledError):
            if is_cancelled():
                return
            raise RuntimeError("it cancelled itself") from error
        if isinstance(error, GeneratorExit):
            if _current_task() is not self._task:  # the coroutine is closed, and not run
                return
            raise RuntimeError("it raised GeneratorExit") from error
        raise RuntimeError(f"it raised {type(error).__name__}: {error}".removesuffix(": ")) from error


def is_cancelled() -> bool:
    """Return whether this task was cancelled from outside, and not by the code that runs in it."""
    task = _current_task()
    return task is not None and task.cancelling() > 0


def original_error(error: Exception) -> BaseException:
    """Return what foreign code raised: an error, or the base exception that `foreign_code` made an error of."""
    cause = error.__cause__
    return cause if cause is not None and not isinstance(cause, Exception) else error


def skip_reason(error: Exception) -> str | None:
    """Return why foreign code says that it does not apply, as `pytest.skip` does; None for any other error."""
    raised = original_error(error)
    kinds = [getattr(sys.modules.get(module), name, None) for module, name in _SKIPS]
    if any(kind is not None and isinstance(raised, kind) for kind in kinds):
        return str(raised) or f"it raised {type(raised).__name__}"
    return None


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of anything that can be called; an object without one has that of its class."""
    while isinstance(function, partial):
        function = function.func
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__


def check_callable(thing: object, reference: str, kind: str) -> Callable[..., Any]:
    """Return something that can be called: a function, a bound method, a partial, or an object with `__call__`.

    Raises:
        UsageError: it cannot be called, or is a class, which would only make an object.
    """
    if isinstance(thing, type):
        raise UsageError(
            f"'{reference}' is the class {thing.__name__} itself; name a function or an object of the class"
        )
    if not callable(thing):
        raise UsageError(f"'{reference}' is a {type(thing).__name__}; {kind} is a function or a callable object")
    return thing


def plain_number(value: Any) -> bool | Real | Decimal | None:
    """Return a number or a bool, also where it is one of numpy or of a tensor library; None for anything else."""
    if getattr(value, "shape", None) == () and callable(getattr(value, "item", None)):
        short = type(value).__name__ in ("float16", "float32")  # 0.7 is 0.7, and not what a double makes of its bits
        value = float(str(value)) if short else value.item()
    return value if isinstance(value, Real | Decimal) else None


def unit_number(number: bool | Real | Decimal) -> float:
    """Return a number from 0 to 1 as a float.

    Raises:
        ValueError: it is outside.
    """
    value = float(number)
    exact: Any = number if isinstance(number, Decimal | Rational) else value
    if not (isfinite(value) and 0 <= exact <= 1):
        raise ValueError(f"the score is {number}, which is not between 0 and 1")
    return value


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs here
        return None
