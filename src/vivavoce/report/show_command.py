"""The command that shows a conversation of a run."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from vivavoce.safe_text import safe


def show_command(run_id: str, sample: str, options: Sequence[str] = ()) -> str:
    """Return the command as a shell takes it; `options` are those that it needs to find the run, such as `--store`."""
    words = [run_id, *(["--"] if sample.startswith("-") else []), sample]
    return shlex.join(["viva", "show", *options, *map(safe, words)])
