"""Other values in place of right ones: still a date, a number or a code, and wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, cast

_NUMBER = re.compile(r"(?<![\w.,:/-])\d+(?:,\d{3})*(?:\.\d+)?(?![\w:/-])")
_AMOUNT = re.compile(r"[$€£] ?(\d+(?:,\d{3})*(?:\.\d\d)?)(?![\d,]*\d)")
_DATE = re.compile(r"(?:\d{4}-\d{2}-|[A-Z][a-z]{2,8} )(\d{1,2})")
_CODE = re.compile(r"[A-Z0-9]{4,}")


@dataclass(frozen=True, slots=True)
class Swap:
    """A value under a key, and what it is to be instead."""

    key: str
    old: object
    new: object

    def within(self, value: Any, key: str = "") -> Any:
        """Return plain data with the value swapped wherever it is that text, or that number under that key."""
        if isinstance(value, dict):
            return {name: self.within(child, name) for name, child in cast("dict[str, Any]", value).items()}
        if isinstance(value, list):
            return [self.within(child, key) for child in cast("list[Any]", value)]
        same = value == self.old and type(value) is type(self.old)
        return self.new if same and (isinstance(value, str) or key == self.key) else value

    def within_text(self, text: str) -> str:
        """Return a text with the value swapped: in its data where it is JSON, else in its words."""
        try:
            return json.dumps(self.within(json.loads(text)), ensure_ascii=False)
        except ValueError:
            return text.replace(self.old, str(self.new)) if isinstance(self.old, str) else text


def swap_in(arguments: dict[str, Any], random: Random) -> Swap | None:
    """Return another value for one of those in the arguments of a call, None where there is none to change."""
    leaves = [(key, value) for key, value in _leaves(arguments) if _changeable(value)]
    if not leaves:
        return None
    key, old = random.choice(leaves)
    return Swap(key, old, other(old, random))


def other(value: object, random: Random) -> object:
    """Return another value of the same form: a date in the same month, a number or code that differs in one place."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + random.choice((1, 2))
    text = str(value)
    if date := _DATE.fullmatch(text):
        day = (int(date[1]) + random.choice((1, 2, 3)) - 1) % 28 + 1
        return f"{text[: date.start(1)]}{day:0{len(date[1])}}"
    if digits := [match.start() for match in re.finditer(r"\d", text)]:
        place = digits[0] if _NUMBER.fullmatch(text) else digits[-1]
        digit = (int(text[place]) + random.choice((1, 2, 3)) - 1) % 9 + 1
        return f"{text[:place]}{digit}{text[place + 1 :]}"
    return text[:-1] + ("X" if text[-1] != "X" else "Y")


def amounts_in(text: str) -> list[str]:
    """Return the amounts of money in a text, without the sign of the currency."""
    return _AMOUNT.findall(text)


def in_place_of(old: str, new: str, text: str) -> str:
    """Return a text with a number in place of another, wherever this stands by itself."""
    return re.sub(rf"(?<![\d.,]){re.escape(old)}(?!\d|[.,]\d)", lambda _: new, text)


def _leaves(value: Any, key: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        for name, child in cast("dict[str, Any]", value).items():
            yield from _leaves(child, name)
    elif isinstance(value, list):
        for child in cast("list[Any]", value):
            yield from _leaves(child, key)
    else:
        yield key, value


def _changeable(value: object) -> bool:
    if isinstance(value, str):
        return bool(re.search(r"\d", value) or _CODE.fullmatch(value)) and len(value) < 40
    return isinstance(value, bool | int | float)
