"""The targets of a suite of letta-evals, under our keys."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any, cast

from vivavoce.errors import did_you_mean
from vivavoce.suites.document import KeyPath
from vivavoce.suites.letta_models import MODEL_CONFIGS, handle_of
from vivavoce.suites.translation import Translation, targets_of

KINDS = {"agent": "letta", "letta_agent": "letta"}
REFUSED = {"memory_workspace": "a memory workspace is not supported; use memory_dir"}
DROPPED = {
    "pricing": "the cost of a Letta target is not computed",
    "allowed_tools": "the command line has no such option, and letta-evals sent none; use flags",
    "disallowed_tools": "the command line has no such option, and letta-evals sent none; use flags",
}


def translate_targets(work: Translation) -> None:
    """Give the keys of the targets, and those beside them that are about agents, our names."""
    for at, target in targets_of(work.data).items():
        kind = target.get("kind")
        if kind in KINDS:
            target["kind"] = KINDS[kind]
            work.note((*at, "kind"), f"'{kind}' is called '{target['kind']}' here")
        if work.era is not None and not work.replaced:
            _target_keys(work, at, target)
    _cleanup(work)


def _target_keys(work: Translation, at: KeyPath, target: dict[str, Any]) -> None:
    for key, reason in REFUSED.items():
        if target.pop(key, None) not in (None, False):
            work.refuse((*at, key), reason)
    for key, reason in DROPPED.items():
        if target.pop(key, None) is not None:
            work.note((*at, key), f"is ignored: {reason}")
    _model_configs(work, (*at, "model_configs"), target)
    _once(work, (*at, "model_handles"), target)
    if target.get("kind") == "letta_code":
        _folders(work, at, target)


def _model_configs(work: Translation, at: KeyPath, target: dict[str, Any]) -> None:
    """Replace names of files inside letta-evals by the handles of their models."""
    names = target.pop("model_configs", None)
    if not isinstance(names, list):
        return
    known: list[Any] = []
    for i, name in enumerate(cast("list[Any]", names)):
        if (handle := handle_of(str(name))) is None:
            hint = did_you_mean(str(name), MODEL_CONFIGS)
            work.refuse((*at, i), f"names no known file of letta-evals: '{name}'{hint}; list model_handles instead")
        known.append(handle or name)
    target["model_handles"] = [*target.get("model_handles", []), *known]
    work.note(at, "is model_handles here; the context window and the reasoning effort of those files are left out")


def _once(work: Translation, at: KeyPath, target: dict[str, Any]) -> None:
    """List each model once: letta-evals put the results of a model that is listed twice into one file."""
    handles = target.get("model_handles")
    if isinstance(handles, list):
        once = list(dict.fromkeys(cast("list[Any]", handles)))
        if len(once) < len(cast("list[Any]", handles)):
            target["model_handles"] = once
            work.note(at, "lists a model more than once; each is run once, and trials says how often")


def _folders(work: Translation, at: KeyPath, target: dict[str, Any]) -> None:
    apart = target.pop("sandbox", None)
    skills = target.pop("skills_dir", None)
    if skills is not None:
        target["flags"] = f"{target.get('flags') or ''} --skills {shlex.quote(str(skills))}".strip()
        work.note((*at, "skills_dir"), "is --skills in flags here")
    folder = target.get("working_dir")
    if isinstance(folder, str) and _of_each_model(target, apart):
        target["working_dir"] = f"{folder}/{{model}}"
        work.note((*at, "working_dir"), f"is {target['working_dir']} here: each model has a folder of its own")


def _of_each_model(target: Mapping[str, Any], apart: object) -> bool:
    """Return whether each model works in a folder of its own: as `sandbox` says, else where there are several."""
    return apart if isinstance(apart, bool) else len(target.get("model_handles") or ()) > 1


def _cleanup(work: Translation) -> None:
    """Put `cleanup` where it belongs: at the target whose agents it is about."""
    target = targets_of(work.data).get(("target",), {})
    if "cleanup" in work.data and "targets" not in work.data:
        cleanup = work.data.pop("cleanup")
        if target.get("kind") == "letta":
            target["cleanup"] = cleanup
            work.note(("cleanup",), "is called target.cleanup here")
        elif cleanup:
            work.note(("cleanup",), "is ignored: only agents on a Letta server are created per conversation")
    elif work.era in ("A", "B") and target.get("kind") == "letta":
        target.setdefault("cleanup", False)
