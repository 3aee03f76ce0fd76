"""Placeholders, masked values, and JSON in place of words, which no user says and no scenario needs."""

from __future__ import annotations

import re
import unicodedata
from typing import cast

from vivavoce.comparing.json_values import parse

_PLACEHOLDER = re.compile(r"\s*(?:<[^<>\n]*>|\[[^\[\]\n]*\]|\{\{.*\}\}|\$\{\w+\})[\s.!?]*", re.DOTALL)
_MASKED = re.compile(
    r"\[[^\[\]\n]*…[^\[\]\n]*\]|\[(?:redacted|masked|email|e-mail|phone|name|address)\b[^\[\]\n]*\]", re.I
)
_MASKED_ADDRESS = re.compile(r"\[e-?mail\b[^\[\]\n]*\]", re.IGNORECASE)

_MESSAGE_KEYS = frozenset(("message", "content", "text", "role", "reasoning", "tool", "tool_calls", "arguments"))

_EMPTY_WORDS = frozenset(("", "none", "n/a", "na", "null", "nothing", "not applicable", "keine", "nichts", "[]", "{}"))

MADE_UP_ADDRESS = "kim@example.org"
"""An address that belongs to nobody, in place of a masked one."""


def placeholder_in(text: str) -> str | None:
    """Return what of a text is not said by anybody, in words; None where all of it may be."""
    if not any(unicodedata.category(letter)[0] in "LNS" for letter in text):
        return "it has no letter, digit or symbol"
    if _PLACEHOLDER.fullmatch(text):
        return "it is a placeholder"
    if masked := _MASKED.search(text):
        return f"{masked[0]} is masked"
    if text.lstrip()[:1] == "{" and _is_json(text):
        return "it is JSON"
    return None


def is_empty_word(text: str) -> bool:
    """Say whether a text is a word that some models write where there is nothing to say, such as "none"."""
    return text.strip().strip(".").casefold() in _EMPTY_WORDS


def with_made_up_address(text: str) -> str:
    """Return a text in which a masked address is one that belongs to nobody."""
    return _MASKED_ADDRESS.sub(MADE_UP_ADDRESS, text)


def _is_json(text: str) -> bool:
    """Say whether a text is a message in JSON, such as `{"message": "Hi"}`; other JSON may be what a user pastes."""
    try:
        value: object = parse(text)
    except ValueError:
        return False
    return isinstance(value, dict) and not _MESSAGE_KEYS.isdisjoint(cast("dict[str, object]", value))
