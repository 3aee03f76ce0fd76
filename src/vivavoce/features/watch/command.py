"""`viva watch`: judge the conversations of production, as their traces come in."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import typer

from vivavoce.cli.options import CostOption, MaxErrorsOption, NoCacheOption, seconds, share, size
from vivavoce.cli.output import StoreOption, existing, notes, store_of
from vivavoce.errors import UsageError
from vivavoce.features.watch.beat import LEAST, AlertRules
from vivavoce.features.watch.folder import Folder
from vivavoce.features.watch.report import print_status
from vivavoce.features.watch.settling import Rules
from vivavoce.features.watch.spool import Spool, spool_path
from vivavoce.features.watch.suite import watching_metrics, watching_suite
from vivavoce.features.watch.watch import Watch, Watching
from vivavoce.metrics.config import Scope
from vivavoce.pacing.loops import run as run_loop
from vivavoce.plugins import lazy
from vivavoce.run.options import RunOptions
from vivavoce.store.store import Store
from vivavoce.suites.load import Suite, load_suite
from vivavoce.suites.metric_names import read_metrics

NAME = "production"
"""What a watch is called unless it is named."""


WindowOption = Annotated[
    str, typer.Option(help="The gate of --suite is decided on the conversations judged in so much time.")
]
StatusOption = Annotated[
    bool, typer.Option("--status", help="Print how the watch of --name is doing, and judge nothing.")
]
CheckOption = Annotated[
    bool, typer.Option("--check", help="Like --status; the exit code is that of the gate: 0, 1 or 3.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="With --status or --check: print it as JSON.")]


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
        str | None,
        typer.Option(help="Metrics, separated by commas, as for viva judge. See: viva validate list metrics"),
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
    name: Annotated[str, typer.Option(help="What the runs, and so their trend, are called.")] = NAME,
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
    window: WindowOption = "24h",
    least: Annotated[int, typer.Option(min=1, help="And only if they are at least so many.")] = LEAST,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say only what cannot be judged.")] = False,
    status: StatusOption = False,
    check: CheckOption = False,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Judge the conversations of production as their traces come in, by OTLP over HTTP or in a folder.

    Spans are kept on disk before they are acknowledged, in a file beside the store; after a stop of any kind the same
    command goes on. Each day or hour is one run of the store, so that they make a trend; --max-calls and --max-cost are
    for one of them. Exit codes: 0 stopped, 2 wrong usage, 3 the store or the disk failed, or with --once the judge.

    The gate of a suite is an alert: it is decided again and again on what was judged last. --status prints that and the
    rates of the last hours; --check also exits with 0 if the gate passes, 1 if it fails, and 3 if nothing can be said,
    because too few conversations were judged or the watch has not been heard of for some minutes.
    """
    if status or check:
        raise typer.Exit(print_status(store_of(store), name, check=check, as_json=as_json))
    if as_json:
        raise UsageError("--json goes with --status or --check")
    rules = Rules(seconds("--idle", idle), seconds("--max-age", max_age), share("--sample", sample), tests)
    options = RunOptions(max_calls=max_calls, max_cost=max_cost, max_errors=max_errors, cache=not no_cache)
    alert = AlertRules(seconds("--window", window), least)
    how = Watching(rules, options, per, once, quiet, alert)
    most = size("--max-disk", max_disk)
    described = _Judges(metrics, suite, judge, scope).described(name, max_concurrent)
    say: Callable[[str], None] = partial(notes().print, soft_wrap=True)
    with Store.open(store_of(store)) as opened, closing(Spool(spool_path(opened.place, name), most)) as spool:
        watch = Watch(described, opened, spool, how, say)
        if folder is not None or once:
            _watch_folder(watch, folder)
        else:
            _watch_requests(watch, host, port)
    if watch.gave_up:
        raise typer.Exit(3)


def _watch_folder(watch: Watch, path: Path | None) -> None:
    if path is None:
        run_loop(watch.run())
        return
    folder = Folder(path, watch.spool, watch.say)
    run_loop(lazy("vivavoce.features.watch.service:watch_folder")(watch, folder))


def _watch_requests(watch: Watch, host: str, port: int) -> None:
    token = os.environ.get("VIVAVOCE_TOKEN") or None
    opened = lazy("vivavoce.server.listening:listen")(watch.store, host, port, token)
    watch.say(f"taking traces at {opened.address} · press Ctrl-C to stop")
    run_loop(lazy("vivavoce.features.watch.service:watch_requests")(watch, opened))
