"""The output folder of a run: which it is, and whether it can be written; checked before anything runs."""

from __future__ import annotations

import tempfile
from pathlib import Path

from vivavoce.errors import UsageError
from vivavoce.suites.load import Suite


def output_of(suite: Suite) -> Path | None:
    """Return the output folder that a suite names, None if it names none."""
    named = suite.spec.output
    return suite.base / named if named else None


def check_output(suite: Suite, instead: Path | None = None) -> None:
    """Check that the output folder of a suite, or the one named `instead`, can be written.

    Raises:
        UsageError: it cannot be written; the problem has its place in the suite.
    """
    if instead is not None:
        return check_folder(instead)
    folder = output_of(suite)
    try:
        if folder is not None:
            check_folder(folder)
    except UsageError as error:
        raise UsageError(*suite.document.placed(("output",), error)) from error


def check_folder(folder: Path) -> None:
    """Check that a folder, which may not exist yet, can be created and written; nothing is left behind.

    Raises:
        UsageError: it cannot be written, or a file has its name.
    """
    place = folder.resolve()
    existing = next(one for one in (place, *place.parents) if one.exists())
    if not existing.is_dir():
        raise UsageError(f"{folder} cannot be written: {existing} is a file, and a folder is needed")
    beside = place.parent if place.exists() else existing  # where the files are made before they are moved in
    for one in {existing, beside}:
        try:
            with tempfile.TemporaryDirectory(prefix=".", dir=one):
                pass
        except OSError as error:  # permissions alone do not say it: a file system may be read-only, or no real one
            raise UsageError(f"{folder} cannot be written: {error.strerror or error}") from error
