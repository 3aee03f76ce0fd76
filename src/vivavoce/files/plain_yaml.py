"""YAML as plain data: read from a text, and written so that a person goes on writing."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from vivavoce.errors import Problem, UsageError


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


def yaml_text(value: Any) -> str:
    """Return plain data as YAML that a person goes on writing."""
    writer = YAML(typ="safe", pure=True)
    writer.default_flow_style = False
    writer.sort_base_mapping_type_on_output = False  # pyright: ignore[reportAttributeAccessIssue]
    writer.width = 120
    writer.allow_unicode = True
    out = StringIO()
    writer.dump(value, out)  # pyright: ignore[reportUnknownMemberType]
    return out.getvalue()
