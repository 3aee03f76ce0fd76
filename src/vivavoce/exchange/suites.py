"""Suites of other tools, translated into ours, with a report of what has no translation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, cast

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from vivavoce.errors import Problem, UsageError, did_you_mean
from vivavoce.exchange.format import Loss
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
    return [cast("SuiteFormat", lazy(f"vivavoce.exchange.{module}:FORMAT")) for module in _MODULES.values()]


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


def read_yaml(path: Path, text: str) -> Any:
    """Return what YAML or JSON text holds, as plain data.

    Raises:
        UsageError: it is neither.
    """
    try:
        return YAML(typ="safe", pure=True).load(text)  # pyright: ignore[reportUnknownMemberType]
    except (YAMLError, ValueError) as error:
        mark: Any = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise UsageError(Problem(f"is not YAML: {what}", path, mark.line + 1 if mark else None)) from error


def yaml_text(suite: Suite) -> str:
    """Return a suite as YAML that a person goes on writing."""
    writer = YAML(typ="safe", pure=True)
    writer.default_flow_style = False
    writer.sort_base_mapping_type_on_output = False  # pyright: ignore[reportAttributeAccessIssue]
    writer.width = 120
    writer.allow_unicode = True
    out = StringIO()
    writer.dump(suite, out)  # pyright: ignore[reportUnknownMemberType]
    return out.getvalue()
