"""What a suite may run of a user's Python besides graders: a set-up before the run, a factory for agents.

The decorators mark a function and change nothing; a suite names it as `file.py:name`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from vivavoce.errors import UsageError
from vivavoce.pacing.waiting import call

F = TypeVar("F", bound=Callable[..., Any])


def suite_setup(function: F) -> F:
    """Mark a function that runs once before the samples: `()`, `(client)` or `(client, model_handle)`."""
    return function


def agent_factory(function: F) -> F:
    """Mark an async function `(client, sample)` that makes a Letta agent and returns its id."""
    return function


def check_setup(function: Callable[..., Any], name: str, *, has_client: bool) -> list[str]:
    """Return the names of what a set-up asks for.

    Raises:
        UsageError: it asks for something else than `client` and `model_handle`, or for a client that nobody has.
    """
    asked = list(inspect.signature(function).parameters)
    unknown = [parameter for parameter in asked if parameter not in ("client", "model_handle")]
    if unknown:
        raise UsageError(f"set-up {name} takes '{unknown[0]}'; it may take client and model_handle")
    if "client" in asked and not has_client:
        raise UsageError(f"set-up {name} takes a client; only a target of kind letta has one")
    return asked


async def run_setup(function: Callable[..., Any], asked: list[str], client: Any, model_handle: str) -> None:
    """Run a set-up, sync or async, with what it asks for.

    Raises:
        UsageError: it raised; without it the samples would mean nothing.
    """
    given = {"client": client, "model_handle": model_handle}
    try:
        await call(function, **{name: given[name] for name in asked})
    except Exception as error:
        raise UsageError(f"set-up {function.__name__} raised {type(error).__name__}: {error}") from error
