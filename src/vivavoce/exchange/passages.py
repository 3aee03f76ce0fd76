"""Passages that were looked up, as retrievers return them."""

from __future__ import annotations

from typing import Any, cast

from vivavoce.exchange.shapes import fields_in

_PASSAGES = ("page_content", "pageContent", "content", "text")


def passages_in(value: Any) -> list[str]:
    """Return the texts of passages that were looked up, as a list of texts or of objects with a text."""
    fields = fields_in(value)
    held: Any = fields.get("documents", fields.get("output", value))
    found: list[str] = []
    for one in cast("list[Any]", held) if isinstance(held, list) else []:
        inner = fields_in(one)
        inner = {**inner, **fields_in(inner.get("kwargs")), **fields_in(inner.get("document"))}
        text = one if isinstance(one, str) else next((inner[key] for key in _PASSAGES if key in inner), None)
        if isinstance(text, str) and text:
            found.append(text)
    return found
