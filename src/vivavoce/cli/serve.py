"""`viva serve`: the API and the pages of a store."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from vivavoce.cli.output import StoreOption, notes, store_of
from vivavoce.plugins import lazy
from vivavoce.server.policy import ServerPolicy
from vivavoce.store.store import Store


def command(
    *,
    host: Annotated[str, typer.Option(help="The address to listen on; others than this machine's need a token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 8484,
    judge: Annotated[
        list[str] | None,
        typer.Option(help="A model that requests may name as judge or tester; repeat for more."),
    ] = None,
    public: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="The address of a proxy in front of it, such as https://viva.example.org; requests need a token then.",
        ),
    ] = None,
    store: StoreOption = None,
) -> None:
    """Serve the API and the pages of a store until Ctrl-C; jobs that are not over go on when it is started again.

    Requests may run the suites below this folder and nothing else. On an address that other machines can reach, they
    must bring a token that `viva token` made, or the secret of VIVAVOCE_TOKEN, which may do everything. On an address
    of this machine alone they need one only where VIVAVOCE_TOKEN is set.
    """
    policy = ServerPolicy(Path.cwd(), frozenset(judge or ()))
    with Store.open(store_of(store)) as opened:

        def started(address: str) -> None:
            notes().print(f"serving {opened.place} at {address} · Ctrl-C ends it", soft_wrap=True)

        token = os.environ.get("VIVAVOCE_TOKEN") or None
        with suppress(KeyboardInterrupt):  # the server has ended in good order by then
            serve = lazy("vivavoce.server.serving:serve")  # help, and a store that is not there, need no server
            serve(opened, host, port, token, public=public, policy=policy, started=started)
