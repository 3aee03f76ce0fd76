"""JSON as small models write it: the one object in a text, whatever stands around it and however it is spelled.

Only what has one reading is read. Of two objects that differ, of an object that is cut off, and of a string whose end
is in doubt nothing is taken, nor of an object that the text around it quotes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, cast

from vivavoce.comparing.json_values import RepeatedKey

_THOUGHTS = re.compile(r"\s*<(think|thinking)>.*?</\1>", re.DOTALL)
_OPEN_THOUGHTS = re.compile(r"\s*<think(?:ing)?>")
_END_OF_THOUGHTS = re.compile(r"[^{]*?</think(?:ing)?>")
"""Thoughts whose beginning is in the prompt; with a brace in them, their end may be part of an object."""
_GAP = re.compile(r'(?:\s++|(?://|#)[^\n"“”{}\[\]]*+(?=\n)|/\*[^"“”{}\[\]*]*+\*/)*+')
"""Spaces and comments; quotes and brackets in a comment may be a part of the answer, so no comment holds any."""
_STRINGS = {
    '"': re.compile(r'"((?:[^"\\]|\\.)*+)"', re.DOTALL),
    "'": re.compile(r"'((?:[^'\\]|\\.)*+)'", re.DOTALL),
    "“": re.compile(r"“((?:[^“”\\]|\\.)*+)”", re.DOTALL),
}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"} | {sign: sign for sign in "\"'\\/_"}
_NUMBER = re.compile(r"[-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d++)?")
_WORD = re.compile(r"[A-Za-z_]\w*+")
_CONSTANTS = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}
_DEEPEST = 100
_QUOTES = ('"', "'", "“", "‘", "«", "„", "`")
_FENCE = re.compile(r"```\w*")
_GOES_ON = re.compile(r"""\s*,\s*["'“]?\w+["'”]?\s*:""")
"""How a text goes on when an object in it was closed too early."""


def find_object(text: str) -> tuple[dict[str, Any], list[str]]:
    """Return the object in a text, and how it was written: `thoughts`, `fenced`, `prose`, `spelling`, `repeated`.

    Raises:
        RepeatedKey: an object in it has the same key twice.
        ValueError: there is none, or more than one reading.
    """
    text, thoughts = _without_thoughts(text)
    objects: list[tuple[dict[str, Any], str]] = []
    around: list[str] = []
    end = 0
    while (start := text.find("{", end)) >= 0:
        around.append(text[end:start])
        value, end = _object(text, start, 0)
        objects.append((value, text[start:end]))
    around.append(text[end:])
    if len({json.dumps(value, sort_keys=True) for value, _ in objects}) != 1:
        raise ValueError("exactly one object is needed")
    if any("}" in part for part in around) or any(map(_GOES_ON.match, around[1:])):
        raise ValueError("what follows the object may be a part of it")
    if _is_quoted(around):
        raise ValueError("the object is quoted, so it may be somebody else's")
    value, spelled = objects[0]
    repeated = ["repeated"] if len(objects) > 1 else []
    return value, [*(["thoughts"] if thoughts else []), *_written(around, spelled), *repeated]


def read_whole(text: str) -> object:
    """Read a text that is one value, an object or a list, and nothing else.

    Raises:
        ValueError: it is not.
    """
    start = _skip(text, 0)
    if text[start : start + 1] not in ("{", "["):
        raise ValueError("an object or a list is needed")
    value, end = _value(text, start, 0)
    if _skip(text, end) != len(text):
        raise ValueError("something follows")
    return value


def _is_quoted(around: list[str]) -> bool:
    """Say whether an object stands in quotation marks between words, as what somebody else wrote does."""
    says_more = any(any(map(str.isalnum, _FENCE.sub("", part))) for part in around)
    return says_more and any(part.endswith(_QUOTES) and not part.endswith("```") for part in around[:-1])


def _written(around: list[str], spelled: str) -> Iterator[str]:
    frame = " ".join(around)
    bare = _FENCE.sub("", frame)
    if bare != frame:
        yield "fenced"
    if bare.strip():
        yield "prose"
    try:
        json.loads(spelled)
    except ValueError:
        yield "spelling"


def _without_thoughts(text: str) -> tuple[str, bool]:
    if found := _THOUGHTS.match(text) or _END_OF_THOUGHTS.match(text):
        return text[found.end() :], True
    if _OPEN_THOUGHTS.match(text):
        raise ValueError("the thoughts have no end")
    return text, False


def _value(text: str, at: int, depth: int) -> tuple[object, int]:
    opening = text[at : at + 1]
    if depth > _DEEPEST:
        raise ValueError("it is nested too deeply")
    if opening == "{":
        return _object(text, at, depth)
    if opening == "[":
        return _list(text, at, depth)
    if opening in _STRINGS:
        return _string(text, at)
    if number := _NUMBER.match(text, at):
        return _number(number[0]), number.end()
    word = _WORD.match(text, at)
    if word and word[0] in _CONSTANTS:
        return _CONSTANTS[word[0]], word.end()
    raise _unreadable(at)


def _object(text: str, at: int, depth: int) -> tuple[dict[str, Any], int]:
    found: dict[str, Any] = {}
    at = _skip(text, at + 1)
    while text[at : at + 1] != "}":
        key, at = _key(text, at)
        at = _skip(text, at)
        if text[at : at + 1] != ":":
            raise _unreadable(at)
        if key in found:
            raise RepeatedKey(key, at)
        found[key], at = _value(text, _skip(text, at + 1), depth + 1)
        at = _after_item(text, at, "}")
    return found, at + 1


def _list(text: str, at: int, depth: int) -> tuple[list[object], int]:
    found: list[object] = []
    at = _skip(text, at + 1)
    while text[at : at + 1] != "]":
        item, at = _value(text, at, depth + 1)
        found.append(item)
        at = _after_item(text, at, "]")
    return found, at + 1


def _after_item(text: str, at: int, closing: str) -> int:
    """Return where the next item begins, or the container ends; a comma may be the last thing in it."""
    at = _skip(text, at)
    if text[at : at + 1] == ",":
        return _skip(text, at + 1)
    if text[at : at + 1] != closing:
        raise _unreadable(at)
    return at


def _key(text: str, at: int) -> tuple[str, int]:
    if text[at : at + 1] in _STRINGS:
        return _string(text, at)
    if word := _WORD.match(text, at):
        return word[0], word.end()
    raise _unreadable(at)


def _string(text: str, at: int) -> tuple[str, int]:
    found = _STRINGS[text[at]].match(text, at)
    if found is None:
        raise _unreadable(at)
    return _ESCAPE.sub(_unescaped, found[1]), found.end()


def _unescaped(escape: re.Match[str]) -> str:
    sign = escape[1]
    if len(sign) == 5:
        return chr(int(sign[1:], 16))
    if sign not in _ESCAPED:
        raise _unreadable(escape.start())
    return _ESCAPED[sign]


def _number(spelled: str) -> int | float:
    number = float(spelled)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{spelled[:20]} is too large")
    return number if set(spelled) & set(".eE") else int(spelled)


def _skip(text: str, at: int) -> int:
    return cast("re.Match[str]", _GAP.match(text, at)).end()


def _unreadable(at: int) -> ValueError:
    return ValueError(f"unreadable from character {at} on")
