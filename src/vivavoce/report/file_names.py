"""Names of targets as names of files."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from hashlib import blake2b

from vivavoce.report.strict_json import encodable

LONGEST = 50
"""Characters that are kept of a name; in UTF-8, with a mark and an ending, they fit in the 255 bytes of a file name."""


def file_names(targets: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """Return a file name for each target: the name itself, but for characters that may not stand in one.

    Where two would be the same, be it where upper and lower case are one, or where a name is one of the `taken`, each
    gets a mark of its own. No name leaves the folder it is put in.
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
