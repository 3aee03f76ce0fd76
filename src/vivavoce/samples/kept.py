"""Versions of a dataset that are kept: copies of the file in a folder beside it, `dataset.jsonl.versions`.

They belong to the dataset and not to a store: what a suite pins is then in the repository with it, for everybody who
runs it. A copy is called by its number and its version, and has the bytes that the file had.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from vivavoce.errors import Problem, UsageError
from vivavoce.files.rows import format_of
from vivavoce.files.whole_file import whole_file
from vivavoce.samples.content import VERSION, Content, read_content

_NAME = re.compile(rf"([0-9]{{1,9}})-({VERSION.pattern})")


@dataclass(frozen=True, slots=True)
class KeptVersion:
    """A copy of a dataset file; `number` counts from 1 in the order in which versions were kept."""

    number: int
    version: str
    path: Path


def kept_versions(dataset: Path) -> list[KeptVersion]:
    """Return the kept versions of a dataset, oldest first."""
    folder = _folder(dataset)
    files = folder.iterdir() if folder.is_dir() else ()
    named = ((_NAME.fullmatch(path.stem), path) for path in files if path.suffix == dataset.suffix)
    return sorted(
        (KeptVersion(int(name[1]), name[2], path) for name, path in named if name),
        key=lambda one: (one.number, one.version),
    )


def keep_version(dataset: Path) -> tuple[KeptVersion, bool]:
    """Keep the present content of a dataset, and return it with whether it is new.

    Raises:
        UsageError: the file cannot be read, has a broken row or two with one id, or the copy cannot be written.
    """
    version, kept = read_content(dataset).version, kept_versions(dataset)
    known = next((one for one in kept if one.version == version), None)
    if known is not None:
        return known, False
    number = max((one.number for one in kept), default=0) + 1
    path = _folder(dataset) / f"{number}-{version}{dataset.suffix}"
    with whole_file(path) as new:
        new.write_bytes(dataset.read_bytes())
        if read_content(new, format_of(dataset)).version != version:
            raise UsageError(Problem("changed while it was kept; try again", dataset))
    return KeptVersion(number, version, path), True


def read_version(dataset: Path, version: str) -> Content:
    """Return the content of a kept version.

    Raises:
        UsageError: it is not kept, or its copy was changed.
    """
    known = kept_versions(dataset)
    found = next((one for one in known if one.version == version), None)
    if found is None:
        raise UsageError(f"{dataset}: {unknown_version(dataset, version)}")
    content = read_content(found.path)
    if content.version != version:
        what = f"was changed after it was kept: it holds {content.version}; restore it, or delete it"
        raise UsageError(Problem(what, found.path))
    return content


def unknown_version(dataset: Path, version: str) -> str:
    """Say that a version of a dataset is not kept, and where else it is or what is kept."""
    other = next((one for one in _others(dataset) if any(version == kept.version for kept in kept_versions(one))), None)
    if other is not None:
        return f"{version} is a version of another dataset, {other.name}"
    known = ", ".join(one.version for one in kept_versions(dataset)[-3:])
    return f"the version {version} is not kept; kept: {known or 'none'}"


def _folder(dataset: Path) -> Path:
    return dataset.with_name(f"{dataset.name}.versions")


def _others(dataset: Path) -> list[Path]:
    """Return the other datasets of the same folder of which versions are kept."""
    beside = (path.with_suffix("") for path in sorted(dataset.parent.glob("*.versions")) if path.is_dir())
    return [path for path in beside if path.name != dataset.name]
