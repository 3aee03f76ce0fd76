"""Tokens and money that calls used."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeGuard

from pydantic import BaseModel, ConfigDict

MOST_TOKENS = 100_000_000
"""Tokens from which a report of one call is wrong: no model reads or writes so many at once."""


class Usage(BaseModel):
    """Tokens of one call or of many; `cost` is in US dollars, None when a price is unknown (never 0).

    `cached_calls` counts answers from the cache, which are no calls and use nothing.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    reasoning_tokens: int = 0
    calls: int = 0
    cached_calls: int = 0
    cost: float | None = None

    def __add__(self, other: Usage) -> Usage:
        """Add up; the sum's cost is unknown when one of two used parts has no price."""
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_input_tokens=self.cached_input_tokens + other.cached_input_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            calls=self.calls + other.calls,
            cached_calls=self.cached_calls + other.cached_calls,
            cost=_cost(self, other),
        )

    def times(self, factor: float) -> Usage:
        """Return the usage of so many times as much, in whole tokens and calls."""
        counts = {name: round(value * factor) for name, value in dict(self).items() if name != "cost"}
        return Usage(**counts, cost=None if self.cost is None else self.cost * factor)


def total(used: Iterable[Usage | None]) -> Usage | None:
    """Add up what is known of calls, None where nothing is."""
    known = [one for one in used if one is not None]
    return sum(known[1:], known[0]) if known else None


def usage_of(error: BaseException) -> Usage | None:
    """Return what calls used that came to nothing but this failure, None where there were none."""
    used: object = getattr(error, "usage", None)
    return used if isinstance(used, Usage) else None


def charge(error: BaseException, *used: Usage | None) -> None:
    """Add what calls used to the failure that they came to, which is where `usage_of` finds it."""
    if (spent := total([usage_of(error), *used])) is not None:
        vars(error)["usage"] = spent


def reported_usage(
    input_tokens: object, output_tokens: object, cached_input_tokens: object, reasoning_tokens: object
) -> Usage | None:
    """Return the usage of one call as a provider reports it, where a missing number is 0.

    It is None, so unknown, where a number is one that no call can have used: negative, too large, or no whole number.
    A limit on the cost would otherwise be undone by it.
    """
    counts: list[int] = []
    for number in (input_tokens, output_tokens, cached_input_tokens, reasoning_tokens):
        given = 0 if number is None else number
        if not _is_whole(given) or not 0 <= given < MOST_TOKENS:
            return None
        counts.append(int(given))
    read, written, cached, reasoning = counts
    return Usage(
        input_tokens=read, output_tokens=written, cached_input_tokens=cached, reasoning_tokens=reasoning, calls=1
    )


def _is_whole(number: object) -> TypeGuard[int | float]:
    return isinstance(number, int | float) and not isinstance(number, bool) and number == number // 1


def _cost(a: Usage, b: Usage) -> float | None:
    if not a.calls or not b.calls:
        return a.cost if a.calls else b.cost
    return None if a.cost is None or b.cost is None else a.cost + b.cost
