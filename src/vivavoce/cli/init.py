"""`viva init`: create a small example suite."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from vivavoce.cli.output import out
from vivavoce.cli.schema import schema_text
from vivavoce.errors import UsageError

STARTER = Path(__file__).parent / "starter"
FILES = {
    "suite.yaml": "what is asked, how it is graded, and when the run passes",
    "dataset.jsonl": "three conversations",
    "bot.py": "the bot under test, with one mistake in it",
}
SCHEMA = "suite.schema.json"


def command(
    directory: Annotated[Path, typer.Argument(help="The folder to write to; created if it does not exist.")] = Path(),
) -> None:
    """Create a small example suite: a YAML file with comments, three conversations, and a bot to test.

    Existing files are never overwritten.
    """
    texts = {name: (STARTER / name).read_text(encoding="utf-8") for name in FILES}
    write_new(directory, {**texts, SCHEMA: schema_text() + "\n"})
    console = out()
    for name, purpose in {**FILES, SCHEMA: "lets your editor complete and check the keys of a suite"}.items():
        console.print(f"wrote {directory / name}: {purpose}", soft_wrap=True)
    suite = shlex.quote(str(directory / "suite.yaml"))
    console.print(f"\nnext: viva run {suite}", soft_wrap=True)
    console.print("One turn fails. Fix the bot and run the suite again; then replace the bot with your own.")


def write_new(directory: Path, texts: Mapping[str, str]) -> None:
    """Write new files: all of them, or none.

    Raises:
        UsageError: one of them already exists, or the folder cannot be written to.
    """
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"{directory} is a file; name a folder")
    there = [directory / name for name in texts if (directory / name).exists()]
    if there:
        raise UsageError(*(f"{path} already exists and is not overwritten; name another folder" for path in there))
    written: list[Path] = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            with (directory / name).open("x", encoding="utf-8") as file:
                written.append(directory / name)
                file.write(text)
    except OSError as error:
        for path in written:
            path.unlink()
        raise UsageError(f"{error.filename or directory}: cannot be written: {error.strerror}") from error
