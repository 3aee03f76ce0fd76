"""Text from models and targets made safe to show: no control sequences, nothing that turns the reading direction."""

from __future__ import annotations

import re

_CONTROL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[@-_]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)


def safe(text: str) -> str:
    """Return a text without control characters, escape sequences and marks that reverse the reading direction."""
    if text.isprintable():  # which none of these characters is
        return text
    return _CONTROL.sub("", text).encode("utf-8", "replace").decode()


def encodable(text: str) -> str:
    r"""Return a text that can be written as UTF-8: a lone surrogate becomes the six characters `\ud800`."""
    return text.encode("utf-8", "backslashreplace").decode()
