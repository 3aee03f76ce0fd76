"""How the text parts of one message become one text.

Providers cut the text of a message anywhere: at a citation, at the end of a streamed chunk, in the middle of a word.
They document that the parts are concatenated, so nothing is put between them.
"""

from __future__ import annotations

from collections.abc import Iterable


def join_text_parts(parts: Iterable[str]) -> str:
    """Return the text of a message that holds these text parts."""
    return "".join(parts)
