"""Where what comes in is kept: beside the file of the store, or in the workspace where the store is a server."""

from __future__ import annotations

import re
from pathlib import Path

from vivavoce.settings import WORKSPACE
from vivavoce.store.database.address import is_postgresql


def spool_path(place: str, name: str) -> Path:
    """Return the file in which a watch of this name keeps what comes in."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "production"
    beside = WORKSPACE / "vivavoce" if is_postgresql(place) else Path(place)
    return beside.with_name(f"{beside.name}.{plain}.traces")
