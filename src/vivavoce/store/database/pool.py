"""How many connections an open store keeps, so that none is made and closed for one question."""

from __future__ import annotations

KEPT = 16
"""Connections; of more that are needed at once, each is closed after its use."""
