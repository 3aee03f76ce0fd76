"""`viva dataset capture`: make a row of a dataset of a conversation that was held."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vivavoce.cli.options import ConversationArgument
from vivavoce.cli.output import StoreOption, notes, out, print_json, store_of
from vivavoce.report.capture import capture, find_conversation
from vivavoce.report.text import strict_json
from vivavoce.samples.dataset_file import append_row
from vivavoce.store.store import Store


def command(
    conversation: ConversationArgument,
    *,
    to: Annotated[
        Path | None, typer.Option("--to", help="The JSONL dataset to append the row to; default: print it.")
    ] = None,
    target: Annotated[str | None, typer.Option(help="The target, if the run has several.")] = None,
    region: Annotated[
        str | None, typer.Option(help="The country, such as US, of phone numbers without a + prefix.")
    ] = None,
    store: StoreOption = None,
) -> None:
    """Turn a stored conversation into a dataset row, so that every run repeats it.

    The row has the user's messages and what was known about the right answer. Keys, e-mail addresses, phone, card and
    account numbers are removed, and the command lists what it removed. If there are several trials, the first failed
    trial is used.
    """
    with Store.open(store_of(store), create=False) as opened:
        run, outcome = find_conversation(opened, conversation, target)
    captured = capture(run, outcome.attempt, region)
    if to is None:
        print_json(strict_json(captured.row))
    else:
        added = append_row(to, captured.row)
        what = "added as" if added.is_new else "is there already as"
        out().print(f"{to}: {what} '{added.id}'", soft_wrap=True)
    for note in captured.notes():
        notes().print(note, soft_wrap=True)
