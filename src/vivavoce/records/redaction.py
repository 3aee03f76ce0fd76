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
"""What is in the place of a key."""

MIN_KEY_CHARS = 8
"""Characters that a key has at least; a shorter one could be in any text by chance."""
_LONG = 16
"""Characters from which a key is cut whatever it looks like; a shorter one may be a word, as `not-needed` is."""
_PLAIN = re.compile(r"[\W\d_]*|[A-Z]?[^\W\d_A-Z]+(?:[ '._-][A-Z]?[^\W\d_A-Z]+)*|[A-Z]+(?:[ '._-][A-Z]+)*")
"""Words and numbers, also several of them: `changeme`, `not-needed`, `2024-05-01`."""

_NAMES = re.compile(
    r"(?:^|_)(?:(?:API|ACCESS|SECRET|PRIVATE|AUTH)?_?KEY|TOKEN|SECRET|PASS|PAT|AUTH|CREDENTIALS?)$"
    r"|(?:PASSWORD|PASSWD|PASSPHRASE|_PWD)$"
)
"""Endings of the names of variables that hold keys; PWD and OLDPWD are folders."""
_ADDRESSES = re.compile(r"(?:^|_)(?:URL|URI|DSN|STORE)$")
"""Endings of the names of variables that hold addresses, which may hold a password."""
_AROUND = " \t\r\n\"'"
"""What may stand around a key in a variable; files of variables leave quotes as they are."""
_LOGIN = re.compile(r"://([^/@:?#]*)(?::(.+))?@")
"""The user and the password of an address."""
_NAMED_IN_SUITE = re.compile(r'"api_key_env":\s*"(\w+)"|(?<!\$)\$\{(\w+)(?::-[^{}]*)?\}')
_NO_KEY_IN_SUITE = re.compile(
    r'"(?:(?:policy_|prompt_)?path|function|metric|extractor|model|judge)":\s*"(?:[^"\\]|\\.)*"'
    r'|"model_handles":\s*\[[^\]]*\]'
)
"""Names of files, functions and models in a suite: a variable in them holds no key, unless its name says so."""

