"""User-defined Python that a suite may run besides graders: a set-up before the run, a factory for agents.

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
    """Mark a function that runs once before the first sample: `()`, `(client)` or `(client, model_handle)`."""
    return function


def agent_factory(function: F) -> F:
    """Mark an async function `(client, sample)` that creates a Letta agent and returns its id."""
    return function


def check_setup(function: Callable[..., Any], name: str, *, has_client: bool) -> list[str]:
    """Return the parameters of a set-up.

    Raises:
        UsageError: it has parameters other than `client` and `model_handle`, or needs a client and there is none.
    """
    parameters = list(inspect.signature(function).parameters)
    unknown = [parameter for parameter in parameters if parameter not in ("client", "model_handle")]
    if unknown:
        raise UsageError(f"set-up {name} takes '{unknown[0]}'; it can take only client and model_handle")
    if "client" in parameters and not has_client:
        raise UsageError(f"set-up {name} takes a client, but only a target of kind letta has one")
    return parameters


async def run_setup(function: Callable[..., Any], parameters: list[str], client: Any, model_handle: str) -> None:
    """Run a set-up, sync or async, with its parameters.

    Raises:
        UsageError: the set-up raised; without it the results would mean nothing.
    """
    values = {"client": client, "model_handle": model_handle}
    try:
        await call(function, **{name: values[name] for name in parameters})
    except Exception as error:
        raise UsageError(f"set-up {function.__name__} raised {type(error).__name__}: {error}") from error
