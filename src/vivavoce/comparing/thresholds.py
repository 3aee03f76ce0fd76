"""Thresholds: read floats as the numbers that they stand for, and compare them without rounding.

A calculation in floats leaves at least 14 significant digits right. With 12 digits or fewer these are that decimal: 0.7
is 7/10, and so is 0.7000000000000003, which only a sum leaves behind. With more digits a float stands for the fraction
with a denominator of at most 10,000 that has the same 14 digits: 0.6666666666666666 is 2/3. Any other float is the
decimal of its 14 digits.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Literal

Operator = Literal["gt", "gte", "lt", "lte", "eq"]

SIGNS: Mapping[Operator, str] = {"gt": ">", "gte": "≥", "lt": "<", "lte": "≤", "eq": "="}
"""What an operator is written as."""

Number = float | Fraction
"""A score, a weight, or a threshold; a fraction is exact already."""

FLOAT_DIGITS = 14
"""Significant digits of a float that a short calculation leaves right."""

DECIMAL_DIGITS = 12
"""Most significant digits of a float that is a decimal for certain."""

MAX_DENOMINATOR = 10_000
"""Largest denominator of a fraction that a float with more digits stands for."""

_NEAR = 1e-13
"""Distance, relative to the number, within which a fraction may have the same 14 digits."""

_EXACT_FROM = 2.0**46
"""Size from which 14 digits could not tell whole numbers apart: the float is taken as it is."""


def exact(value: Number) -> Fraction:
    """Return the number that a value stands for.

    Raises:
        ValueError: the value is not finite.
    """
    if type(value) is float:  # by far the most, and a check against Fraction takes longer
        return _read(value)
    return value if isinstance(value, Fraction) else Fraction(value) if isinstance(value, int) else _read(float(value))


@lru_cache(maxsize=1 << 16)
def _read(value: float) -> Fraction:
    if not math.isfinite(value):
        raise ValueError(f"only a finite number can be compared exactly, got {value}")
    if abs(value) >= _EXACT_FROM:
        return Fraction(value)
    text = _digits(value)
    if len(text.partition("e")[0].lstrip("-0.").replace(".", "")) > DECIMAL_DIGITS:
        simple = _simple_fraction(value)
        if simple is not None and _digits(simple[0] / simple[1]) == text:
            return Fraction(*simple)
    return Fraction(*Decimal(text).as_integer_ratio())


def _simple_fraction(value: float) -> tuple[int, int] | None:
    """Return the numerator and denominator of the fraction that is nearest to a float, None if it is far from any.

    A fraction p/q that is nearer than 1/(2 q²) is one of the convergents of the continued fraction.
    """
    numerator, denominator, last_numerator, last_denominator = 1, 0, 0, 1
    rest = value
    while abs(rest) < _EXACT_FROM:
        whole = math.floor(rest)
        numerator, last_numerator = whole * numerator + last_numerator, numerator
        denominator, last_denominator = whole * denominator + last_denominator, denominator
        if denominator > MAX_DENOMINATOR:
            return None
        if abs(numerator / denominator - value) <= abs(value) * _NEAR:
            return numerator, denominator
        rest = 1 / (rest - whole) if rest > whole else math.inf
    return None


def _digits(value: float) -> str:
    return f"{value:.{FLOAT_DIGITS}g}"


def total(values: Iterable[Number]) -> Fraction:
    """Return the exact sum of some values."""
    counts = ((exact(value), count) for value, count in Counter(values).items())
    return _sum((count * number.numerator, number.denominator) for number, count in counts)


def _sum(quotients: Iterable[tuple[int, int]]) -> Fraction:
    """Return the sum of quotients of whole numbers; those with one denominator are added first."""
    numerators: defaultdict[int, int] = defaultdict(int)
    for numerator, denominator in quotients:
        numerators[denominator] += numerator
    whole = math.lcm(*numerators)
    return Fraction(sum(numerator * (whole // of) for of, numerator in numerators.items()), whole)


def mean(values: Sequence[Number], weights: Sequence[Number] | None = None) -> Fraction:
    """Return the exact mean of values, weighted where there are weights.

    Raises:
        ValueError: there is no value, or the weights add up to 0.
    """
    if weights is not None and len(weights) == len(values) and len(set(weights)) == 1 and weights[0] > 0:
        weights = None  # equal weights change nothing
    if weights is None:
        whole, parts = Fraction(len(values)), total(values)
    else:
        whole, pairs = total(weights), zip(map(exact, weights), map(exact, values), strict=True)
        parts = _sum(
            (weight.numerator * value.numerator, weight.denominator * value.denominator) for weight, value in pairs
        )
    if not whole:
        raise ValueError("a mean needs a value with a weight above 0")
    return parts / whole


def percentile(values: Sequence[Number], q: int) -> Fraction:
    """Return the value below which `q` percent of the values lie; between two values it interpolates linearly.

    Source: R. J. Hyndman and Y. Fan, Sample Quantiles in Statistical Packages (1996), definition 7.
    """
    ordered = sorted(map(exact, values))
    below, part = divmod(Fraction((len(ordered) - 1) * q, 100), 1)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * part


def compare(value: Number, op: Operator, limit: Number) -> bool:
    """Return whether a value is on one side of a limit: the only comparison of a score with a threshold.

    A number that is not finite compares as a float does.
    """
    if not (math.isfinite(value) and math.isfinite(limit)):
        left, right = float(value), float(limit)
        return {"gt": left > right, "gte": left >= right, "lt": left < right, "lte": left <= right}.get(
            op, left == right
        )
    sign = _sign(value, limit)
    match op:
        case "gt":
            return sign > 0
        case "gte":
            return sign >= 0
        case "lt":
            return sign < 0
        case "lte":
            return sign <= 0
        case "eq":
            return sign == 0


def reaches(value: Number, threshold: Number) -> bool:
    """Return whether a score is at least a threshold."""
    return compare(value, "gte", threshold)


def _sign(value: Number, limit: Number) -> int:
    left_exact, right_exact = exact(value), exact(limit)
    left, right = left_exact.numerator * right_exact.denominator, right_exact.numerator * left_exact.denominator
    return (left > right) - (left < right)


def round_toward_side(value: Fraction, limit: Number) -> float:
    """Return the nearest float that compares with a limit as the value does, so that whoever reads it decides alike."""
    near, sign = float(value), _sign(value, limit)
    step = math.ulp(near)
    while _sign(near, limit) != sign:
        near, step = near + sign * step, 2 * step
    return near


def number_text(value: Number, limit: Number, *, decimals: int | None = None) -> str:
    """Return a number in words that do not contradict how it compares with a limit.

    It has 4 significant digits, or this many `decimals`, and more where these would put it on another side of the
    limit.
    """
    sign = _sign(value, limit)
    texts = list(_texts(float(value), decimals))
    return next((text for text in texts if _sign(float(text), limit) == sign), texts[-1])


def limit_text(limit: Number) -> str:
    """Return a threshold with all of its digits: `0.7`, `66.6666666666667`."""
    return _digits(float(limit))


def score_text(score: float, decimals: int = 3) -> str:
    """Return a number with this many decimals, or more where these would round a score to 0 or 1."""
    return number_text(score, round(score), decimals=decimals) if 0 <= score <= 1 else f"{score:.{decimals}f}"


def share_text(share: float, decimals: int = 1) -> str:
    """Return a share of 1 as a percentage that says 100% or 0% only where it is exactly that."""
    return f"{number_text(100 * exact(share), 100 * round(share), decimals=decimals)}%"


def _texts(value: float, decimals: int | None) -> Iterator[str]:
    if decimals is not None:
        yield from (f"{value:.{digits}f}" for digits in range(decimals, FLOAT_DIGITS + 1))
    else:
        yield from (f"{value:.{digits}g}" for digits in range(4, FLOAT_DIGITS + 1))
    yield repr(value)
