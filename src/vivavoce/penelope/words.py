"""Words: texts in which values are looked up as whole words, and names of classes as words."""

from __future__ import annotations

import re
from collections.abc import Iterable

from vivavoce.comparing.text import FoldedText


def snake_case(name: str) -> str:
    """Return the name of a class in the words of it: `PriceCheck` is `price_check`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


class Words:
    """Texts that are folded once for many values."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = [FoldedText(text) for text in texts]

    def hold(self, value: str) -> bool:
        """Return whether a value with a letter or a digit stands in one of the texts as whole words."""
        return any(map(str.isalnum, value)) and any(text.contains(value, whole=True) for text in self._texts)
