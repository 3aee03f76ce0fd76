"""Fingerprints: hashes of everything that decides a score, stored with it."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def fingerprint(parts: Any) -> str:
    """Return a hash of everything that decides a score."""
    text = json.dumps(parts, sort_keys=True, default=str, ensure_ascii=False)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
