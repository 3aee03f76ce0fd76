"""Words: texts in which values are looked up as whole words, and names of classes as words."""

from __future__ import annotations

import re
from collections.abc import Iterable

from vivavoce.metrics.evidence import plain

_LETTER = r"[^\W_\u0e00-\u109f\u1780-\u17ff\u2e80-\ua4cf]"  # of scripts that set words apart


def spelled_small(name: str) -> str:
    """Return the name of a class in the words of it: `PriceCheck` is `price_check`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


class Words:
    """Texts, made ready once for many values; capitals, kinds of quotation marks and dashes, and spacing may differ."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._text = "\n".join(map(plain, texts))  # no value holds a line end, so none is found across two texts

    def hold(self, value: str) -> bool:
        """Say whether a value stands in one of the texts as whole words."""
        needle = plain(value)
        if not any(map(str.isalnum, needle)) or needle not in self._text:
            return False
        before = f"(?<!{_LETTER})" if re.match(_LETTER, needle[0]) else ""
        after = f"(?!{_LETTER})" if re.match(_LETTER, needle[-1]) else ""
        return re.search(f"{before}{re.escape(needle)}{after}", self._text) is not None
