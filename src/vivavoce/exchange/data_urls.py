"""Data that stands in its own address: `data:image/png;base64,…`."""

from __future__ import annotations


def embedded(url: str) -> tuple[str, str] | None:
    """Return the media type and the base64 text of a data URL; None for another address."""
    kind, comma, data = url.partition(",")
    if comma and kind.startswith("data:") and kind.endswith(";base64"):
        return kind[len("data:") : -len(";base64")], data
    return None
