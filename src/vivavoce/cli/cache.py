"""`viva store cache`: cached replies of models, and cassette files that carry them to another machine."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.text import Text

from vivavoce.cli.output import StoreOption, notes, out, print_json, store_of
from vivavoce.errors import UsageError, did_you_mean
from vivavoce.models.cache import export_replies, import_replies
from vivavoce.report.text import Column, FittingTable, strict_json
from vivavoce.safe_text import safe
from vivavoce.store.store import Store

COLUMNS = (Column("model"), Column("replies", "right"), Column("size", "right", rank=1))


@dataclass(slots=True)
class CachedReplies:
    """The cached replies of one model: how many, and their size in bytes."""

    model: str
    replies: int = 0
    bytes: int = 0


def command(
    what: Annotated[
        Literal["info", "export", "import"], typer.Argument(help="Show the cache, or export or import a cassette.")
    ] = "info",
    file: Annotated[Path | None, typer.Argument(help="The cassette: a JSONL file.", show_default=False)] = None,
    *,
    model: Annotated[
        list[str] | None,
        typer.Option(help="Only replies of this model, as `info` names it; repeat for more."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print `info` as one JSON object per line.")] = False,
    store: StoreOption = None,
) -> None:
    """Show cached model replies, or move them to another machine as a cassette.

    A model answers the same question once; after that, the cached reply is used. To use the replies on another
    machine, run viva store cache export replies.jsonl here and viva store cache import replies.jsonl there; with
    --replay no model is called at all. An import never replaces a reply that is already cached. A cassette
    does not contain the questions.
    """
    if what == "info":
        if file is not None:
            raise UsageError(f"viva store cache info takes no file; to write one: viva store cache export {file}")
        _info(store_of(store), model or (), as_json)
        return
    if file is None:
        raise UsageError(f"give a cassette file: viva store cache {what} replies.jsonl")
    if as_json:
        raise UsageError("--json is for viva store cache info; a cassette is already JSON")
    if what == "export":
        _export(store_of(store), model or (), file)
    elif model:
        raise UsageError("--model works with info and export; a cassette is always imported completely")
    else:
        _import(store_of(store), file)


def _info(place: str, models: Collection[str], as_json: bool) -> None:
    with Store.open(place, create=False) as opened:
        kept = _select_replies(opened, models)
    if as_json:
        for one in kept:
            print_json(strict_json(asdict(one)))
    elif kept:
        out().print(FittingTable(COLUMNS, [[*map(Text, _cells(one))] for one in kept]))
    else:
        out().print(f"no replies are cached in {place}", soft_wrap=True)


def _export(place: str, models: Collection[str], file: Path) -> None:
    with Store.open(place, create=False) as opened:
        if models:
            _select_replies(opened, models)  # so that a wrong name never overwrites a file
        number = export_replies(opened.replies(), file, list(models))
    notes().print(f"wrote {file}: {_replies(number)}", soft_wrap=True)


def _import(place: str, file: Path) -> None:
    with Store.open(place) as opened:
        number = import_replies(opened.replies(), file)
    notes().print(f"read {file}: {_replies(number)} added", soft_wrap=True)


def _select_replies(store: Store, models: Collection[str]) -> list[CachedReplies]:
    """Return the cached replies of these models, or of all, sorted by name.

    Raises:
        UsageError: one of the models has no cached reply.
    """
    found: dict[str, CachedReplies] = {}
    for reply in store.replies().all():
        one = found.setdefault(reply.model, CachedReplies(reply.model))
        one.replies += 1
        one.bytes += len(reply.reply.encode())
    for name in models:
        if name not in found:
            raise UsageError(f"no replies of '{name}' are cached in {store.place}{did_you_mean(name, found)}")
    return [found[name] for name in sorted(models or found)]


def _cells(kept: CachedReplies) -> list[str]:
    return [safe(kept.model), f"{kept.replies:,}", f"{kept.bytes / 1000:,.1f} kB"]


def _replies(number: int) -> str:
    return "1 reply" if number == 1 else f"{number:,} replies"
