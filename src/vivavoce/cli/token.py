"""`viva store token`: create, list and revoke the tokens for a server."""

from __future__ import annotations

import time
from typing import Annotated, Literal

import typer
from rich.table import Table

from vivavoce.cli.output import StoreOption, notes, out, print_json, store_of
from vivavoce.cli.store import seconds_of
from vivavoce.errors import UsageError
from vivavoce.report.text import strict_json
from vivavoce.safe_text import safe
from vivavoce.settings import user_name
from vivavoce.store.access import Role, Token
from vivavoce.store.store import Store


def command(
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
        typer.Option(help="create: read may only look; write may also label and start jobs; admin may do everything."),
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
            _show(opened.tokens.all(), as_json)
        elif what == "revoke":
            gone = opened.tokens.revoke(subject or "", user_name())
            notes().print(f"revoked {gone.id} ({gone.name})", soft_wrap=True)
        else:
            _create(opened, subject or "", role, expires)


def _create(store: Store, name: str, role: Role | None, expires: str | None) -> None:
    if role is None:
        raise UsageError("name the role: --role read, --role write or --role admin")
    ends = None if expires is None else time.time() + seconds_of(expires, "--expires")
    made, secret = store.tokens.create(name, role, expires_at=ends, actor=user_name())
    print(secret)
    notes().print(f"token {made.id} for {made.name}, {role}, {_ends(made)}; it is not shown again", soft_wrap=True)


def _show(found: list[Token], as_json: bool) -> None:
    if as_json:
        print_json(strict_json([one.model_dump() for one in found]))
        return
    table = Table("ID", "NAME", "ROLE", "CREATED", "STATE", box=None, pad_edge=False)
    for one in found:
        table.add_row(one.id, safe(one.name), one.role, _day(one.created_at), _ends(one))
    out().print(table if found else "no tokens; create one with: viva store token create NAME --role read")


def _ends(token: Token) -> str:
    if token.revoked_at is not None:
        return f"revoked {_day(token.revoked_at)}"
    if token.expires_at is None:
        return "never expires"
    return f"{'expired' if token.expires_at <= time.time() else 'expires'} {_day(token.expires_at)}"


def _day(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
