"""User-defined Python that a suite may run besides graders: a set-up before the run, a factory for agents.

The decorators mark a function and change nothing; a suite names it as `file.py:name`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from typing import Any, TypeVar

from vivavoce.errors import UsageError
from vivavoce.pacing.loops import call
from vivavoce.user_code import check_callable, name_of

F = TypeVar("F", bound=Callable[..., Any])
_MODEL = ("model_handle", "model_name")
"""The parameter of a set-up that is the model; letta-evals called it by the second name before 0.12."""


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
    check_callable(function, name, "a set-up")
    parameters = list(inspect.signature(function).parameters)
    unknown = [parameter for parameter in parameters if parameter not in ("client", *_MODEL)]
    if unknown:
        raise UsageError(f"set-up {name} takes '{unknown[0]}'; it can take only client and model_handle")
    if "client" in parameters and not has_client:
        raise UsageError(f"set-up {name} takes a client, but only a target on a Letta server has one")
    return parameters


def takes_model(parameters: Collection[str]) -> bool:
    """Return whether a set-up runs once for each model."""
    return any(name in parameters for name in _MODEL)


async def run_setup(function: Callable[..., Any], parameters: list[str], client: Any, model_handle: str) -> None:
    """Run a set-up, sync or async, with its parameters.

    Raises:
        UsageError: the set-up raised; without it the results would mean nothing.
    """
    values = {"client": client, **dict.fromkeys(_MODEL, model_handle)}
    try:
        await call(function, **{name: values[name] for name in parameters})
    except Exception as error:
        raise UsageError(f"set-up {name_of(function)} raised {type(error).__name__}: {error}") from error
