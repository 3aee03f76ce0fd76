"""The git commit of the folder of a suite, so that a run says which code it was made with."""

from __future__ import annotations

import re
from pathlib import Path

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


def revision_of(folder: Path) -> str | None:
    """Return the commit that is checked out where a folder is, None outside git or where it cannot be told.

    Nothing is executed: only the files of git are read, which know nothing of changes that are not committed.
    Source: gitrepository-layout(5), `HEAD`, `packed-refs`, `commondir`.
    """
    try:
        return _commit(folder.absolute())
    except (OSError, UnicodeError):  # no permission, no text: the commit is not known, and a run needs none
        return None


def _commit(folder: Path) -> str | None:
    place = next((one / ".git" for one in (folder, *folder.parents) if (one / ".git").exists()), None)
    if place is None:
        return None
    if place.is_file():
        place = place.parent / place.read_text("utf-8").removeprefix("gitdir:").strip()
    head = (place / "HEAD").read_text("utf-8").strip()
    if not head.startswith("ref:"):
        return _whole(head)
    name, common = head.removeprefix("ref:").strip(), place / "commondir"
    shared = place / common.read_text("utf-8").strip() if common.is_file() else place
    for home in (place, shared):
        if (home / name).is_file():
            return _whole((home / name).read_text("utf-8").strip())
    packed = shared / "packed-refs"
    lines = packed.read_text("utf-8").splitlines() if packed.is_file() else []
    return next((_whole(line.split(" ")[0]) for line in lines if line.endswith(f" {name}")), None)


def _whole(text: str) -> str | None:
    return text if _COMMIT.fullmatch(text) else None
