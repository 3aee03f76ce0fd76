"""A runner of composite actions in small: steps in order, in bash, with inputs, conditions, outputs and caches."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")


def read_yaml(path: Path) -> Any:
    """Return what a YAML file holds."""
    load = cast("Callable[[str], Any]", YAML(typ="safe").load)  # pyright: ignore[reportUnknownMemberType]
    return load(path.read_text(encoding="utf-8"))


def bash(commands: str, folder: Path, *programs: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run commands as GitHub does with `shell: bash`; folders with further programs come first."""
    compiling = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    path = os.pathsep.join(map(str, [*programs, BIN, os.environ["PATH"]]))
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", commands],
        cwd=folder,
        env={**compiling, "PATH": path, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )


@dataclass
class Build:
    """What came of an action: its exit code, what it printed, what each step was, and the summary."""

    code: int = 0
    log: str = ""
    steps: list[str] = field(default_factory=list[str])
    summary: str = ""


@dataclass
class Runner:
    """Runs an action in a folder, for one event after the other; caches and programs are kept in `machine`.

    Folders with further programs are `programs`.
    """

    action: Path
    folder: Path
    machine: Path
    programs: Sequence[Path] = ()
    caches: dict[str, Path] = field(default_factory=dict[str, Path])
    number: int = 0

    def run(self, event: str, *, inputs: Mapping[str, str], **github: str) -> Build:
        """Run the action as this event would."""
        self.number += 1
        action = read_yaml(self.action)
        known = {f"inputs.{name}": str(one["default"]) for name, one in action["inputs"].items()}
        known |= {f"inputs.{name}": value for name, value in inputs.items()}
        known |= {"github.event_name": event, "github.run_id": str(self.number), "github.run_attempt": "1"}
        known |= {"github.action_path": str(self.action.parent)}
        known |= {f"github.{name.replace('__', '.')}": value for name, value in github.items()}
        build = Build()
        for step in action["runs"]["steps"]:
            if "if" in step and not condition(step["if"], known):
                continue
            build.steps.append(step.get("name", step.get("uses")))
            if "uses" in step:
                self._use(step["uses"], {key: filled(str(value), known) for key, value in step["with"].items()})
            elif not self._ran(step, known, build):
                break
        return build

    def _ran(self, step: Mapping[str, Any], known: dict[str, str], build: Build) -> bool:
        output, summary = self.machine / "output", self.machine / "summary"
        output.write_text("")
        summary.write_text("")
        environment = {key: filled(value, known) for key, value in step.get("env", {}).items()}
        files = {"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary)}
        done = bash(step["run"], self.folder, self.machine / "bin", *self.programs, **environment, **files)
        build.log += done.stdout
        build.summary += summary.read_text()
        for line in output.read_text().splitlines():
            name, _, value = line.partition("=")
            known[f"steps.{step['id']}.outputs.{name}"] = value
        build.code = done.returncode
        return done.returncode == 0

    def _use(self, action: str, options: Mapping[str, str]) -> None:
        kind = action.partition("@")[0]
        if kind == "actions/setup-python":
            return
        place = self.folder / options["path"]
        if kind == "actions/cache/save":
            self.caches[options["key"]] = shutil.copytree(place, self.machine / "caches" / options["key"])
            return
        assert kind == "actions/cache/restore", action
        wanted = [options["key"], options.get("restore-keys", options["key"])]
        found = [kept for key, kept in reversed(self.caches.items()) if any(key.startswith(one) for one in wanted)]
        if found:
            shutil.copytree(found[0], place, dirs_exist_ok=True)


def filled(text: str, known: Mapping[str, str]) -> str:
    """Return a text with the values of its expressions; an unknown one is an error."""
    return EXPRESSION.sub(lambda found: known[found[1]], text)


def stem(suite: str) -> str:
    """Return how the files of a suite are called: its path without signs, and the checksum of the path."""
    done = subprocess.run(["cksum"], input=suite, capture_output=True, text=True, check=True)
    return f"{re.sub('[^A-Za-z0-9]', '-', suite)}-{done.stdout.split()[0]}"


def condition(text: str, known: Mapping[str, str]) -> bool:
    """Say whether all comparisons of a condition hold."""
    inner = EXPRESSION.fullmatch(text)
    assert inner is not None, text
    sides = [part.split(" == ") for part in inner[1].split(" && ")]
    return all(known[name.strip()] == value.strip().strip("'") for name, value in sides)
