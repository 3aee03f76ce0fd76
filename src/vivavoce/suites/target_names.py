"""Targets by name, as the command line takes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vivavoce.errors import UsageError
from vivavoce.plugins import is_file_reference


def read_target(name: str) -> dict[str, Any]:
    """Return the target of a suite for `file.py:function` or `http://host/v1#MODEL`; paths start where we run.

    Raises:
        UsageError: the name has neither form.
    """
    if is_file_reference(name):
        path, _, function = name.rpartition(":")
        return {"kind": "function", "function": f"{Path(path).resolve()}:{function}"}
    if name.startswith(("http://", "https://")):
        base_url, _, model = name.partition("#")
        if not model:
            raise UsageError(f"target '{name}': the model is missing; write {base_url}#MODEL")
        return {"kind": "openai", "base_url": base_url, "model_handles": [model]}
    raise UsageError(f"target '{name}' has neither of the forms file.py:function and http://host/v1#MODEL")
