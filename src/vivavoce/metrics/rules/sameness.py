"""Whether two arguments mean the same thing, and whether a message mentions it: 1042 and "1042" are one order."""

from __future__ import annotations

import json
import re

from pydantic import JsonValue

_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def identity(value: JsonValue) -> str:
    """Return what two values have in common that mean the same thing."""
    written = as_written(value)
    return json.dumps(value, sort_keys=True) if written is None else f"={written}"


def alike(a: JsonValue, b: JsonValue) -> bool:
    """Say whether two values mean the same thing: equal values, and a number and its digits as text."""
    return identity(a) == identity(b)


def mentions(text: str, value: JsonValue) -> bool:
    """Say whether a text has a value in it as whole words, in any case; only texts and numbers can be mentioned.

    A number is no part of a longer one: 24 is in 24.00, and not in 24.90 or 24,000.
    """
    written = as_written(value)
    if not written:
        return False
    whole = re.escape(written)
    if _NUMBER.fullmatch(written):
        zeros = "0*" if "." in written else r"(?:\.0+)?"
        whole = rf"(?<!\d[.,]){whole}{zeros}(?![.,]\d)"
    return re.search(rf"(?<!\w){whole}(?!\w)", text, re.IGNORECASE) is not None


def as_written(value: JsonValue) -> str | None:
    """Return a text or a number as people write it, None for anything else."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
