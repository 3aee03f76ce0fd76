"""Options that several commands take: what judging may cost, which errors are allowed, which answers are used."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from vivavoce.errors import UsageError


def _amount(given: float | None) -> float | None:
    if given is not None and not math.isfinite(given):
        raise UsageError(f"--max-cost is an amount of US dollars, got {given}")
    return given


CostOption = Annotated[
    float | None,
    typer.Option(
        "--max-cost",
        metavar="USD",
        min=0,
        callback=_amount,
        help="Stop before the judges cost more US dollars than this.",
    ),
]


MaxErrorsOption = Annotated[
    str | None,
    typer.Option(
        "--max-errors",
        metavar="N|N%",
        help="How many conversations may have an error; more make the result inconclusive. None without a gate.",
    ),
]
NoCacheOption = Annotated[
    bool, typer.Option("--no-cache", help="Ask the judges even what they answered before, and keep no answer.")
]
ReplayOption = Annotated[
    bool, typer.Option("--replay", help="Ask no judge; take every verdict from the answers kept in the store.")
]
