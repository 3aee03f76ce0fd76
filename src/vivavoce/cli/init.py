"""`viva init`: create a suite that runs as it is."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from vivavoce.cli.output import out
from vivavoce.cli.project import TEMPLATES, NewFile, files_for, new_files, requirement
from vivavoce.errors import UsageError
from vivavoce.suites.load import load_suite

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
