"""`viva init`: the files of a first suite, from a template, or those that help with a suite."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from typing import Annotated, Any

import typer

from vivavoce.cli.output import out
from vivavoce.cli.schema import schema_text
from vivavoce.errors import UsageError, did_you_mean
from vivavoce.suites.load import load_suite

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
"""What the files of templates are, in the order in which they are listed."""


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


IGNORED = ".vivavoce/"
SUITES = (".yaml", ".yml")
"""Suffixes of suites, which no new folder has."""
FIRST = "first"
"""The template where none is named."""


def command(
    place: Annotated[
        Path,
        typer.Argument(
            help="The folder to write to; created if missing. Or an existing suite, to add a workflow for it.",
            metavar="[FOLDER|SUITE]",
            show_default="here",
        ),
    ] = Path(),
    *,
    template: Annotated[
        str, typer.Option(metavar="NAME", help="The template to start from; --list shows all.")
    ] = FIRST,
    show_list: Annotated[bool, typer.Option("--list", help="List the templates without writing anything.")] = False,
) -> None:
    """Create a suite that runs as it is: conversations, a bot to test, a test for pytest and a workflow for GitHub.

    Each template has one planted mistake for the first run to find, and needs no key. In a git repository, the workflow
    and .gitignore are written to the root of the repository. Existing files are never overwritten: if one exists,
    nothing is written; an existing .gitignore stays unchanged.
    """
    if show_list:
        width = max(map(len, TEMPLATES))
        for name, purpose in TEMPLATES.items():
            out().print(f"{name:<{width}}  {purpose}", soft_wrap=True)
    elif place.suffix.lower() in SUITES and not place.exists():
        raise UsageError(f"no suite at {place}; to create a suite, give a folder")
    elif place.is_file():
        _write(_for_suite(place, template), "next: commit it, and each pull request runs the suite", "delete it first")
    else:
        next_step = f"next: viva run {shlex.quote(str(place / 'suite.yaml'))}"
        _write(new_files(place, template), next_step, "name another folder")
        out().print("It finds one planted mistake, which suite.md explains. Then put your own bot in its place.")


def _for_suite(suite: Path, template: str) -> list[NewFile]:
    """Return the files that a suite lacks.

    Raises:
        UsageError: it is not a suite, or a template is named as well.
    """
    if suite.suffix.lower() not in SUITES:
        raise UsageError(f"{suite} is a file; name a folder, or a suite (.yaml)")
    if template != FIRST:
        raise UsageError(f"{suite} already exists; remove --template {template}, or give another folder")
    load_suite(suite)
    return list(files_for(suite))


def _write(files: Sequence[NewFile], next_step: str, otherwise: str) -> None:
    """Write files, the workflow last, and say what they are for."""
    kept = [file for file in files if file.path.name == ".gitignore" and file.path.exists()]
    new = [file for file in files if file not in kept]
    write_new(new, otherwise)
    for file in new:
        out().print(f"wrote {file.path}: {file.purpose}", soft_wrap=True)
    for file in kept:
        if IGNORED not in file.path.read_text(encoding="utf-8", errors="replace").split():
            out().print(f"note: add the line {IGNORED} to {file.path}, so that runs stay out of git", soft_wrap=True)
    if requirement() is None:
        _say_what_cannot_be_installed(new[-1])
    out().print(f"\n{next_step}", soft_wrap=True)


def _say_what_cannot_be_installed(workflow: NewFile) -> None:
    out().print(
        f"note: vivavoce was installed from files of this machine, which GitHub cannot read; until you write after "
        f"VIVAVOCE in {workflow.path} where it comes from, such as git+https://…, the workflow fails",
        soft_wrap=True,
    )


def write_new(files: Sequence[NewFile], otherwise: str) -> None:
    """Write new files with their folders: all of them, or none; `otherwise` says what to do where one is there.

    Raises:
        UsageError: one of them already exists, or cannot be written.
    """
    if there := [file.path for file in files if file.path.exists()]:
        raise UsageError(*(f"{path} already exists and is not overwritten; {otherwise}" for path in there))
    made: list[Path] = []
    try:
        for file in files:
            missing = [folder for folder in file.path.parents if not folder.exists()]
            for folder in reversed(missing):
                folder.mkdir()
                made.append(folder)
            with file.path.open("x", encoding="utf-8") as opened:
                made.append(file.path)
                opened.write(file.text)
    except OSError as error:
        for path in reversed(made):
            path.rmdir() if path.is_dir() else path.unlink()
        raise UsageError(f"{error.filename}: cannot be written: {error.strerror}") from error
