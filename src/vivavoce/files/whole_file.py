"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from vivavoce.errors import UsageError


@contextmanager
def whole_file(path: Path) -> Generator[Path]:
    """Provide a temporary path next to `path`, and move the written file into place if there was no error.

    A pipe or a device is written to as it is.

    Raises:
        UsageError: the file cannot be written.
    """
    try:
        if path.exists() and not path.is_file():
            yield path
            return
        real = path.resolve()
        real.parent.mkdir(parents=True, exist_ok=True)
        beside = real.with_name(f".{secrets.token_hex(8)}.part")
        try:
            yield beside
            os.replace(beside, real)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error
