r"""Patterns of JSON Schema, which follow ECMA 262, as regular expressions of the library that searches here.

The two differ where a text would pass that the pattern forbids: `$` is the end only, not also before a last line break;
`\d`, `\w`, and `\b` are about ASCII; `\s` and `.` have their own lists of spaces and line ends.
"""

from __future__ import annotations

import re
from functools import lru_cache

from vivavoce.expressions import Expression

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
_TOKEN = re.compile(r"\\u\{[0-9A-Fa-f]{1,6}\}|\\k<\w+>|\\.|\[\^\]|\[\]|\[\^?|.", re.DOTALL)


@lru_cache(maxsize=512)
def schema_pattern(text: str) -> Expression:
    """Return the expression of a pattern, made once.

    Raises:
        UsageError: the text is not a regular expression.
    """
    return Expression(_translated(text), shown=text)


def _translated(text: str) -> str:
    parts: list[str] = []
    in_class = False
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token.startswith(r"\u{"):
            parts.append(f"\\U{int(token[3:-1], 16):08x}")
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
