"""`viva compare realism`: whether the users of a run write as real users do."""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from vivavoce.cli.output import StoreOption, existing, files, notes, out, print_json, store_of
from vivavoce.errors import UsageError
from vivavoce.features.realism.fitting import Fitted, fit_personas
from vivavoce.features.realism.reading import UserSides, spoken_in_file, spoken_in_run
from vivavoce.features.realism.realism import realism
from vivavoce.features.realism.report import blocks, markdown_realism
from vivavoce.files.paths import whole_file
from vivavoce.files.rows import SUFFIXES
from vivavoce.report.text import count, record_json
from vivavoce.store.store import Store

FitOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.yaml", help="Write personas and settings for the tester, fitted to one half of the logs."
    ),
]


def command(
    run: Annotated[
        str | None,
        typer.Argument(
            help=(
                "A run: its id, the beginning or end of its id, or 'latest'; or a file of conversations; "
                "default: latest."
            ),
            show_default=False,
        ),
    ] = None,
    *,
    against: Annotated[
        str, typer.Option(metavar="FILE|RUN", help="Real conversations: a file in any format, or another run.")
    ],
    earlier: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            help="An earlier run: show what came closer to real users since then, on the held-out half of the logs.",
        ),
    ] = None,
    fit: FitOption = None,
    from_: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="FORMAT", help="The format of the --against file; default: detected from its content."
        ),
    ] = None,
    embedder: Annotated[
        str | None,
        typer.Option(help="The embedding for topics: 'local', a model, or 'none'; default: local if installed."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Maximum number of features to print.")] = 12,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print everything as Markdown.")] = False,
    store: StoreOption = None,
) -> None:
    """Compare the simulated users of a run with real users.

    Compares the user's side of conversations: length, politeness, when users give which facts, how they end. Shows both
    means of each feature with 95% intervals, the largest difference first; how often a simple classifier distinguishes
    simulated from real conversations; the conversations least like the other side; and kinds of real users that are
    missing. With --fit and without RUN, only the file is written. Exit codes: 0 done, 2 wrong usage.
    """
    with ExitStack() as stack:
        read_users = partial(_read_users, stack, store_of(store))
        real = read_users(against, from_)
        if fit is not None:
            _write(fit_personas(real), fit)
            if run is None and earlier is None:
                return
        before = None if earlier is None else read_users(earlier, None)
        options = ["--store", store] if store else []
        simulated = read_users(run or "latest", None)
        console = notes()
        with console.status("comparing …") if console.is_terminal else nullcontext():
            report = realism(simulated, real, earlier=before, embedder=embedder, options=options)
    if as_json:
        print_json(record_json(report))
    elif as_markdown:
        files().write(markdown_realism(report))
    else:
        for block in blocks(report, limit):
            out().print(block, soft_wrap=isinstance(block, Text))


def _read_users(stack: ExitStack, store: str, name: str, format_: str | None) -> UserSides:
    """Return the users' sides of a file, or of a run where there is no file of that name.

    Raises:
        UsageError: there is neither, or nothing in it can be compared.
    """
    path = Path(name)
    if path.exists() or "/" in name or path.suffix.lower() in SUFFIXES:
        return spoken_in_file(existing(path), format_)
    if format_ is not None:
        raise UsageError(f"--from needs a file, and '{name}' is not a file")
    return spoken_in_run(stack.enter_context(Store.open(store, create=False)), name)


def _write(part: Fitted, path: Path) -> None:
    """Write the fitted part of a suite.

    Raises:
        UsageError: the file is there already, or cannot be written.
    """
    if path.exists():
        raise UsageError(f"{path} already exists and is not overwritten; name another file with --fit")
    try:
        with whole_file(path) as new:
            new.write_text(part.text(), encoding="utf-8", newline="\n")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error
    kinds = count(len(part.part["tester"]["personas"]), "persona")
    notes().print(
        f"wrote {path}: {kinds}, fitted to {count(part.conversations, 'conversation')}; {part.held_back:,} are held "
        "out. Add it to a suite with driver: penelope, run the suite, and compare with --earlier",
        soft_wrap=True,
    )
