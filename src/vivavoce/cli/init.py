"""`viva init`: create a suite that runs as it is."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from vivavoce.cli.output import out
from vivavoce.cli.project import TEMPLATES, NewFile, new_files, requirement
from vivavoce.errors import UsageError

IGNORED = ".vivavoce/"


def command(
    directory: Annotated[Path, typer.Argument(help="The folder to write to; created if it does not exist.")] = Path(),
    *,
    template: Annotated[
        str, typer.Option(metavar="NAME", help="What to start from; --list shows the templates.")
    ] = "first",
    show_list: Annotated[bool, typer.Option("--list", help="List the templates, and write nothing.")] = False,
) -> None:
    """Create a suite that runs as it is: conversations, a bot to test, a test for pytest and a workflow for GitHub.

    Each template has one planted mistake for the first run to find, and needs no key. In a git repository, the workflow
    and .gitignore are written where the repository begins. Existing files are never overwritten: if one is there,
    nothing is written; an existing .gitignore is left as it is.
    """
    console = out()
    if show_list:
        width = max(map(len, TEMPLATES))
        for name, purpose in TEMPLATES.items():
            console.print(f"{name:<{width}}  {purpose}", soft_wrap=True)
        return
    files = new_files(directory, template)
    kept = [file for file in files if file.path.name == ".gitignore" and file.path.exists()]
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"{directory} is a file; name a folder")
    new = [file for file in files if file not in kept]
    write_new(new)
    for file in new:
        console.print(f"wrote {file.path}: {file.purpose}", soft_wrap=True)
    for file in kept:
        if IGNORED not in file.path.read_text(encoding="utf-8", errors="replace").split():
            console.print(f"note: add the line {IGNORED} to {file.path}, so that runs stay out of git", soft_wrap=True)
    if requirement() is None:
        _say_what_cannot_be_installed(new[-1])
    console.print(f"\nnext: viva run {shlex.quote(str(directory / 'suite.yaml'))}", soft_wrap=True)
    console.print("It finds one planted mistake, which suite.md explains. Then put your own bot in its place.")


def _say_what_cannot_be_installed(workflow: NewFile) -> None:
    out().print(
        f"note: vivavoce was installed from files of this machine, which GitHub cannot read; until you write after "
        f"VIVAVOCE in {workflow.path} where it comes from, such as git+https://…, the workflow fails",
        soft_wrap=True,
    )


def write_new(files: Sequence[NewFile]) -> None:
    """Write new files with their folders: all of them, or none.

    Raises:
        UsageError: one of them already exists, or cannot be written.
    """
    if there := [file.path for file in files if file.path.exists()]:
        raise UsageError(*(f"{path} already exists and is not overwritten; name another folder" for path in there))
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
