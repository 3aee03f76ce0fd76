"""Agreement of a yes-or-no prediction with the truth: precision, recall, accuracy and kappa."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Agreement:
    """How often prediction and truth were yes or no together; a figure that would divide by zero is None."""

    tp: int
    fp: int
    fn: int
    tn: int

    @property
    def n(self) -> int:
        """How many pairs there are."""
        return self.tp + self.fp + self.fn + self.tn

    @property
    def precision(self) -> float | None:
        """The part of the predicted that is true; None where nothing was predicted."""
        return _part(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> float | None:
        """The part of the true that was predicted; None where nothing is true."""
        return _part(self.tp, self.tp + self.fn)

    @property
    def accuracy(self) -> float | None:
        """The part of all pairs in which both agree."""
        return _part(self.tp + self.tn, self.n)

    @property
    def kappa(self) -> float | None:
        """Agreement beyond chance, 1 at best; None where chance alone agrees always.

        Source: J. Cohen, A Coefficient of Agreement for Nominal Scales (1960).
        """
        yes = (self.tp + self.fp) * (self.tp + self.fn)
        no = (self.tn + self.fn) * (self.tn + self.fp)
        by_chance = yes + no
        return _part((self.tp + self.tn) * self.n - by_chance, self.n**2 - by_chance)


def agreement(predicted: Iterable[bool], truth: Iterable[bool]) -> Agreement:
    """Count how predictions agree with the truth, pair by pair.

    Raises:
        ValueError: one side is longer than the other.
    """
    pairs = Counter((bool(guess), bool(true)) for guess, true in zip(predicted, truth, strict=True))
    return Agreement(tp=pairs[True, True], fp=pairs[True, False], fn=pairs[False, True], tn=pairs[False, False])


def _part(part: int, whole: int) -> float | None:
    return part / whole if whole else None
