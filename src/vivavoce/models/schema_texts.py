"""The texts that JSON Schema names: its patterns, which are those of ECMA 262, and its formats."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import urlsplit

from vivavoce.safe_regex import Expression

_LINE_ENDS = r"\n\r\u2028\u2029"
_SPACES = rf"\t\v\f \u00a0\u1680\u2000-\u200a\u202f\u205f\u3000\ufeff{_LINE_ENDS}"
_OTHER_THAN_SPACES = (
    r"\x00-\x08\x0e-\x1f!-\u009f\u00a1-\u167f\u1681-\u1fff\u200b-\u2027\u202a-\u202e\u2030-\u205e\u2060-\u2fff"
    r"\u3001-\ufefe\uff00-\U0010ffff"
)
_SETS = {
    "d": "0-9",
    "D": r"\x00-/:-\U0010ffff",
    "w": "A-Za-z0-9_",
    "W": r"\x00-/:-@\[-\^`{-\U0010ffff",
    "s": _SPACES,
    "S": _OTHER_THAN_SPACES,
}
"""The contents of a class that means the same as an escape."""
_WORD, _NO_WORD = "(?<=[A-Za-z0-9_])", "(?<![A-Za-z0-9_])"
_EDGE = f"{_WORD}(?![A-Za-z0-9_])|{_NO_WORD}(?=[A-Za-z0-9_])"
_OUTSIDE = {"$": r"\Z", ".": f"[^{_LINE_ENDS}]", r"\b": f"(?:{_EDGE})", r"\B": f"(?!{_EDGE})"}
_ESCAPES = frozenset("dDwWsSbBnrtvf0123456789xukcpP")
"""Letters and digits that mean something after a backslash; ECMA 262 takes any other for itself."""
_TOKEN = re.compile(r"\\u\{[0-9A-Fa-f]{1,6}\}|\\c[A-Za-z]|\\k<\w+>|\\.|\[\^\]|\[\]|\[\^?|.", re.DOTALL)


@lru_cache(maxsize=512)
def schema_pattern(text: str) -> Expression:
    """Return the expression of a pattern, made once.

    Raises:
        UsageError: the text is not a regular expression.
    """
    return Expression(_translated(text), display_text=text)


def _translated(text: str) -> str:
    parts: list[str] = []
    in_class = False
    tokens = [match[0] for match in _TOKEN.finditer(text)]
    for before, token, after in zip(["", *tokens], tokens, [*tokens[1:], ""], strict=False):
        if token.startswith(r"\u{"):
            parts.append(f"\\U{int(token[3:-1], 16):08x}")
        elif in_class and token == "-" and (_is_set(before) or _is_set(after)):
            parts.append(r"\-")  # between a class and another character, it is not a range
        elif len(token) == 3 and token.startswith(r"\c"):
            parts.append(f"\\x{ord(token[2]) % 32:02x}")
        elif len(token) == 2 and token[0] == "\\" and token[1].isalpha() and token[1] not in _ESCAPES:
            parts.append(token[1])
        elif len(token) == 2 and token[0] == "\\" and token[1] in _SETS:
            parts.append(_SETS[token[1]] if in_class else f"[{_SETS[token[1]]}]")
        elif in_class:
            parts.append(r"\[" * token.count("[") + token.lstrip("[") if token[0] == "[" else token)
            in_class = not token.endswith("]") or token == r"\]"
        elif token in ("[", "[^"):
            parts.append(token)
            in_class = True
        elif token in ("[]", "[^]"):
            parts.append("(?!)" if token == "[]" else r"[\x00-\U0010ffff]")
        elif token.startswith(r"\k<"):
            parts.append(f"(?P={token[3:-1]})")
        else:
            parts.append(_OUTSIDE.get(token, token))
    return "".join(parts)


def _is_set(token: str) -> bool:
    return len(token) == 2 and token[0] == "\\" and token[1] in _SETS


_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOSTNAME = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*")
_LOCAL_PART = re.compile(r"(?=.{1,64}\Z)[\w!#$%&'*+/=?^`{|}~-]+(?:\.[\w!#$%&'*+/=?^`{|}~-]+)*", re.ASCII)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(
    r"([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9]|60)(?:\.[0-9]+)?(?:[Zz]|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))"
)
_URI = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*",
)
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


def _is_date(text: str) -> bool:
    return bool(_DATE.fullmatch(text)) and _is_read(date.fromisoformat, text)


def _is_time(text: str) -> bool:
    """Return whether a text is a `full-time` of RFC 3339; a leap second is the last one of a day in UTC."""
    match = _TIME.fullmatch(text)
    if match is None or match[3] != "60":
        return match is not None
    offset = int(match[5] or 0) * 60 + int(match[6] or 0)
    minutes = int(match[1]) * 60 + int(match[2]) - (offset if match[4] == "+" else -offset)
    return minutes % 1440 == 1439


def _is_date_time(text: str) -> bool:
    return text[10:11] in ("T", "t") and _is_date(text[:10]) and _is_time(text[11:])


def _is_email(text: str) -> bool:
    local, at, domain = text.rpartition("@")
    return bool(at and _LOCAL_PART.fullmatch(local) and _HOSTNAME.fullmatch(domain))


def _is_uri(text: str) -> bool:
    if not _URI.fullmatch(text):
        return False
    return _is_read(lambda uri: urlsplit(uri).port, text)


def _is_read(reader: Callable[[str], object], text: str) -> bool:
    try:
        reader(text)
    except ValueError:
        return False
    return True


FORMATS: Mapping[str, Callable[[str], bool]] = {
    "date": _is_date,
    "date-time": _is_date_time,
    "email": _is_email,
    "hostname": lambda text: bool(_HOSTNAME.fullmatch(text)),
    "ipv4": lambda text: _is_read(IPv4Address, text),
    "ipv6": lambda text: "%" not in text and _is_read(IPv6Address, text),
    "time": _is_time,
    "uri": _is_uri,
    "uuid": lambda text: bool(_UUID.fullmatch(text)),
}
"""The formats that are checked, each with what accepts a text; any other format accepts every text."""
