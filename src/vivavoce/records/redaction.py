"""Redaction: keys that came into a record by accident are cut out of it before it is stored or shown.

There are two ways to know one. A key of the environment is known by its value and is cut out of everything, also of
what was said, for it was never part of the question. A text that merely has the shape of a key may be one that somebody
said, which is evidence; so shapes are cut only out of what machinery tells when it fails.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any, cast
from urllib.parse import quote, unquote

MARK = "***"
"""What stands in the place of a key."""

LONG = 16
"""Characters from which a key is no word that somebody could say by chance, as the `test` of local servers is."""

_NAMES = re.compile(r"(?:^|_)(?:(?:API|ACCESS|SECRET|PRIVATE|AUTH)?_?KEY|TOKEN|SECRET|PASSWORD|PASSWD|PAT)$")
"""Endings of the names of variables that hold keys."""
_ADDRESSES = re.compile(r"(?:^|_)(?:URL|URI|DSN|STORE)$")
"""Endings of the names of variables that hold addresses, which may hold a password."""
_AROUND = " \t\r\n\"'"
"""What may stand around a key in a variable; files of variables leave quotes as they are."""
_PASSWORD = re.compile(r"://[^/@:]*:(.+)@")
_NAMED_IN_SUITE = re.compile(r'"api_key_env":\s*"(\w+)"|\$\{(\w+)\}')

_SHAPES = re.compile(
    r"""
    (?<![\w-])(?:
        sk-[\w-]{16,} | viva_[\w-]{43} | (?:AKIA|ASIA)[0-9A-Z]{16} | gh[pousr]_\w{36,} | github_pat_\w{22,}
      | glpat-[\w-]{20,} | xox[abprs]-[\w-]{10,} | AIza[\w-]{35} | hf_\w{30,} | eyJ[\w-]+\.eyJ[\w-]+\.[\w-]+
    )
    | -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----[^"']*?(?:-----END\ [A-Z ]*PRIVATE\ KEY-----|(?=\\{0,3}["'])|\Z)
    | (?<=(?i:bearer)\ )(?=\S*\d)[\w.~+/=-]{8,}
    | (?<=(?i:basic)\ )(?=\S*[\dA-Z=])[\w+/]{8,}={0,2}
    | (?<=://)[^\s/@:"'\\]*:[^\s/@"'\\]+(?=@)
    """,
    re.VERBOSE | re.ASCII,
)
_NAMED = re.compile(
    r"""(\b(?:api[-_]?key|(?:proxy-)?authorization|x-api-key|(?:access|auth)[-_]token|client[-_]secret|password)\b)"""
    r"""(\\?["'])?(\s*[:=]\s*)(?:(\\?["'])|(?!\[))(?!bearer\b|basic\b|\$?\{)[^\s"',;}\\]{8,}""",
    re.IGNORECASE | re.ASCII,
)
"""The name of a header or a field and what it holds, unless that is a variable."""
_HINTS = (
    *("sk-", "viva_", "akia", "asia", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "aiza"),
    *("hf_", "eyj", "private key", "bearer ", "basic ", "://"),
)
_NAME_HINTS = ("key", "authorization", "token", "secret", "password")
"""What a text holds, in lower case, that is worth a look; to see that it holds none is much quicker than the look."""


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys that are known by their value, each in every spelling in which it may stand in a record."""

    spellings: tuple[str, ...]

    @classmethod
    def of(cls, keys: Iterable[str]) -> Keys:
        """Return what knows these keys; short ones are left out."""
        found = {spelling for key in keys if len(key) >= LONG for spelling in _spellings(key)}
        return cls(tuple(sorted(found, key=len, reverse=True)))

    def cut(self, text: str) -> str:
        """Return a text, plain or JSON, without the keys; what was JSON still is."""
        left = text
        for spelling in self.spellings:
            left = left.replace(spelling, MARK)
        if left == text or not _is_json(text) or _is_json(left):
            return left
        return json.dumps(_in_each(json.loads(text), self.cut))

    def are_in(self, text: str) -> bool:
        """Say whether one of them stands in a text."""
        return any(spelling in text for spelling in self.spellings)


NO_KEYS = Keys(())


def keys_of_environment(suite: str = "", environment: Mapping[str, str] | None = None) -> Keys:
    """Return the keys that the environment holds: by the names of its variables, and the passwords in its addresses.

    `suite` is the JSON of a suite, where it says which variables hold the keys that it uses.
    """
    given = os.environ if environment is None else environment
    named = {name for found in _NAMED_IN_SUITE.findall(suite) for name in found}
    variables = [value.strip(_AROUND) for name, value in given.items() if name in named or _NAMES.search(name.upper())]
    return _known((*variables, *_passwords(given)))


def without_keys(text: str) -> str:
    """Return a text, plain or JSON, without what has the shape of a key."""
    lower = text.lower()
    if any(hint in lower for hint in _HINTS):
        text = _SHAPES.sub(MARK, text)
    if any(hint in lower for hint in _NAME_HINTS):
        text = _NAMED.sub(_marked, text)
    return text


def _marked(found: re.Match[str]) -> str:
    """Return a name without what it held; a number of JSON gives way to a text, in the quotes of its name."""
    name, closing, between, opening = found.groups("")
    quote = "" if opening else closing
    return f"{name}{closing}{between}{opening}{quote}{MARK}{quote}"


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _in_each(value: Any, cut: Callable[[str], str]) -> Any:
    """Return a value of JSON with every text in it cut."""
    if isinstance(value, dict):
        return {cut(name): _in_each(one, cut) for name, one in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_in_each(one, cut) for one in cast("list[Any]", value)]
    return cut(value) if isinstance(value, str) else value


@lru_cache(maxsize=16)
def _known(keys: tuple[str, ...]) -> Keys:
    return Keys.of(keys)


def _passwords(environment: Mapping[str, str]) -> Iterator[str]:
    for name, value in environment.items():
        if _ADDRESSES.search(name.upper()) and (found := _PASSWORD.search(value)):
            yield from (found[1], unquote(found[1]))


def _spellings(key: str) -> set[str]:
    """Return a key as it is, in an address, in JSON, and in JSON that stands in JSON."""
    plain = {key, quote(key, safe=""), quote(key)}
    once = plain | set(chain.from_iterable(map(_in_json, plain)))
    return once | set(chain.from_iterable(map(_in_json, once)))


def _in_json(text: str) -> tuple[str, str]:
    return json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]
