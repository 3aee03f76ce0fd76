"""Lines for a terminal and a log: no control sequences, no commands of a CI server, one line where one is wanted."""

from __future__ import annotations

import re
from collections.abc import Sequence

from vivavoce.safe_text import safe

_COMMAND = re.compile(r"(?<![^\r\n])((?:\x1b\[[0-9;]*m|[^\S\r\n])*)::(?=\w)|##(?=\w*\[)")
"""What the log of a CI server reads as a command: `::error` after spaces, `##[error]` and `##vso[…]` anywhere.

Source: `ActionCommand.TryParseV2` and `TryParse` of GitHub's runner; "Logging commands" of Azure Pipelines.
"""
_IN_JSON = re.compile(r"[\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]|(?<=#)#(?=\w*\[)")


def inert(lines: str) -> str:
    """Return printed lines without CI commands: `::` at the start of a line becomes `: :`, `##[` becomes `# #[`.

    It needs whole printed lines, because only these show what begins a line.
    """
    return _COMMAND.sub(lambda found: "# #" if found[1] is None else f"{found[1]}: :", lines)


def printable(lines: str) -> str:
    """Return lines that control neither a terminal nor the log of a CI server."""
    return inert(safe(lines))


def printable_json(text: str) -> str:
    r"""Return JSON of the same value that is safe to print: control characters and CI commands are escaped as `\u…`."""
    return _IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def count(number: int, noun: str) -> str:
    """Return a number with its noun: `1 sample`, `2 samples`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(phrases: Sequence[str], most: int = 3) -> str:
    """Return one or more phrases as a list in a sentence, which names so many of them at most."""
    named = [*phrases[:most], *([f"{len(phrases) - most:,} more"] if len(phrases) > most else [])]
    return ", ".join(named[:-1]) + " and " + named[-1] if len(named) > 1 else named[0]


def one_line(text: str, width: int = 100) -> str:
    """Return a text as one line of at most `width` characters."""
    line = " ".join(safe(text).split())
    return line if len(line) <= width else line[: width - 1] + "…"
