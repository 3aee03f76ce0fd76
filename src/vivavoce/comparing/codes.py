"""Codes in text, such as `TK-8812`: what all spellings of a code share, whatever its case, marks, and spaces.

A code has a digit. A mark for decimals or times between two digits stays a part of it: `24.90` is not `2490`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from vivavoce.comparing.text import GAP, MIN_CODE_CHARS, PlainText, fold

_WORD = r"[^\W_]+"
_CODE = re.compile(rf"{_WORD}(?:{GAP}{_WORD})*")
_SIGN = re.compile(r"[^\W_]|(?<=\d)[.,:'](?=\d)(?!\d{3}(?!\d))")
"""What counts in a code: letters, digits, and marks that are not those of thousands."""
_AROUND = "+()[]{}<>\"'`#.,;:!?*_ \t\r\n"
"""Signs around a code that are not a part of it."""
_EMPHASIS = "*_~`"
_MIN_DIGITS = 2
"""Digits of a code that is looked for in longer texts."""
_CENTS = re.compile(r"[.,]\d{1,2}\Z")
"""What ends an amount."""
_MAX_CODE_CHARS = 80
_MAX_CHARS = 4 * _MAX_CODE_CHARS
"""Characters of a code with the marks and spaces in it."""
_MAX_WORDS = 8
"""Words that a code in a longer text is written in: an IBAN has six groups."""


def code_of(text: str) -> str | None:
    """Return what all spellings of a code share, None for a text that is something else, such as a number or words."""
    return _read_code(_plain(text).strip(_AROUND))


def _read_code(plain: str) -> str | None:
    if not _has_digit(plain) or len(plain) > _MAX_CHARS or not _CODE.fullmatch(plain):
        return None
    code = "".join(_SIGN.findall(plain))
    if len(code) > _MAX_CODE_CHARS:
        return None
    if not any(map(str.isalpha, code)) and (len(code) < MIN_CODE_CHARS or _CENTS.search(plain)):
        return None
    return code


def codes_in(text: str) -> Iterator[str]:
    """Yield what `code_of` gives for each code of at least four characters that a text may name anywhere in it.

    Words with digits that follow each other may be one code, with a word of letters before them: `TK 88 12`.
    """
    words = [word.strip(_AROUND) for word in _plain(text).split()]
    for start, word in enumerate(words):
        if not _has_digit(word) and not (start + 1 < len(words) and _has_digit(words[start + 1])):
            continue
        for end in range(start, min(start + _MAX_WORDS, len(words))):
            if end > start and not _has_digit(words[end]):
                break
            text = " ".join(words[start : end + 1])
            if len(text) > _MAX_CHARS:
                break
            if (code := _read_code(text)) is not None and _is_long(code):
                yield code


def _is_long(code: str) -> bool:
    return len(code) >= MIN_CODE_CHARS and sum(map(str.isdecimal, code)) >= _MIN_DIGITS


def _plain(text: str) -> str:
    return fold(PlainText(text, without=_EMPHASIS).text)


def _has_digit(text: str) -> bool:
    return any(map(str.isdecimal, text))
