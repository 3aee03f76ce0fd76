"""Where the conversations of a run come from: whether its record is enough to hold or to grade them again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vivavoce.records.redaction import MARK
from vivavoce.records.run import Run

GIVEN_IN_PYTHON = "given in Python"
"""The dataset of a run over conversations that are not in a file, or in a file that only the caller can find."""

WATCHED = "traces as they came"
"""The dataset of a run over conversations that `viva watch-traces` received."""

IN_PARTS = "parts"
"""The option of a run whose parts were made by several processes: the folder with their files."""

REQUEST = ("url", "headers", "body")
"""The parts of a target that form a request, where a user may have written a key."""


def is_from_python(run: Run) -> bool:
    """Return whether only the caller has the conversations of a run."""
    return run.options.get("dataset") == GIVEN_IN_PYTHON


def is_watched(run: Run) -> bool:
    """Return whether the conversations of a run came in as traces, and are nowhere else."""
    return run.options.get("dataset") == WATCHED


def parts_of(run: Run) -> str | None:
    """Return the folder with the parts of a run, None where it was made in one piece."""
    return run.options.get(IN_PARTS)


def lacks_key(run: Run) -> bool:
    """Return whether a target of a run contained a key, which was not stored."""
    return any(MARK in str(target.get(part)) for target in described_targets(run.spec) for part in REQUEST)


def described_targets(suite: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the targets of a suite that is plain data."""
    return [suite["target"]] if suite.get("target") else list(suite.get("targets") or ())
