"""`viva serve mcp`: offer the store to programs that speak the Model Context Protocol."""

from __future__ import annotations

from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from vivavoce.cli.output import StoreOption, notes, store_of
from vivavoce.errors import MissingExtra
from vivavoce.pacing.loops import run as run_loop
from vivavoce.plugins import lazy
from vivavoce.server.policy import ServerPolicy
from vivavoce.store.store import Store


def command(
    *,
    write: Annotated[
        bool, typer.Option("--write", help="Also offer the tools that store results: evaluate_and_keep and run_suite.")
    ] = False,
    judge: Annotated[
        list[str] | None,
        typer.Option(help="A model that clients may use as judge, in addition to VIVAVOCE_JUDGE; repeat for more."),
    ] = None,
    store: StoreOption = None,
) -> None:
    """Serve the store to an assistant over the Model Context Protocol, on standard input and output.

    The tools are runs, samples, conversation, compare and evaluate; they store and change nothing without --write. With
    it, clients may run the suites in this folder and its subfolders. Needs vivavoce[mcp].
    """
    if find_spec("mcp") is None:
        raise MissingExtra("viva serve mcp", "mcp")
    policy = ServerPolicy(Path.cwd(), frozenset(judge or ()), writes_datasets=False)
    with Store.open(store_of(store), create=write) as opened:
        notes().print(f"serving {opened.place} over MCP on standard input and output", soft_wrap=True)
        tools = lazy("vivavoce.features.mcp.tools:StoreTools")(opened, policy)
        server = lazy("vivavoce.features.mcp.server:mcp_server")(tools, writes=write)
        with suppress(KeyboardInterrupt):
            run_loop(server.run_stdio_async())
