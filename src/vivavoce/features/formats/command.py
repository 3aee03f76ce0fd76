"""`viva convert`: conversations of one format written in another, with a report of what was lost."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated

import typer

from vivavoce.cli.options import named_paths
from vivavoce.cli.output import existing, files, notes
from vivavoce.conversations.format import NATIVE, Loss, format_named
from vivavoce.errors import UsageError
from vivavoce.features.formats.conversion import SUITE, Conversion, How, NothingRead, convert, refuse_loss, translate
from vivavoce.files.paths import whole_file
from vivavoce.files.plain_yaml import yaml_text
from vivavoce.report.text import count, strict_json

_STEP = 500
"""After this many conversations the number on the terminal goes on."""


def command(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A file of conversations, or a folder of such files.")],
    out: Annotated[str, typer.Argument(metavar="OUT", help="The file to write; - writes to standard output.")],
    *,
    from_: Annotated[
        str | None,
        typer.Option("--from", metavar="FORMAT", help="The format of IN; default: detected from its content."),
    ] = None,
    to: Annotated[
        str,
        typer.Option("--to", metavar="FORMAT", help="The format of OUT (see viva validate list formats), or suite."),
    ] = NATIVE,
    field: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PART=COLUMN",
            help="For a table with one message per row: the column with the content, role or id, such as "
            "id=session; repeat for more.",
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Write nothing if anything would be lost.")] = False,
    label: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="For fine-tuning formats: the label that marks good conversations, as a dotted path in "
            "labels; default: people, else passed.",
        ),
    ] = None,
    good_from: Annotated[
        float | None, typer.Option(help="With --label: the number at or above which a conversation is good.")
    ] = None,
    report: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the losses to this file, as JSON.")] = None,
) -> None:
    """Convert conversations from one format to another, and list what was lost.

    vivavoce rows are appended to an existing JSONL file; conversations with the same source are not added twice. If OUT
    ends with .yaml, it is a suite, and IN is a promptfoo suite (promptfooconfig.yaml) or a DeepEval test file, whose
    code is not run. Exit codes: 0 written, 2 wrong usage or, with --strict, a loss, 3 no conversation could be read.
    """
    if not source.exists():
        raise UsageError(f"{source}: there is no such file")
    if good_from is not None and label is None:
        raise UsageError("--good-from needs --label")
    loss = Loss()
    try:
        if to == SUITE or Path(out).suffix.lower() in (".yaml", ".yml"):
            lines = [_suite(source, out, from_, strict, loss)]
        else:
            target, known = format_named(to), format_named(from_) if from_ else None
            with _counter() as progress:
                options = How(known, strict, label, good_from, progress, named_paths(field or []))
                done = convert(source, files() if out == "-" else Path(out), target, loss, options)
            lines = list(_lines(done, out))
    except NothingRead:
        _tell(loss.lines())
        raise
    finally:
        if report is not None:
            with whole_file(report) as new:
                new.write_text(strict_json(loss.to_dict()) + "\n", encoding="utf-8")
    _tell((*lines, *loss.lines()))


def _tell(lines: Iterable[str]) -> None:
    for line in lines:
        notes().print(line, soft_wrap=True)


def _suite(source: Path, out: str, name: str | None, strict: bool, loss: Loss) -> str:
    """Write the suite of another tool as one of ours, and say so."""
    format_, suite = translate(existing(source), name, loss)
    refuse_loss(loss, strict)
    text = yaml_text(suite)
    if out == "-":
        files().write(text)
    else:
        with whole_file(Path(out)) as new:
            new.write_text(text, encoding="utf-8")
    rows = count(len(suite["dataset"]["rows"]), "sample")
    return f"{format_.title} → a suite: {rows}{'' if out == '-' else f' in {out}; check it with: viva validate {out}'}"


@contextmanager
def _counter() -> Generator[Callable[[int], None]]:
    """Show on a terminal how many conversations were read."""
    console = notes()
    with console.status("") if console.is_terminal else nullcontext() as status:

        def count_up(number: int) -> None:
            if status is not None and number % _STEP == 0:
                status.update(f"{number:,} conversations")

        yield count_up


def _lines(done: Conversion, out: str) -> Iterator[str]:
    contents = f"{count(done.conversations, 'conversation')}, {count(done.messages, 'message')}"
    yield f"{done.source.title} → {done.target.title}: {contents}{'' if out == '-' else f' in {out}'}"
    if done.known:
        changed = f"; changed since, not updated: {done.changed}" if done.changed else ""
        yield f"{done.conversations - done.known} added, {done.known} were there already{changed}"
