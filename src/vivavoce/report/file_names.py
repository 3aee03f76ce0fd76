"""Names of targets as names of files."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from hashlib import blake2b

from vivavoce.safe_text import encodable

LONGEST = 50
"""Characters that are kept of a name; in UTF-8, with a suffix and an extension, they fit in the 255 bytes of a file
name."""


def file_names(targets: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """Return a file name for each target: its name without characters that are not allowed in file names.

    If two names would be the same, also when case is ignored, or if a name is among the `taken`, each gets its own
    suffix. No name can leave its folder.
    """
    plain = {target: _plain(target) for target in targets}
    claims = Counter(name.casefold() for name in [*plain.values(), *taken])
    return {
        target: name if claims[name.casefold()] == 1 else f"{name}~{_mark(target)}" for target, name in plain.items()
    }


def _plain(target: str) -> str:
    name = re.sub(r"[^\w.-]", "-", unicodedata.normalize("NFKC", target))[:LONGEST]
    return name.lstrip(".") or "target"


def _mark(target: str) -> str:
    return blake2b(encodable(target).encode(), digest_size=6).hexdigest()
