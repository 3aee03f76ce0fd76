"""Suites of other tools, translated into ours, with a report of what has no translation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from vivavoce.conversations.format import Loss
from vivavoce.errors import Problem, UsageError, did_you_mean
from vivavoce.plugins import lazy

Suite = dict[str, Any]
"""A suite of ours as plain data, its samples in `dataset.rows`."""

SUITE = "suite"
"""What `--to` is called for a suite."""


@dataclass(frozen=True, slots=True)
class SuiteFormat:
    """Suites of one tool: `fits` says of a path and the text of the file whether it is one."""

    name: str
    title: str
    fits: Callable[[Path, str], bool]
    read: Callable[[Path, str, Loss], Suite]


_MODULES = {"promptfoo": "promptfoo_suite", "deepeval": "deepeval_suite"}


def suite_formats() -> list[SuiteFormat]:
    """Return the tools whose suites can be translated."""
    return [cast("SuiteFormat", lazy(f"vivavoce.features.formats.{module}:FORMAT")) for module in _MODULES.values()]


def translate(path: Path, name: str | None, loss: Loss) -> tuple[SuiteFormat, Suite]:
    """Return a suite of another tool as one of ours; what has no translation is in the report.

    Nothing of the file is executed.

    Raises:
        UsageError: the file cannot be read, or is not a suite that we know.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(Problem(f"cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8'}", path)) from error
    if name is not None and name not in _MODULES:
        raise UsageError(f"cannot translate suites of '{name}'{did_you_mean(name, _MODULES)}: {', '.join(_MODULES)}")
    for known in suite_formats():
        if name == known.name or (name is None and known.fits(path, text)):
            loss.format = known.title
            return known, known.read(path, text, loss)
    raise UsageError(Problem(f"is not a suite of {' or '.join(one.title for one in suite_formats())}", path))
