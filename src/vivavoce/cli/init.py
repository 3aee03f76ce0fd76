"""`viva init`: a small suite to start from."""

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
    "suite.yaml": "what is asked, how it is graded, when it passes",
    "dataset.jsonl": "three conversations",
    "bot.py": "the bot under test, with one mistake in it",
}
SCHEMA = "suite.schema.json"


def command(
    directory: Annotated[Path, typer.Argument(help="Where to write; made if it is missing.")] = Path(),
) -> None:
    """Write a small suite to start from: a YAML file with comments, three conversations, and a bot to test.

    Nothing is ever overwritten.
    """
    texts = {name: (STARTER / name).read_text(encoding="utf-8") for name in FILES}
    write_new(directory, {**texts, SCHEMA: schema_text() + "\n"})
    console = out()
    for name, purpose in {**FILES, SCHEMA: "tells your editor the keys of a suite"}.items():
        console.print(f"wrote {directory / name}: {purpose}", soft_wrap=True)
    suite = shlex.quote(str(directory / "suite.yaml"))
    console.print(f"\nnext: viva run {suite}", soft_wrap=True)
    console.print("One turn fails. Fix the bot, run it again, then put your own in its place.")


def write_new(directory: Path, texts: Mapping[str, str]) -> None:
    """Write files that are not there yet: all of them, or none.

    Raises:
        UsageError: one of them is there, or the folder cannot be written to.
    """
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"{directory} is a file; name a folder")
    there = [directory / name for name in texts if (directory / name).exists()]
    if there:
        raise UsageError(*(f"{path} is there already and is not overwritten; name another folder" for path in there))
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
