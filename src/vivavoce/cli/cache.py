"""`viva cache`: the replies of models that are kept, and cassettes that carry them elsewhere."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.text import Text

from vivavoce.cli.output import StoreOption, notes, out, print_json, store_of
from vivavoce.errors import UsageError, did_you_mean
from vivavoce.models.cassette import export_replies, import_replies
from vivavoce.report.strict_json import strict_json
from vivavoce.report.tables import Column, FittingTable
from vivavoce.safe_text import safe
from vivavoce.store.store import Store

COLUMNS = (Column("model"), Column("replies", "right"), Column("size", "right", rank=1))


@dataclass(slots=True)
class Kept:
    """What is kept of one model: how many replies, and their bytes."""

    model: str
    replies: int = 0
    bytes: int = 0


def command(
    what: Annotated[
        Literal["info", "export", "import"], typer.Argument(help="Show what is kept, or write or read a cassette.")
    ] = "info",
    file: Annotated[Path | None, typer.Argument(help="The cassette, a JSONL file.", show_default=False)] = None,
    *,
    model: Annotated[
        list[str] | None, typer.Option(help="Only the replies of this model, as info names it; repeat for more.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print info as one JSON object a line.")] = False,
    store: StoreOption = None,
) -> None:
    """Show the replies of models that are kept, or carry them elsewhere as a cassette.

    The same question is asked once, and from then on answered by the reply that is kept. With a cassette it is answered
    on another machine as well, where --replay asks no model at all: viva cache export replies.jsonl here, then viva
    cache import replies.jsonl there. What is kept already stays as it is. The questions are not in a cassette.
    """
    if what == "info":
        if file is not None:
            raise UsageError(f"info takes no file; to write one: viva cache export {file}")
        _info(store_of(store), model or (), as_json)
        return
    if file is None:
        raise UsageError(f"name the cassette: viva cache {what} replies.jsonl")
    if as_json:
        raise UsageError("--json is for viva cache info; a cassette is JSON already")
    if what == "export":
        _export(store_of(store), model or (), file)
    elif model:
        raise UsageError("--model chooses what is shown or exported; a cassette is imported whole")
    else:
        _import(store_of(store), file)


def _info(place: str, models: Collection[str], as_json: bool) -> None:
    with Store.open(place, create=False) as opened:
        kept = _kept(opened, models)
    if as_json:
        for one in kept:
            print_json(strict_json(asdict(one)))
    elif kept:
        out().print(FittingTable(COLUMNS, [[*map(Text, _cells(one))] for one in kept]))
    else:
        out().print(f"no replies are kept in {place}", soft_wrap=True)


def _export(place: str, models: Collection[str], file: Path) -> None:
    with Store.open(place, create=False) as opened:
        if models:
            _kept(opened, models)  # so that a wrong name replaces no file
        number = export_replies(opened.replies(), file, list(models))
    notes().print(f"wrote {file}: {_replies(number)}", soft_wrap=True)


def _import(place: str, file: Path) -> None:
    with Store.open(place) as opened:
        number = import_replies(opened.replies(), file)
    notes().print(f"read {file}: {_replies(number)} not kept before", soft_wrap=True)


def _kept(store: Store, models: Collection[str]) -> list[Kept]:
    """Return what is kept of these models, or of all, by their names.

    Raises:
        UsageError: nothing is kept of one of them.
    """
    found: dict[str, Kept] = {}
    for reply in store.replies().all():
        one = found.setdefault(reply.model, Kept(reply.model))
        one.replies += 1
        one.bytes += len(reply.reply.encode())
    for name in models:
        if name not in found:
            raise UsageError(f"no replies of '{name}' are kept in {store.place}{did_you_mean(name, found)}")
    return [found[name] for name in sorted(models or found)]


def _cells(kept: Kept) -> list[str]:
    return [safe(kept.model), f"{kept.replies:,}", f"{kept.bytes / 1000:,.1f} kB"]


def _replies(number: int) -> str:
    return "1 reply" if number == 1 else f"{number:,} replies"
