"""`Possible`: what an aggregate can come to, whatever the scores are that errors left out."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction

from vivavoce.comparing.thresholds import Number, Operator, compare, exact

MAX_VALUES = 2_000
"""Possible values that are listed; where there are more, any number between the ends counts as possible."""


@dataclass(frozen=True, slots=True)
class Possible:
    """The numbers from `low` to `high`, both included: only those in `values`, any number between where that is None.

    A mean of scores can be any number between its ends; a rate of passing can only be some of them.
    """

    low: Fraction
    high: Fraction
    values: frozenset[Fraction] | None = None

    @classmethod
    def only(cls, value: Fraction) -> Possible:
        """Return that an aggregate is known."""
        return cls(value, value, frozenset((value,)))

    @classmethod
    def among(cls, values: Collection[Fraction]) -> Possible:
        """Return that an aggregate is one of some numbers."""
        return cls(min(values), max(values), frozenset(values) if len(values) <= MAX_VALUES else None)

    def plus(self, other: Possible) -> Possible:
        """Return what the sum with another can be, where neither depends on the other."""
        low, high = self.low + other.low, self.high + other.high
        mine, others = self._listed(), other._listed()
        if mine is None or others is None or len(mine) * len(others) > MAX_VALUES:
            return Possible(low, high)
        return Possible(low, high, frozenset(one + another for one in mine for another in others))

    def times(self, factor: Fraction) -> Possible:
        """Return what it can be after a multiplication by a factor that is not negative."""
        values = None if self.values is None else frozenset(value * factor for value in self.values)
        return Possible(self.low * factor, self.high * factor, values)

    def verdicts(self, op: Operator, limit: Number) -> set[bool]:
        """Return whether some of the numbers are on one side of a limit, and whether some are not."""
        ends = {compare(self.low, op, limit)}
        if self.low == self.high:
            return ends
        ends.add(compare(self.high, op, limit))
        return {*ends, self._contains(exact(limit))} if op == "eq" else ends

    def _contains(self, number: Fraction) -> bool:
        return self.low <= number <= self.high and (self.values is None or number in self.values)

    def _listed(self) -> frozenset[Fraction] | None:
        return frozenset((self.low,)) if self.low == self.high else self.values
