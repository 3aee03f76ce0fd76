"""`viva store`: the maintenance of a store, its tokens, and its cached replies."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from vivavoce.cli.output import StoreOption, confirm, notes, out, print_json, store_of
from vivavoce.errors import StoreError, UsageError, did_you_mean
from vivavoce.models.cache import export_replies, import_replies
from vivavoce.report.text import Column, FittingTable, count, strict_json
from vivavoce.safe_text import safe
from vivavoce.settings import user_name
from vivavoce.store.access import Role, Token
from vivavoce.store.database.address import Place, is_postgresql, path_of
from vivavoce.store.maintenance.copying import Copied
from vivavoce.store.maintenance.maintenance import backup_path, backup_store, check_backup, restore_store
from vivavoce.store.maintenance.migration import StoreInUse, check_unused, migrate_store, migration_plan
from vivavoce.store.store import Store

SECONDS = {"h": 3600, "d": 86400, "w": 7 * 86400}


def command(
    what: Annotated[
        Literal["info", "migrate", "backup", "restore", "gc", "copy", "audit"], typer.Argument(help="The action.")
    ] = "info",
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="FROM|FILE", help="copy: the store to copy from. backup, restore: the file.", show_default=False
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Argument(metavar="TO", help="copy: the store to copy to.", show_default=False)
    ] = None,
    *,
    keep_last: Annotated[
        int | None, typer.Option(min=0, help="gc: keep this many of the newest finished runs.")
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option(metavar="AGE", help="gc: delete only runs that ended before this age, such as 12h, 30d or 8w."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="gc: show what would be deleted without deleting anything.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="migrate, restore: do not ask for confirmation.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="info, audit: print one JSON object per line.")] = False,
    store: StoreOption = None,
) -> None:
    """Inspect, upgrade, back up, restore or copy a store, delete old runs, or show the audit log.

    A store is a file, or a PostgreSQL database: postgresql://user@host/database. info shows what is in the store.
    migrate shows how the schema would be upgraded, asks, backs up a file first, and upgrades it; no other command
    changes the schema. It refuses while other programs use the store. backup copies a file to a new one while others
    may write, and restore replaces the content of a file with that of a backup. Use pg_dump to back up a PostgreSQL
    store. gc deletes old finished runs with everything that belongs to them, and cached replies older than every
    remaining run; it never deletes a run that is unfinished or in use. copy adds what is missing to the second store,
    does not change the first, and lists what it leaves out, such as tokens and the audit log; if it is interrupted,
    repeat the command. audit lists changes to labels and tokens, and deletions, newest first.
    """
    if (what in ("backup", "restore")) and (source is None or target is not None):
        raise UsageError(f"name one file: viva store {what} FILE")
    if yes and what not in ("migrate", "restore"):
        raise UsageError(f"--yes is for viva store migrate and restore, not for {what}")
    if what not in ("copy", "backup", "restore") and source is not None:
        raise UsageError(f"viva store {what} does not take the store as an argument; use --store {Place(source)}")
    if what != "gc" and (keep_last is not None or older_than is not None or dry_run):
        raise UsageError(f"--keep-last, --older-than and --dry-run are for viva store gc, not for {what}")
    if what == "copy":
        _copy(source, target)
    elif what == "gc":
        _collect(store_of(store), keep_last, older_than, dry_run)
    elif what == "audit":
        _audit(store_of(store), as_json)
    elif what == "migrate":
        _migrate(store_of(store), yes=yes)
    elif what == "backup":
        _back_up(store_of(store), Path(source or ""))
    elif what == "restore":
        _restore(Path(source or ""), store_of(store), yes=yes)
    else:
        _show(store_of(store), as_json)


def _show(place: str, as_json: bool) -> None:
    with Store.open(place, create=False) as opened:
        found = opened.maintenance.contents()
    if as_json:
        print_json(strict_json(asdict(found)))
        return
    lines = {"place": found.place, "schema": found.schema, "size": f"{found.bytes / 1e6:,.1f} MB"}
    for name, text in {**lines, **{name: f"{number:,}" for name, number in found.rows.items()}}.items():
        out().print(f"{name:<9}  {text}", soft_wrap=True)


def _migrate(place: str, *, yes: bool) -> None:
    plan = migration_plan(place)
    if not plan.steps:
        notes().print(f"{plan.place} is up to date (schema {plan.version})", soft_wrap=True)
        return
    out().print(f"{plan.place}: schema {plan.version} to {plan.steps[-1][0]}", soft_wrap=True)
    for version, line in plan.steps:
        out().print(f"  {version}  {line}", soft_wrap=True)
    check_unused(Place(place))
    backup = None if is_postgresql(place) else backup_path(place, f"schema-{plan.version}")
    if backup is None:
        out().print("A PostgreSQL store is not backed up here; use pg_dump first.", soft_wrap=True)
    else:
        out().print(f"The store is backed up first: {backup}", soft_wrap=True)
    confirm("An older vivavoce cannot use the store afterwards. Upgrade it?", yes=yes)
    if backup is not None:
        backup_store(place, backup)
    migrate_store(place)
    notes().print(f"upgraded {plan.place} to schema {plan.steps[-1][0]}", soft_wrap=True)


def _back_up(place: str, target: Path) -> None:
    size = backup_store(place, target)
    notes().print(f"backed up {Place(place)} to {target} ({size / 1e6:,.1f} MB)", soft_wrap=True)


def _restore(source: Path, place: str, *, yes: bool) -> None:
    before = None
    if not is_postgresql(place):
        version = check_backup(source)
        path = path_of(Place(place))
        with _named_to_move(path):
            check_unused(Place(place))
        if path.exists():
            before = backup_path(place, "before-restore")
            out().print(
                f"{source} has schema {version}. The present store is backed up first: {before}", soft_wrap=True
            )
            confirm(f"Replace the content of {Place(place)}?", yes=yes)
            with _named_to_move(path):
                backup_store(place, before)
    interrupted = restore_store(source, place)
    notes().print(f"restored {Place(place)} from {source}", soft_wrap=True)
    if interrupted:
        jobs = "1 open job was" if interrupted == 1 else f"{interrupted:,} open jobs were"
        notes().print(f"{jobs} interrupted; no server continues what nobody resumes", soft_wrap=True)


@contextmanager
def _named_to_move(path: Path) -> Generator[None]:
    """Tell what to do with a store that is too damaged to be backed up before another takes its place."""
    try:
        yield
    except StoreInUse:
        raise
    except StoreError as error:
        raise StoreError(f"{error}; to restore a backup here, move {path} away first") from error


def _collect(place: str, keep_last: int | None, older_than: str | None, dry_run: bool) -> None:
    if keep_last is None and older_than is None:
        raise UsageError("say which runs to delete: --keep-last 20, --older-than 30d, or both")
    before = None if older_than is None else time.time() - seconds_of(older_than, "--older-than")
    with Store.open(place, create=False) as opened:
        gone = opened.maintenance.collect(keep_last=keep_last, before=before, dry_run=dry_run, actor=user_name())
    for run_id in gone.runs:
        out().print(run_id, soft_wrap=True)
    verb = "would delete" if dry_run else "deleted"
    notes().print(f"{verb} {count(len(gone.runs), 'run')} and {gone.replies:,} of the cached replies", soft_wrap=True)
    if gone.interrupted:
        notes().print(
            f"kept {count(len(gone.interrupted), 'interrupted run')}, such as {gone.interrupted[0]}; delete one with: "
            "viva runs delete RUN",
            soft_wrap=True,
        )


def _audit(place: str, as_json: bool) -> None:
    with Store.open(place, create=False) as opened:
        after: str | None = None
        while True:
            page = opened.audit.entries(after, 500)
            for entry in page.entries:
                at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.at))
                detail = "" if entry.detail is None else strict_json(entry.detail)
                line = "  ".join((at, entry.actor, entry.action, entry.subject, detail))
                if as_json:
                    print_json(strict_json(entry.model_dump()))
                else:
                    out().print(line.rstrip(), soft_wrap=True)
            if not page.entries:
                notes().print("the audit log is empty: no label, deletion or token has been recorded")
            after = page.next
            if after is None:
                return


def _copy(source: str | None, target: str | None) -> None:
    if source is None or target is None:
        raise UsageError("name both stores: viva store copy .vivavoce/vivavoce.db postgresql://user@host/database")
    if Place(source) == Place(target):
        raise UsageError("both are the same store; name another store to copy to")
    console = notes()
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with Store.open(source, create=False) as source_store, Store.open(target) as target_store, bar:
        task = bar.add_task("", total=None)
        copied = source_store.maintenance.copy_to(
            target_store, lambda run, done, total: bar.update(task, description=run, completed=done, total=total)
        )
    parts = [count(copied.runs, "new run"), count(copied.attempts, "conversation")]
    parts += [count(number, what) for number, what in _beside(copied) if number]
    completed = f"; {count(copied.completed, 'run')} completed" if copied.completed else ""
    console.print(f"copied {', '.join(parts)} to {target_store.place}{completed}", soft_wrap=True)
    if copied.left_out:
        left_out = ", ".join(count(number, what) for what, number in copied.left_out)
        console.print(f"left out: {left_out}; viva store backup keeps everything", soft_wrap=True)


def _beside(copied: Copied) -> list[tuple[int, str]]:
    return [
        (copied.labels, "label"),
        (copied.decisions, "decision"),
        (copied.comments, "comment"),
        (copied.queues, "queue"),
        (copied.views, "saved view"),
        (copied.calibrations, "calibration"),
        (copied.replies, "kept answer"),
    ]


def seconds_of(age: str, option: str) -> float:
    """Return an age such as 12h, 30d or 8w in seconds.

    Raises:
        UsageError: it is not an age.
    """
    found = re.fullmatch(r"(\d{1,6})([hdw])", age)
    if found is None:
        raise UsageError(f"{option} takes an age such as 12h, 30d or 8w, got {age!r}")
    return int(found[1]) * SECONDS[found[2]]


def token(
    what: Annotated[Literal["create", "list", "revoke"], typer.Argument(help="The action.")] = "list",
    subject: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME|ID",
            help="create: the name of the token's user. revoke: the id of the token.",
            show_default=False,
        ),
    ] = None,
    *,
    role: Annotated[
        Role | None,
        typer.Option(help="create: read can only view; write can also label and start jobs; admin can do everything."),
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option(
            metavar="AGE", help="create: how long the token is valid, such as 12h, 90d or 8w; default: forever."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="list: print the tokens as a JSON list.")] = False,
    store: StoreOption = None,
) -> None:
    """Create a token for a user of a server with this store, list the tokens, or revoke one.

    A new token is printed once and cannot be shown again, because the store keeps only its hash. A revoked or expired
    token is refused from the next request on, even by a running server.
    """
    if (what == "list") is not (subject is None):
        missing = {"list": "takes no name", "create": "takes a name: viva store token create ida --role write"}
        raise UsageError(f"viva store token {what} {missing.get(what, 'takes an id; see: viva store token list')}")
    if what != "create" and (role is not None or expires is not None):
        raise UsageError(f"--role and --expires are for viva store token create, not for {what}")
    with Store.open(store_of(store), create=what == "create") as opened:
        if what == "list":
            _show_tokens(opened.tokens.all(), as_json)
        elif what == "revoke":
            gone = opened.tokens.revoke(subject or "", user_name())
            notes().print(f"revoked {gone.id} ({gone.name})", soft_wrap=True)
        else:
            _create_token(opened, subject or "", role, expires)


def _create_token(store: Store, name: str, role: Role | None, expires: str | None) -> None:
    if role is None:
        raise UsageError("name the role: --role read, --role write or --role admin")
    ends = None if expires is None else time.time() + seconds_of(expires, "--expires")
    made, secret = store.tokens.create(name, role, expires_at=ends, actor=user_name())
    print(secret)
    notes().print(f"token {made.id} for {made.name}, {role}, {_expiry(made)}; it is not shown again", soft_wrap=True)


def _show_tokens(found: list[Token], as_json: bool) -> None:
    if as_json:
        print_json(strict_json([one.model_dump() for one in found]))
        return
    table = Table("ID", "NAME", "ROLE", "CREATED", "STATE", box=None, pad_edge=False)
    for one in found:
        table.add_row(one.id, safe(one.name), one.role, _day(one.created_at), _expiry(one))
    out().print(table if found else "no tokens; create one with: viva store token create NAME --role read")


def _expiry(token: Token) -> str:
    if token.revoked_at is not None:
        return f"revoked {_day(token.revoked_at)}"
    if token.expires_at is None:
        return "never expires"
    return f"{'expired' if token.expires_at <= time.time() else 'expires'} {_day(token.expires_at)}"


def _day(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))


CACHE_COLUMNS = (Column("model"), Column("replies", "right"), Column("size", "right", rank=1))


@dataclass(slots=True)
class CachedReplies:
    """The cached replies of one model: how many, and their size in bytes."""

    model: str
    replies: int = 0
    bytes: int = 0


def cache(
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
        _show_cache(store_of(store), model or (), as_json)
        return
    if file is None:
        raise UsageError(f"give a cassette file: viva store cache {what} replies.jsonl")
    if as_json:
        raise UsageError("--json is for viva store cache info; a cassette is already JSON")
    if what == "export":
        _export_cache(store_of(store), model or (), file)
    elif model:
        raise UsageError("--model works with info and export; a cassette is always imported completely")
    else:
        _import_cache(store_of(store), file)


def _show_cache(place: str, models: Collection[str], as_json: bool) -> None:
    with Store.open(place, create=False) as opened:
        kept = _select_replies(opened, models)
    if as_json:
        for one in kept:
            print_json(strict_json(asdict(one)))
    elif kept:
        out().print(FittingTable(CACHE_COLUMNS, [[*map(Text, _cache_cells(one))] for one in kept]))
    else:
        out().print(f"no replies are cached in {place}", soft_wrap=True)


def _export_cache(place: str, models: Collection[str], file: Path) -> None:
    with Store.open(place, create=False) as opened:
        if models:
            _select_replies(opened, models)  # so that a wrong name never overwrites a file
        number = export_replies(opened.replies(), file, list(models))
    notes().print(f"wrote {file}: {_count_replies(number)}", soft_wrap=True)


def _import_cache(place: str, file: Path) -> None:
    with Store.open(place) as opened:
        number = import_replies(opened.replies(), file)
    notes().print(f"read {file}: {_count_replies(number)} added", soft_wrap=True)


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


def _cache_cells(kept: CachedReplies) -> list[str]:
    return [safe(kept.model), f"{kept.replies:,}", f"{kept.bytes / 1000:,.1f} kB"]


def _count_replies(number: int) -> str:
    return "1 reply" if number == 1 else f"{number:,} replies"
