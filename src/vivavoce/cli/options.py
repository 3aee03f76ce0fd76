"""Options that several commands share: targets, limits, cached answers, tables, and what counts as worse."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from vivavoce.errors import UsageError


def _amount(usd: float | None) -> float | None:
    if usd is not None and not math.isfinite(usd):
        raise UsageError(f"--max-cost is an amount of US dollars, got {usd}")
    return usd


ConversationArgument = Annotated[
    str,
    typer.Argument(
        metavar="RUN/SAMPLE",
        help="A conversation: a run or 'latest', a slash, and a sample, or SAMPLE#2 for its second trial.",
        show_default=False,
    ),
]
TargetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        help="A target that replaces the suite's own: file.py:function or http://host/v1#MODEL; repeat for more.",
    ),
]
TableOption = Annotated[
    bool, typer.Option("--table", help="Also print all samples: their scores by target, or by grader if there is one.")
]
CostOption = Annotated[
    float | None,
    typer.Option(
        "--max-cost",
        metavar="USD",
        min=0,
        callback=_amount,
        help="Maximum cost of model calls, without the target, in US dollars.",
    ),
]


MaxErrorsOption = Annotated[
    str | None,
    typer.Option(
        "--max-errors",
        metavar="N|N%",
        help="Maximum number of conversations with an error; above it the result is inconclusive. Default without a "
        "gate: 0.",
    ),
]
NoCacheOption = Annotated[
    bool, typer.Option("--no-cache", help="Do not use cached judge answers, and do not cache new ones.")
]
ReplayOption = Annotated[bool, typer.Option("--replay", help="Call no judge; use only cached answers.")]
BaselineOption = Annotated[
    Path | None,
    typer.Option(
        "--baseline",
        metavar="FILE",
        help="Compare with this file, made by viva export --format baseline: worse exits with 1, undecided with 3.",
    ),
]
SmallestEffectOption = Annotated[
    float | None,
    typer.Option(
        "--smallest-effect",
        metavar="LOSS",
        min=0,
        max=1,
        help="The smallest loss of a mean score, 0 to 1, that counts as worse; default: any that is certain.",
    ),
]
FailOnBreakOption = Annotated[
    bool,
    typer.Option("--fail-on-break", help="A sample that passed in all trials before and in none now is worse, too."),
]


def named_paths(options: list[str]) -> dict[str, str]:
    """Return what `--field goal=metadata.wish` says, by the names of the fields.

    Raises:
        UsageError: an option names no place.
    """
    fields: dict[str, str] = {}
    for option in options:
        name, _, path = option.partition("=")
        if not path:
            raise UsageError(f"--field {option}: write it as goal=metadata.wish")
        fields[name] = path
    return fields
