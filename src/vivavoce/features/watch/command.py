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
from vivavoce.features.watch.beat import MIN_CONVERSATIONS, AlertRules
from vivavoce.features.watch.folder import Folder
from vivavoce.features.watch.intake import span_pieces
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
    str, typer.Option(help="The time window of the conversations that decide the gate of --suite.")
]
StatusOption = Annotated[
    bool, typer.Option("--status", help="Print the status of the watch called --name without judging anything.")
]
CheckOption = Annotated[
    bool, typer.Option("--check", help="Like --status; the exit code is that of the gate: 0, 1 or 3.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="With --status or --check: print the status as JSON.")]


class _Judges(NamedTuple):
    """What judges, as the command line names it."""

    metrics: str | None
    suite: Path | None
    judge: str | None
    scope: Scope | None

    def describe(self, name: str, max_concurrent: int) -> Suite:
        """Return what judges as a suite.

        Raises:
            UsageError: it is not named, or named twice, or cannot be used.
        """
        if (self.metrics is None) == (self.suite is None):
            raise UsageError("choose what to judge with: --metrics NAMES, or --suite FILE for the graders of a suite")
        if self.suite is None:
            metrics = read_metrics(self.metrics or "")
            return watching_metrics(name, metrics, self.judge, self.scope, max_concurrent)
        if self.judge is not None or self.scope is not None:
            raise UsageError("--judge and --scope are for --metrics; the graders of a suite have their own")
        return watching_suite(name, load_suite(existing(self.suite)), max_concurrent)


def command(
    *,
    metrics: Annotated[
        str | None,
        typer.Option(help="Metrics, separated by commas, as for viva judge. See: viva validate list metrics"),
    ] = None,
    suite: Annotated[Path | None, typer.Option(help="Use this suite's graders, instead of --metrics.")] = None,
    judge: Annotated[str | None, typer.Option(help="The model that judges; default: VIVAVOCE_JUDGE.")] = None,
    scope: Annotated[Scope | None, typer.Option(help="What metrics judge: conversation, turn or window.")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 chooses a free one.")] = 4318,
    host: Annotated[
        str, typer.Option(help="The address to listen on; one that other machines can reach needs a token.")
    ] = "127.0.0.1",
    folder: Annotated[
        Path | None, typer.Option(help="Read the .json and .jsonl files of this folder instead of listening on a port.")
    ] = None,
    name: Annotated[str, typer.Option(help="The name of the runs and of their trend.")] = NAME,
    idle: Annotated[str, typer.Option(help="Idle time after which a conversation is complete.")] = "60s",
    max_age: Annotated[str, typer.Option(help="Judge a conversation after this time even if it continues.")] = "1h",
    sample: Annotated[str, typer.Option(help="The share of conversations to judge, such as 10%.")] = "100%",
    per: Annotated[
        Literal["day", "hour"], typer.Option(help="Start one run, with its own budget, per day or per hour, in UTC.")
    ] = "day",
    max_calls: Annotated[int | None, typer.Option(min=0, help="Maximum number of judge calls per run.")] = None,
    max_cost: CostOption = None,
    max_errors: MaxErrorsOption = None,
    max_concurrent: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum concurrent conversations.")] = 16,
    max_disk: Annotated[str, typer.Option(help="Maximum queue on disk; if full, senders wait.")] = "1GB",
    tests: Annotated[bool, typer.Option("--tests", help="Also judge traffic from vivavoce's own test runs.")] = False,
    once: Annotated[
        bool, typer.Option("--once", help="Judge what is in the folder, or left from an earlier watch, and exit.")
    ] = False,
    no_cache: NoCacheOption = False,
    window: WindowOption = "24h",
    least: Annotated[int, typer.Option(min=1, help="Minimum conversations for the gate.")] = MIN_CONVERSATIONS,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Report only what cannot be judged.")] = False,
    status: StatusOption = False,
    check: CheckOption = False,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Judge production conversations as their traces arrive, by OTLP over HTTP or in a folder.

    Spans are saved to a file next to the store before they are acknowledged; after any stop, repeat the command to
    continue. Each day or hour is one run of the store, so that they form a trend; --max-calls and --max-cost apply to
    each. Exit codes: 0 stopped, 2 wrong usage, 3 the store or the disk failed or, with --once, the judge.

    The gate of a suite is an alert: it is checked repeatedly on the latest judged conversations. --status prints its
    state and the rates of the last hours; --check also exits with 0 if the gate passes, 1 if it fails, and 3 if it is
    undecided, because too few conversations were judged or the watch has not reported for some minutes.
    """
    if status or check:
        raise typer.Exit(print_status(store_of(store), name, check=check, as_json=as_json))
    if as_json:
        raise UsageError("--json needs --status or --check")
    span_pieces()
    rules = Rules(seconds("--idle", idle), seconds("--max-age", max_age), share("--sample", sample), tests)
    options = RunOptions(max_calls=max_calls, max_cost=max_cost, max_errors=max_errors, cache=not no_cache)
    how = Watching(rules, options, per, once, quiet, AlertRules(seconds("--window", window), least))
    most = size("--max-disk", max_disk)
    described = _Judges(metrics, suite, judge, scope).describe(name, max_concurrent)
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
    watch.say(f"receiving traces at {opened.address} · press Ctrl-C to stop")
    run_loop(lazy("vivavoce.features.watch.service:watch_requests")(watch, opened))
