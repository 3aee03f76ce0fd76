"""`viva runs merge`: make one run of the parts in a folder."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from vivavoce.cli.options import MaxErrorsOption
from vivavoce.cli.output import StoreOption, notes, store_of
from vivavoce.cli.runner import report_run
from vivavoce.distributed.merging import merge, rows_left_out
from vivavoce.files.places import Folder
from vivavoce.report.text import count
from vivavoce.store.store import Store


def command(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="The folder or address passed to --parts.")],
    *,
    max_errors: MaxErrorsOption = None,
    store: StoreOption = None,
) -> None:
    """Merge the parts from viva judge --parts or viva run --parts into one run of the store.

    Parts that are already merged stay, so you can repeat the command when more parts are done. Exit codes: those of
    viva run; 3 while parts are missing.
    """
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        console=notes(),
        transient=True,
    )
    with Store.open(store_of(store)) as opened:
        with bar:
            task = bar.add_task("conversations", total=None)
            result = merge(
                Folder(folder),
                opened,
                lambda done, total: bar.update(task, completed=done, total=total),
                max_errors=max_errors,
            )
        report_run(opened, result, None, ["--store", store] if store else [])
    if left_out := rows_left_out(Folder(folder)):
        notes().print(f"without {count(left_out, 'row')} of the files that viva could not read as conversations")
    raise typer.Exit(result.exit_code)
