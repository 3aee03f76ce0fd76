"""What `viva init` writes: the files of a template, a test, a workflow, and what else a project needs."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from vivavoce.cli.schema import schema_text
from vivavoce.errors import UsageError, did_you_mean

FOLDER = Path(__file__).parent / "templates"
TEMPLATES = {
    "first": "a bot that calls two tools, with assertions in rows and a rule for all",
    "support-bot": "refunds, corrections and escalation, with assertions in rows",
    "rag-chat": "answers that are looked up: context precision and recall of each turn",
    "tool-agent": "an agent with tools and a policy, held to rules across turns",
    "voice": "transcribed calls: silences, read-back, what cannot be spoken",
    "multi-agent": "a log of agents that hand over to each other",
    "red-team": "a tester that tries to get a secret out of a bot",
    "coding-agent": "sessions of an agent that edits files and runs tests",
}
"""What a template is for, by its name: that of its folder."""

PURPOSES = {
    "suite.yaml": "what is asked, how it is graded, and when the run passes",
    "dataset.jsonl": "the conversations, one in each line",
    "scenarios.jsonl": "the goals of the tester, one in each line",
    "conversations.jsonl": "recorded conversations, one in each line",
    "bot.py": "the bot under test, with one mistake in it",
    "attacker.py": "the tester, made of rules",
    "policy.md": "what the bot has to go by",
    "suite.md": "the mistake, and how to put your own in its place",
}
"""What the files of templates are, in the order in which they are told."""


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file to write, and what it is for."""

    path: Path
    text: str
    purpose: str


def new_files(directory: Path, template: str) -> list[NewFile]:
    """Return the files of a new suite in this folder; the workflow stands where its repository begins.

    Raises:
        UsageError: no template has that name.
    """
    if template not in TEMPLATES:
        raise UsageError(f"no template '{template}'{did_you_mean(template, TEMPLATES)}")
    return [*_of_template(directory, FOLDER / template), *_of_project(directory)]


def _of_template(directory: Path, folder: Path) -> Iterator[NewFile]:
    for name, purpose in PURPOSES.items():
        if (folder / name).exists():
            yield NewFile(directory / name, _text(folder / name), purpose)


def _of_project(directory: Path) -> Iterator[NewFile]:
    name, schema = _slug(directory.resolve().name), "lets your editor complete and check the keys of a suite"
    yield NewFile(directory / f"test_{name}.py", _text(FOLDER / "project" / "test_suite.py"), "the suite for pytest")
    yield NewFile(directory / "suite.schema.json", schema_text() + "\n", schema)
    yield from files_for(directory / "suite.yaml")


def files_for(suite: Path) -> Iterator[NewFile]:
    """Yield what the repository of a suite needs: .gitignore and, last, the workflow that runs the suite."""
    root, place = repository(suite.parent), suite.resolve()
    own = place.name.removesuffix(place.suffix).removesuffix(".viva")
    name = _slug(place.parent.name if own == "suite" else own)
    runs = shlex.quote(place.relative_to(root.resolve()).as_posix())
    workflow = _text(FOLDER / "project" / "viva.yml").replace("{suite}", runs).replace("{name}", name)
    workflow = workflow.replace("{requirement}", json.dumps(requirement() or ""))
    yield NewFile(root / ".gitignore", _text(FOLDER / "project" / "gitignore"), "keeps your runs out of git")
    yield NewFile(root / ".github" / "workflows" / f"viva-{name}.yml", workflow, "runs the suite on GitHub")


def repository(directory: Path) -> Path:
    """Return the folder where the git repository of a folder begins, or the folder itself where there is none."""
    place = directory.resolve()
    for folder in (place, *place.parents):
        if (folder / ".git").exists():
            return directory if folder == place else Path(os.path.relpath(folder))
    return directory


def requirement() -> str | None:
    """Return what pip has to install to get this vivavoce elsewhere; None if it came from files of this machine.

    Source: PEP 610, `direct_url.json`.
    """
    installed = distribution("vivavoce")
    text = installed.read_text("direct_url.json")
    origin: dict[str, Any] = json.loads(text) if text else {}
    if not origin:
        return f"vivavoce=={installed.version}"
    if str(origin["url"]).startswith("file:"):
        return None
    folder = f"#subdirectory={origin['subdirectory']}" if "subdirectory" in origin else ""
    if version := origin.get("vcs_info"):
        return f"vivavoce @ {version['vcs']}+{origin['url']}@{version['commit_id']}{folder}"
    return f"vivavoce @ {origin['url']}{folder}"


def _slug(name: str) -> str:
    """Return the name of a folder or a suite as a name of a module can hold it."""
    return re.sub(r"\W+", "_", name.lower()).strip("_") or "suite"


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")
