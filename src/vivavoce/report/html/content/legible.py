"""`legible`: text without what controls a terminal; what turns the reading direction stays and is shown by name."""

from __future__ import annotations

import re
from collections.abc import Iterator

_CONTROL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, movements
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles, hyperlinks and other strings, with what they hold
    r"|\x1b[ -/]*[0-~]?"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)
"""Source: ECMA-48, "Control functions": CSI, and the control strings OSC, DCS, SOS, PM, APC."""

_ANY_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

_TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Embeddings, overrides and isolates, with which words can be made to look like others.

Source: Unicode Standard Annex #9, "Explicit Directional Formatting Characters".
"""


def legible(text: str) -> str:
    """Return a text without control characters and escape sequences; half a surrogate pair is a question mark."""
    if _ANY_CONTROL.search(text) is not None:
        text = _CONTROL.sub("", text)
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def turning(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the pieces of a text, and the names of the characters in it that turn the reading direction as True."""
    position = 0
    for found in _TURNING.finditer(text):
        if found.start() > position:
            yield text[position : found.start()], False
        yield f"U+{ord(found[0]):04X}", True
        position = found.end()
    if position < len(text) or not text:
        yield text[position:], False
