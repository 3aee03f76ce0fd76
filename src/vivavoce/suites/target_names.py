"""Targets by name, as the command line takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from vivavoce.errors import UsageError
from vivavoce.plugins import is_file_reference, load_object
from vivavoce.suites.target_spec import BUILT_IN_TARGETS, AnyTargetSpec, PluginTargetSpec, TargetSpec
from vivavoce.targets.environment import VARIABLE
from vivavoce.wire.http import checked_url


def read_target(name: str) -> dict[str, Any]:
    """Return the target of a suite for `file.py:function` or `http://host/v1#MODEL`; paths start at the current folder.

    Raises:
        UsageError: the name has neither form, or there is no such file, function or address; the message names the
        option.
    """
    if is_file_reference(name):
        return {"kind": "function", "function": _function(name)}
    if name.startswith(("http://", "https://")):
        base_url, _, model = name.partition("#")
        checked_url(base_url, "--target")
        if not model:
            raise UsageError(f"--target: the model is missing; write {base_url}#MODEL")
        return {"kind": "openai", "base_url": base_url, "model_handles": [model]}
    raise UsageError(f"--target: '{name}' must be file.py:function or http://host/v1#MODEL")


def read_targets(names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the targets of a suite for such names; what would be called the same is called as it is named here.

    Raises:
        UsageError: a name is none, or is given twice.
    """
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"--target: '{twice}' is given twice")
    found = [read_target(name) for name in names]
    called = [target_names(target) for target in found]
    return [
        {**target, "name": name} if called.count(own) > 1 else target
        for name, own, target in zip(names, called, found, strict=True)
    ]


def target_names(target: Mapping[str, Any]) -> list[str]:
    """Return the names, in the results of a run, of a target that is described as in a suite."""
    return [name for name, _ in described_target(target).named]


def described_target(target: Mapping[str, Any]) -> TargetSpec:
    """Return a target that is described as in a suite; settings that are variables, and no texts, are left out.

    A kind that is not built in needs no plugin here, so that a stored run can be read without it.
    """
    if target.get("kind") not in BUILT_IN_TARGETS:
        return PluginTargetSpec.model_validate(target)
    try:
        return _TARGET.validate_python(target)
    except ValidationError as error:
        wrong = {found["loc"][1] for found in error.errors() if len(found["loc"]) > 1}
        variables = {key for key in wrong if VARIABLE.search(str(target.get(str(key))))}
        if not variables:
            raise
        return _TARGET.validate_python({key: value for key, value in target.items() if key not in variables})


_TARGET = TypeAdapter[TargetSpec](AnyTargetSpec)


def _function(name: str) -> str:
    path, _, function = name.rpartition(":")
    if not Path(path).is_file():
        raise UsageError(f"--target: no file '{path}'")
    try:
        load_object(name, Path())
    except UsageError as error:
        raise UsageError(*(p if p.file else f"--target: {p.message}" for p in error.problems)) from error
    return f"{Path(path).resolve()}:{function}"
