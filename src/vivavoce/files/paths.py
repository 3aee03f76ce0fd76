"""Names of files: texts that are no more than one, and files that are written whole or not at all."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from vivavoce.errors import UsageError
from vivavoce.plugins import may_name_file

SCHEME = "file://"
_NAME = re.compile(
    r"@?\S+\.(txt|md|markdown|rst|jinja2?|j2|tmpl|tpl|mustache|hbs|prompt|prompty|ya?ml|json|html?|xml|py)"
)
"""A word that ends as the names of files of texts and templates do."""
_MAX_CHARS = 255
"""The longest name of a file."""


def names_file(text: str, base: Path) -> bool:
    """Return whether a text is no more than the name or address of a file; one of any name may be in `base`."""
    word = text.strip()
    if not word or len(word) > _MAX_CHARS or "\n" in word:
        return False
    if word.lower().startswith(SCHEME) or _NAME.fullmatch(word.lower()):
        return True
    try:
        return may_name_file() and (base / word).is_file()
    except (OSError, ValueError):
        return False


def check_text(text: str, base: Path, twin: str) -> None:
    """Refuse a text that is only the name of a file; `twin` is the key under which the file is read.

    Raises:
        ValueError: it is one.
    """
    if names_file(text, base):
        name = text.strip().removeprefix("@")
        name = name[len(SCHEME) :] if name.lower().startswith(SCHEME) else name
        raise ValueError(f"looks like a file name but would be used as text; write {twin}: {name}")


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
