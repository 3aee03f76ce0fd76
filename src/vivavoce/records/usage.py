"""Tokens and money that calls used."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Usage(BaseModel):
    """Tokens of one call or of many; `cost` is in US dollars, None when a price is unknown (never 0)."""

    model_config = ConfigDict(frozen=True)

    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    reasoning_tokens: int = 0
    calls: int = 0
    cost: float | None = None

    def __add__(self, other: Usage) -> Usage:
        """Add up; the sum's cost is unknown when one of two used parts has no price."""
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_input_tokens=self.cached_input_tokens + other.cached_input_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            calls=self.calls + other.calls,
            cost=_cost(self, other),
        )


def _cost(a: Usage, b: Usage) -> float | None:
    if not a.calls or not b.calls:
        return a.cost if a.calls else b.cost
    return None if a.cost is None or b.cost is None else a.cost + b.cost
