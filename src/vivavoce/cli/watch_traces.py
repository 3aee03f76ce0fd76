"""`viva watch-traces`: judge the conversations of production, as their traces come in."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import typer

from vivavoce.cli.amounts import seconds, share, size
from vivavoce.cli.options import CostOption, MaxErrorsOption, NoCacheOption
from vivavoce.cli.output import StoreOption, existing, notes, store_of
from vivavoce.errors import UsageError
from vivavoce.metrics.config import Scope
from vivavoce.pacing.loops import run as run_loop
from vivavoce.plugins import lazy
from vivavoce.production.folder import Folder
from vivavoce.production.place import spool_path
from vivavoce.production.settling import Rules
from vivavoce.production.spool import Spool
from vivavoce.production.watch import Watch, Watching
from vivavoce.run.options import RunOptions
from vivavoce.store.store import Store
from vivavoce.suites.load import Suite, load_suite
from vivavoce.suites.named_metrics import read_metrics
from vivavoce.suites.watching import watching_metrics, watching_suite


class _Judges(NamedTuple):
    """What judges, as the command line names it."""

    metrics: str | None
    suite: Path | None
    judge: str | None
    scope: Scope | None

    def described(self, name: str, max_concurrent: int) -> Suite:
        """Return what judges as a suite.

        Raises:
            UsageError: it is not named, or named twice, or cannot be used.
        """
        if (self.metrics is None) == (self.suite is None):
            raise UsageError("name what judges: --metrics NAMES, or --suite FILE for the graders of a suite")
        if self.suite is None:
            metrics = read_metrics(self.metrics or "")
            return watching_metrics(name, metrics, self.judge, self.scope, max_concurrent)
        if self.judge is not None or self.scope is not None:
            raise UsageError("--judge and --scope go with --metrics; the graders of a suite say theirs themselves")
        return watching_suite(name, load_suite(existing(self.suite)), max_concurrent)


def command(
    *,
    metrics: Annotated[
        str | None, typer.Option(help="Metrics, separated by commas, as for viva judge. See: viva list metrics")
    ] = None,
    suite: Annotated[Path | None, typer.Option(help="A suite whose graders judge, instead of --metrics.")] = None,
    judge: Annotated[str | None, typer.Option(help="The model that judges; default: VIVAVOCE_JUDGE.")] = None,
    scope: Annotated[Scope | None, typer.Option(help="What metrics judge: conversation, turn or window.")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 chooses a free one.")] = 4318,
    host: Annotated[
        str, typer.Option(help="The address to listen on; one that other machines can reach needs a token.")
    ] = "127.0.0.1",
    folder: Annotated[
        Path | None, typer.Option(help="Read the .json and .jsonl files of this folder, and listen to no port.")
    ] = None,
    name: Annotated[str, typer.Option(help="What the runs, and so their trend, are called.")] = "production",
    idle: Annotated[str, typer.Option(help="A conversation is complete after so much silence.")] = "60s",
    max_age: Annotated[str, typer.Option(help="It is judged after so long although it goes on.")] = "1h",
    sample: Annotated[str, typer.Option(help="The share of all conversations that is judged.")] = "100%",
    per: Annotated[
        Literal["day", "hour"], typer.Option(help="One run, with a budget of its own, per day or hour, in UTC.")
    ] = "day",
    max_calls: Annotated[int | None, typer.Option(min=0, help="Maximum number of judge calls per run.")] = None,
    max_cost: CostOption = None,
    max_errors: MaxErrorsOption = None,
    max_concurrent: Annotated[int, typer.Option(min=1, max=10_000, help="How many conversations at a time.")] = 16,
    max_disk: Annotated[str, typer.Option(help="What may wait on disk; above it senders must wait.")] = "1GB",
    tests: Annotated[bool, typer.Option("--tests", help="Judge the traffic of our own tests, too.")] = False,
    once: Annotated[
        bool, typer.Option("--once", help="Judge what is in the folder, or left from before, and end.")
    ] = False,
    no_cache: NoCacheOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say only what cannot be judged.")] = False,
    store: StoreOption = None,
) -> None:
    """Judge the conversations of production as their traces come in, by OTLP over HTTP or in a folder.

    Spans are kept on disk before they are acknowledged, in a file beside the store; after a stop of any kind the same
    command goes on. Each day or hour is one run of the store, so that they make a trend; --max-calls and --max-cost are
    for one of them. Exit codes: 0 stopped, 2 wrong usage, 3 the store or the disk
    failed, or with --once the judge.
    """
    rules = Rules(seconds("--idle", idle), seconds("--max-age", max_age), share("--sample", sample), tests)
    options = RunOptions(max_calls=max_calls, max_cost=max_cost, max_errors=max_errors, cache=not no_cache)
    most = size("--max-disk", max_disk)
    described = _Judges(metrics, suite, judge, scope).described(name, max_concurrent)
    say: Callable[[str], None] = partial(notes().print, soft_wrap=True)
    with Store.open(store_of(store)) as opened:
        spool = Spool(spool_path(opened.place, name), most)
        try:
            watch = Watch(described, opened, spool, Watching(rules, options, per, once, quiet), say)
            if folder is not None or once:
                _watch_folder(watch, folder)
            else:
                _watch_requests(watch, host, port)
        finally:
            spool.close()
    if watch.gave_up:
        raise typer.Exit(3)


def _watch_folder(watch: Watch, path: Path | None) -> None:
    if path is None:
        run_loop(watch.run())
        return
    folder = Folder(path, watch.spool, watch.say)
    run_loop(lazy("vivavoce.production.service:watch_folder")(watch, folder))


def _watch_requests(watch: Watch, host: str, port: int) -> None:
    token = os.environ.get("VIVAVOCE_TOKEN") or None
    opened = lazy("vivavoce.server.listening:listen")(watch.store, host, port, token)
    watch.say(f"taking traces at {opened.address} · press Ctrl-C to stop")
    run_loop(lazy("vivavoce.production.service:watch_requests")(watch, opened))
