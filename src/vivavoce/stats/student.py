"""Student's t, computed here: of a small run, importing scipy for this one number would be a third of the time."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

_MANY = 1_000
"""From so many degrees of freedom on, the expansion around the normal quantile is exact to the last digits."""


@lru_cache(maxsize=4096)
def t_quantile(probability: float, freedom: int) -> float:
    """Return the quantile of Student's t distribution with `freedom` degrees of freedom.

    `probability` is at least 0.5 and below 1.

    Source: M. Abramowitz and I. A. Stegun, Handbook of Mathematical Functions (1964), 26.7.3 to 26.7.5.

    Raises:
        ValueError: `probability` or `freedom` is out of range.
    """
    if not 0.5 <= probability < 1 or freedom < 1:
        raise ValueError(f"Student's t needs 0.5 <= probability < 1 and freedom >= 1; got {probability} and {freedom}")
    normal = NormalDist().inv_cdf(probability)
    if freedom >= _MANY:
        return _expanded(normal, freedom)
    if freedom == 1:
        return math.tan(math.pi * (probability - 0.5))
    if freedom == 2:
        return (2 * probability - 1) / math.sqrt(2 * probability * (1 - probability))
    return _solved(2 * probability - 1, freedom, normal)


def _solved(within: float, freedom: int, value: float) -> float:
    """Return the t with the probability `within` between -t and t, by Newton's method from a value below it.

    The probability is a concave function of t, so that no step goes too far.
    """
    while True:
        step = (within - _within(value, freedom)) / (2 * _density(value, freedom))
        if step <= 1e-15 * value:
            return value
        value += step


def _within(value: float, freedom: int) -> float:
    """Return the probability between -value and value, which is a finite sum."""
    angle = math.atan(value / math.sqrt(freedom))
    square = math.cos(angle) ** 2
    odd = freedom % 2
    term = math.cos(angle) if odd else 1.0
    terms = [term]
    for power in range(2 + odd, freedom - 1, 2):
        term *= square * (power - 1) / power
        terms.append(term)
    sines = math.sin(angle) * math.fsum(terms)
    return 2 / math.pi * (angle + sines) if odd else sines


def _density(value: float, freedom: int) -> float:
    scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(freedom * math.pi) / 2
    return math.exp(scale - (freedom + 1) / 2 * math.log1p(value * value / freedom))


def _expanded(x: float, freedom: int) -> float:
    square = x * x
    terms = (
        x,
        x * (square + 1) / 4,
        x * ((5 * square + 16) * square + 3) / 96,
        x * (((3 * square + 19) * square + 17) * square - 15) / 384,
        x * ((((79 * square + 776) * square + 1482) * square - 1920) * square - 945) / 92160,
    )
    return math.fsum(term / freedom**power for power, term in enumerate(terms))
