"""`Request`: one body that a tool's interface takes; and the requests of a run as files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from vivavoce.errors import UsageError
from vivavoce.files.whole_file import whole_file
from vivavoce.report.strict_json import strict_json
from vivavoce.report.text import count


class Kind(NamedTuple):
    """One address of a tool that takes bodies: the name of the `file` of such bodies, and what one item is called."""

    file: str
    path: str
    item: str
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """A body to post, which holds so many items; `older` is what a server takes instead that refuses it."""

    kind: Kind
    body: Any
    items: int = 1
    older: Request | None = None


def write_requests(requests: Iterable[Request], kinds: Sequence[Kind], directory: Path) -> Counter[str]:
    """Write the bodies into a folder, a file for each address and a line for each body; return the items by name.

    Requests come sorted by kind. A file of a kind that has no requests is removed.

    Raises:
        UsageError: the folder cannot be written.
    """
    written: Counter[str] = Counter()
    names: set[str] = set()
    for kind, group in groupby(requests, key=lambda one: one.kind):
        names.add(kind.file)
        with whole_file(directory / kind.file) as path, path.open("w", encoding="utf-8", newline="") as file:
            for one in group:
                file.write(strict_json(one.body) + "\n")
                written[kind.item] += one.items
    try:
        for kind in kinds:
            if kind.file not in names:
                (directory / kind.file).unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{directory}: cannot be written: {error.strerror or error}") from error
    return written


def counted(items: Mapping[str, int]) -> str:
    """Return how many items there are, in words."""
    return ", ".join(count(number, item) for item, number in items.items()) or "nothing"
