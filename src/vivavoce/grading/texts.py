"""What is wrong with a text, in words: it lacks, differs from, or is not, what it should be; empty if nothing is."""

from __future__ import annotations

import math
import re
from typing import Any, Literal

from vivavoce.comparing.json_values import read_strict_json
from vivavoce.expressions import expression
from vivavoce.models.json_schema import mismatch

Take = Literal["last", "first"]
"""Which number of a text counts."""
_NUMBER = re.compile(
    r"(?<![\w.,])(?<!\d[:\-–\u00a0\u202f])[-+−]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+|(?<=\d))(?:[eE][-+]?\d+)?"
    r"(?!\w)(?![.:,\-–\u00a0\u202f]\d)"
)
"""A number, and no part of a time, a date, a range, or of one that is written with a comma or a hard space."""


def lacks(text: str, wanted: str) -> str:
    """Say that a text does not contain another, in any case."""
    return "" if wanted.lower() in text.lower() else f"does not contain {wanted!r}"


def differs(text: str, wanted: str) -> str:
    """Say that a text is not another, white space at their ends aside."""
    return "" if text.strip() == wanted.strip() else f"is not {wanted.strip()!r}"


def mismatches(text: str, pattern: str) -> str:
    """Say that a regular expression matches nowhere in a text.

    Raises:
        UsageError: it is none.
        GraderFault: it takes too long.
    """
    return "" if expression(pattern).found_in(text) else f"does not match /{pattern}/"


def misfits(text: str, schema: dict[str, Any]) -> str:
    """Return in words why a text is not strict JSON, or does not fit a schema."""
    try:
        value = read_strict_json(text)
    except ValueError as error:
        return f"is not JSON: {error.__cause__ or error}"
    problem = mismatch(value, schema)
    return "" if problem is None else f"does not fit the schema: {problem}"


def misses(text: str, wanted: float, tolerance: float, relative: float, take: Take) -> str:
    """Say that a number of a text is not the wanted one within a tolerance, absolute or as a share of it."""
    found = _NUMBER.findall(text)
    if not found:
        return "contains no number"
    number = _value(found[0 if take == "first" else -1])
    if math.isclose(number, wanted, rel_tol=relative, abs_tol=tolerance):
        return ""
    return f"is {number:.12g}, expected {wanted:.12g} ± {max(tolerance, relative * abs(wanted)):.12g}"


def numbers(text: str) -> list[float]:
    """Return the numbers in a text."""
    return [_value(found) for found in _NUMBER.findall(text)]


def _value(digits: str) -> float:
    return float(digits.replace(",", "").replace("−", "-"))
