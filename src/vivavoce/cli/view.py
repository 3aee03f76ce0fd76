"""`viva view`: open the pages of a store in a browser on this machine."""

from __future__ import annotations

import webbrowser
from contextlib import suppress
from typing import Annotated

import typer

from vivavoce.cli.output import StoreOption, store_of
from vivavoce.plugins import lazy
from vivavoce.store.store import Store


def command(
    run: Annotated[str | None, typer.Argument(help="A run to open; default: the list of runs.")] = None,
    *,
    browser: Annotated[bool, typer.Option(help="Open a browser.")] = True,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 chooses a free one.")] = 0,
    store: StoreOption = None,
) -> None:
    """Open the pages of a store in a browser; only this machine can reach them. Press Ctrl-C to stop.

    A store that does not exist is created; its first page explains what to do and starts a demo.
    """
    with Store.open(store_of(store), create=run is None) as opened:
        page = "/" if run is None else lazy("vivavoce.server.pages.links:run_page")(opened.run(run).id)

        def started(address: str) -> None:
            print(f"{address.rstrip('/')}{page}", flush=True)
            if browser:
                webbrowser.open(f"{address.rstrip('/')}{page}")

        with suppress(KeyboardInterrupt):
            serve = lazy("vivavoce.server.serving:serve")  # help, and a store that is not there, need no server
            policy = lazy("vivavoce.server.policy:ServerPolicy")(writes_datasets=True)
            serve(opened, "127.0.0.1", port, policy=policy, started=started)
