"""`--env-file`: variables for a command out of a file, which is read only when it is named."""

from __future__ import annotations

import os
import re
from pathlib import Path

from vivavoce.errors import Problem, UsageError

_LINE = re.compile(r"(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*)", re.ASCII)
_QUOTED = re.compile(r"""'([^']*)'|"((?:[^"\\]|\\.)*)\"""")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}


def load_env_file(path: Path) -> None:
    """Put the variables of a file into the environment; one that is set there already stays as it is.

    Raises:
        UsageError: the file cannot be read, or a line of it is not `NAME=value`.
    """
    for name, value in read_env_file(path).items():
        os.environ.setdefault(name, value)


def read_env_file(path: Path) -> dict[str, str]:
    """Return the variables of a file with a `NAME=value` on each line; values may be quoted, `#` begins a comment.

    Raises:
        UsageError: the file cannot be read, or a line of it is something else; values are never shown.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"--env-file: {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"--env-file: {path} is not UTF-8") from error
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        read = _LINE.fullmatch(stripped)
        value = None if read is None else _value(read[2])
        if read is None or value is None or "\0" in value:
            rule = 'is not NAME=value; put a value with spaces or # in quotes: NAME="…"'
            raise UsageError(Problem(rule, path, number))
        found[read[1]] = value
    return found


def _value(text: str) -> str | None:
    """Return a value without its quotes and without the comment after it; None if a quote has no end."""
    if text[:1] not in ("'", '"'):
        return re.split(r"(?:^|\s+)#", text, maxsplit=1)[0].strip()
    found = _QUOTED.match(text)
    if found is None or not re.fullmatch(r"\s*(#.*)?", text[found.end() :]):
        return None
    if found[1] is not None:
        return found[1]
    return re.sub(r"\\(.)", lambda escaped: _ESCAPED.get(escaped[1], escaped[1]), found[2])
