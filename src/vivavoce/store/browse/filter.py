"""Filters of samples, as text: `state:error goal<0.5 text:"refund" target:bot -tag:slow`.

All terms must match; a leading `-` negates a term. A term is `field:value`, a grader or a number compared, as in
`goal<0.5` or `turns>=4`, or a word to search for in messages. Quotation marks keep words together, and turn a name with
another meaning into that of a grader: `"turns"<0.5`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast, get_args

from vivavoce.errors import UsageError, did_you_mean

Field = Literal["state", "target", "sample", "trial", "tag", "cause", "has", "text"]
Number = Literal["turns", "trial", "seconds", "tokens", "cost", "worst"]
Operator = Literal["<", "<=", ">", ">=", "=", "!="]

FIELDS: tuple[str, ...] = get_args(Field)
NUMBERS: tuple[str, ...] = get_args(Number)
STATES = ("pass", "fail", "error", "measured", "skip", "scored", "skipped")
HAVING = ("comment", "open-comment", "label")
"""What a conversation may have of people."""
LONGEST = 2000
"""Maximum characters of a filter."""
MOST = 20
"""Maximum terms of a filter."""

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_TERM = re.compile(
    rf"""(?P<minus>-)?
    (?: (?P<field>[^\s":<>=!-][^\s":<>=!]*):(?P<value>{_QUOTED}|[^\s"]+)
      | (?P<name>{_QUOTED}|[^\s":<>=!-][^\s":<>=!]*)(?P<operator><=|>=|!=|<|>|=)(?P<number>[^\s"]+)
      | (?P<word>{_QUOTED}|[^\s":<>=!-][^\s":<>=!]*) )
    (?=\s|$)""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Has:
    """A term `field:value`, such as `state:error`; the value of `sample` may end in `*`."""

    field: Field
    value: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Compares:
    """A comparison of a number: the score of a grader if `grader` is set, else a number that every attempt has."""

    name: str
    operator: Operator
    value: float
    grader: bool
    negated: bool = False


Term: TypeAlias = Has | Compares


def parse_filter(text: str) -> tuple[Term, ...]:
    """Return the terms of a filter, none for an empty text.

    Raises:
        UsageError: it cannot be read; the message says at which character, counted from 1.
    """
    if len(text) > LONGEST:
        raise UsageError(f"filter: {len(text):,} characters, at most {LONGEST:,} allowed")
    terms: list[Term] = []
    at = _blank(text, 0)
    while at < len(text):
        found = _TERM.match(text, at)
        if found is None:
            raise _wrong(at, f"'{_piece(text, at)}' is not a term; write state:error, goal<0.5 or text:\"two words\"")
        terms.append(_term(found, at))
        at = _blank(text, found.end())
    if len(terms) > MOST:
        raise UsageError(f"filter: {len(terms)} terms, at most {MOST} allowed")
    return tuple(terms)


def quoted(value: str) -> str:
    """Return a value as a filter has it, in quotation marks."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _term(found: re.Match[str], at: int) -> Term:
    negated = found["minus"] is not None
    if (word := found["word"]) is not None:
        return Has("text", _plain(word), negated)
    if (name := found["name"]) is not None:
        number = _number(found["number"], found.start("number"))
        grader = name.startswith('"') or name not in NUMBERS
        return Compares(_plain(name), cast("Operator", found["operator"]), number, grader, negated)
    field, value = found["field"], _plain(found["value"])
    if field not in FIELDS:
        raise _wrong(at, f"no field '{field}'{did_you_mean(field, FIELDS)}; put quotation marks around a text")
    if field == "state" and value not in STATES:
        raise _wrong(found.start("value"), f"no state '{value}'{did_you_mean(value, STATES)}")
    if field == "has" and value not in HAVING:
        raise _wrong(found.start("value"), f"no has:{value}{did_you_mean(value, HAVING)}")
    if field == "trial":
        return Compares("trial", "=", _number(value, found.start("value")), grader=False, negated=negated)
    return Has(cast("Field", field), value, negated)


def _number(text: str, at: int) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise _wrong(at, f"'{_piece(text, 0)}' is not a number")
    return number


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text.startswith('"') else text


def _blank(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _piece(text: str, at: int) -> str:
    return text[at : at + 40].partition(" ")[0]


def _wrong(at: int, what: str) -> UsageError:
    return UsageError(f"filter, character {at + 1}: {what}")