_SHAPES = re.compile(
    r"""
    (?<![\w-])(?:
        sk-[\w-]{16,} | viva_[\w-]{43} | (?:AKIA|ASIA)[0-9A-Z]{16} | gh[pousr]_\w{36,} | github_pat_\w{22,}
      | glpat-[\w-]{20,} | xox[abprs]-[\w-]{10,} | AIza[\w-]{35} | hf_\w{30,} | eyJ[\w-]+\.eyJ[\w-]+\.[\w-]+
      | [sr]k_(?:live|test)_\w{16,} | whsec_\w{16,} | npm_\w{30,} | pypi-[\w-]{40,} | dckr_pat_[\w-]{20,}
      | shp(?:at|ca|pa|ss)_\w{24,} | dop_v1_\w{40,} | SG\.[\w-]{16,}\.[\w-]{16,} | xapp-[\w-]{16,} | ya29\.[\w-]{20,}
      | gsk_\w{30,} | xai-\w{30,} | nvapi-[\w-]{30,} | pplx-\w{30,} | r8_\w{30,} | lin_api_\w{30,}
    )
    | -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----[^"']*?(?:-----END\ [A-Z ]*PRIVATE\ KEY-----|(?=\\{0,3}["'])|\Z)
    | (?<=(?i:bearer)\ )(?=\S*\d)[\w.~+/=-]{8,}
    | (?<=(?i:basic)\ )(?=\S*[\dA-Z=])[\w+/]{8,}={0,2}
    | (?<=://)[^\s/@:"'\\]*:[^\s/@"'\\]+(?=@)
    | (?<=://)(?=[^\s/@:"'\\]*\d)[^\s/@:"'\\]{16,}(?=@)
    """,
    re.VERBOSE | re.ASCII,
)
_KEY_BY_NAME = re.compile(
    r"""(\b(?:api[-_]?key|(?:proxy-)?authorization|x-api-key|(?:access|auth)[-_]token|client[-_]secret|\w*(?:password|passwd|passphrase|_pwd))\b)"""
    r"""(\\?["'])?(\s*[:=]\s*)(?:(\\?["'])|(?!\[))(?!bearer\b|basic\b|\$?\{)[^\s"',;}\\]{8,}""",
    re.IGNORECASE | re.ASCII,
)
"""The name of a header or a field and what it holds, unless that is a variable."""
_HINTS = (
    *("sk-", "viva_", "akia", "asia", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "aiza"),
    *("hf_", "eyj", "private key", "bearer ", "basic ", "://", "k_live_", "k_test_", "whsec_", "npm_", "pypi-"),
    *(
        "dckr_pat_",
        "shpat_",
        "shpca_",
        "shppa_",
        "shpss_",
        "dop_v1_",
        "sg.",
        "xapp-",
        "ya29.",
        "gsk_",
        "xai-",
        "nvapi-",
    ),
    *("pplx-", "r8_", "lin_api_"),
)
_NAME_HINTS = ("key", "authorization", "token", "secret", "passw", "passphrase", "_pwd")
"""What a text holds, in lower case, that is worth a look; to see that it holds none is much quicker than the look."""


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys that are known by their value, each in every spelling in which it may be in a record."""

    spellings: tuple[str, ...]

    @classmethod
    def of(cls, keys: Iterable[str]) -> Keys:
        """Return what knows these keys; those that may be a word or a number are left out."""
        spellings = {spelling for key in keys if _is_secret(key) for spelling in _spellings(key)}
        return cls(tuple(sorted(spellings, key=len, reverse=True)))

    def cut(self, text: str) -> str:
        """Return a text, plain or JSON, without the keys; what was JSON still is."""
        left = text
        for spelling in self.spellings:
            left = left.replace(spelling, MARK)
        if left == text or not _is_json(text) or _is_json(left):
            return left
        return json.dumps(_in_each(json.loads(text), self.cut))

    def are_in(self, text: str) -> bool:
        """Say whether one of them is in a text."""
        return any(spelling in text for spelling in self.spellings)


NO_KEYS = Keys(())


def keys_of_environment(suite: str = "", environment: Mapping[str, str] | None = None) -> Keys:
    """Return the keys that the environment holds: by the names of its variables, and the logins in its addresses.

    `suite` is the JSON of a suite, where it says which variables hold the keys that it uses.
    """
    environ = os.environ if environment is None else environment
    suite_names = {name for groups in _NAMED_IN_SUITE.findall(_NO_KEY_IN_SUITE.sub("", suite)) for name in groups}
    variables = [value.strip(_AROUND) for name, value in environ.items() if name in suite_names or _names_key(name)]
    return _cached_keys((*variables, *_logins(environ)))


def without_keys(text: str) -> str:
    """Return a text, plain or JSON, without what has the shape of a key."""
    lower = text.lower()
    if any(hint in lower for hint in _HINTS):
        text = _SHAPES.sub(MARK, text)
    if any(hint in lower for hint in _NAME_HINTS):
        text = _KEY_BY_NAME.sub(_mark, text)
    return text


@lru_cache(maxsize=1024)
def _names_key(variable: str) -> bool:
    return _NAMES.search(variable.upper()) is not None


@lru_cache(maxsize=1024)
def _names_address(variable: str) -> bool:
    return _ADDRESSES.search(variable.upper()) is not None


def _mark(match: re.Match[str]) -> str:
    """Return a name without what it held; a number of JSON gives way to a text, in the quotes of its name."""
    name, closing, between, opening = match.groups("")
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
        return {cut(name): _in_each(entry, cut) for name, entry in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_in_each(entry, cut) for entry in cast("list[Any]", value)]
    return cut(value) if isinstance(value, str) else value


@lru_cache(maxsize=16)
def _cached_keys(keys: tuple[str, ...]) -> Keys:
    return Keys.of(keys)


def _is_secret(key: str) -> bool:
    return len(key) >= _LONG or (len(key) >= MIN_KEY_CHARS and not _PLAIN.fullmatch(key))


def _logins(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the passwords of addresses, and the users that are keys themselves, as in a DSN of Sentry."""
    for name, value in environment.items():
        if _names_address(name) and (match := _LOGIN.search(value)):
            user, password = match.groups("")
            yield from (password, unquote(password))
            if len(user) >= _LONG and not _PLAIN.fullmatch(user):
                yield from (user, unquote(user))


def _spellings(key: str) -> set[str]:
    """Return a key as it is, in an address, in JSON, and in JSON that is in JSON."""
    plain = {key, quote(key, safe=""), quote(key)}
    once = plain | set(chain.from_iterable(map(_in_json, plain)))
    return once | set(chain.from_iterable(map(_in_json, once)))


def _in_json(text: str) -> tuple[str, str]:
    return json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]
