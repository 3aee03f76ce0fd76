"""`viva serve`, `viva view`, and `viva serve jobs`: a server, for others or for this machine, and its jobs."""

from __future__ import annotations

import os
import time
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.text import Text

from vivavoce.cli.output import StoreOption, notes, out, print_json, store_of
from vivavoce.errors import UsageError
from vivavoce.plugins import lazy
from vivavoce.report.text import Column, FittingTable, strict_json
from vivavoce.safe_text import safe
from vivavoce.server.job import cancel_stored_job, current_record
from vivavoce.server.job_record import JobRecord
from vivavoce.server.policy import ServerPolicy
from vivavoce.settings import user_name
from vivavoce.store.store import Store
from vivavoce.wire.outward import check_outward

LogFormatOption = Annotated[Literal["text", "json"], typer.Option(help="The format of the log on standard error.")]
LogLevelOption = Annotated[
    Literal["debug", "info", "warning", "error"],
    typer.Option(help="The lowest level to log; probes are logged at debug."),
]
MetricsOption = Annotated[
    bool, typer.Option("--metrics", help="Serve Prometheus metrics at /metrics, to clients with a token.")
]
OpenMetricsOption = Annotated[
    bool, typer.Option("--open-metrics", help="Serve /metrics to everybody, without a token.")
]
HostOption = Annotated[
    str, typer.Option(help="The address to listen on; an address that other machines can reach needs a token.")
]
JudgesOption = Annotated[
    list[str] | None, typer.Option(help="A model that requests may use as judge or tester; repeat for more.")
]
PublicOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="The address of a proxy in front of the server, such as https://viva.example.org; requests then need "
        "a token.",
    ),
]
WebhookOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="URL",
        help="A webhook to call when a run finishes, a label is saved or a comment is added; repeat for more. "
        "VIVAVOCE_WEBHOOK_SECRET (whsec_…) signs the requests; without it, a secret is generated and printed.",
    ),
]


def command(
    *,
    host: HostOption = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 chooses a free one.")] = 8484,
    judge: JudgesOption = None,
    public: PublicOption = None,
    write_datasets: Annotated[
        bool, typer.Option("--write-datasets", help="Let requests add rows to JSONL files in this folder.")
    ] = False,
    workers: Annotated[
        int,
        typer.Option(min=1, max=64, help="Number of processes that answer requests and run jobs, at one address."),
    ] = 1,
    webhook: WebhookOption = None,
    private_webhooks: Annotated[
        bool, typer.Option("--private-webhooks", help="Allow webhooks to this machine or a private network.")
    ] = False,
    log_format: LogFormatOption = "text",
    log_level: LogLevelOption = "info",
    metrics: MetricsOption = False,
    open_metrics: OpenMetricsOption = False,
    store: StoreOption = None,
) -> None:
    """Start a server with the API and the pages of a store; press Ctrl-C to stop it.

    Requests may run the suites in this folder and its subfolders, and nothing else. If other machines can reach the
    address, each request needs a token created with `viva store token create`, or the secret in VIVAVOCE_TOKEN, which
    has all permissions. If only this machine can reach it, requests need a token only if VIVAVOCE_TOKEN is set.
    Unfinished jobs continue when the server restarts, or immediately on another server of the same store and folder. A
    job that crashed two servers is not continued.

    Requests and events are logged on standard error, without query strings. Each response has an X-Request-ID, which
    the log also shows. /livez and /readyz answer probes without a token.
    """
    policy = ServerPolicy(
        Path.cwd(), frozenset(judge or ()), writes_datasets=write_datasets, private_webhooks=private_webhooks
    )
    with Store.open(store_of(store)) as opened:
        for url in webhook or ():
            _add_webhook(opened, url, private=private_webhooks)

        def started(address: str) -> None:
            several = f" · {workers} workers" if workers > 1 else ""
            notes().print(f"serving {opened.place} at {address}{several} · press Ctrl-C to stop", soft_wrap=True)

        token = os.environ.get("VIVAVOCE_TOKEN") or None
        with suppress(KeyboardInterrupt):  # the server has ended in good order by then
            serve = lazy("vivavoce.server.serving:serve")  # help, and a store that is not there, need no server
            serve(
                opened,
                host,
                port,
                token,
                public=public,
                policy=policy,
                workers=workers,
                monitoring=lazy("vivavoce.server.monitoring:Monitoring")(
                    has_metrics=metrics or open_metrics,
                    is_open=open_metrics,
                    logs=lazy("vivavoce.server.monitoring:LogOptions")(log_format, log_level),
                ),
                started=started,
            )


def _add_webhook(store: Store, url: str, *, private: bool) -> None:
    """Add a webhook, unless the store has one of that address, and print a secret that was made for it."""
    check_outward(url, private=private)
    if any(one.url == url for one in store.webhooks.all()):
        return
    given = os.environ.get("VIVAVOCE_WEBHOOK_SECRET") or None
    made = store.webhooks.add(url, actor=user_name(), secret=given)
    if given is None:
        notes().print(
            f"webhook {made.id} for {url}: its secret is {made.secret}; it is not shown again", soft_wrap=True
        )


def view(
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


JOB_COLUMNS = (
    Column("job"),
    Column("created", rank=4),
    Column("kind", rank=5),
    Column("status"),
    Column("done", "right", rank=3),
    Column("run", rank=2),
    Column("detail", flows=True),
)


def jobs(
    what: Annotated[Literal["list", "cancel"], typer.Argument(help="The action.")] = "list",
    job: Annotated[
        str | None, typer.Argument(metavar="ID", help="cancel: the id of the job.", show_default=False)
    ] = None,
    *,
    limit: Annotated[int, typer.Option(min=1, help="list: maximum number of jobs.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per job.")] = False,
    store: StoreOption = None,
) -> None:
    """List the jobs of the servers of a store, newest first, or cancel one; no server needs to run.

    A server that runs a cancelled job finishes the conversations in progress; cancel the job again to stop these, too.
    If no server runs the job, it ends immediately, and no server continues it.
    """
    if (what == "cancel") is (job is None):
        raise UsageError(
            "name one job: viva serve jobs cancel ID" if job is None else "viva serve jobs list takes no job"
        )
    with Store.open(store_of(store), create=False) as opened:
        if job is not None:
            _show_cancelled(cancel_stored_job(opened, job), as_json)
            return
        records = [current_record(opened, row) for row in opened.jobs.list(None, limit)]
    if as_json:
        for record in records:
            print_json(strict_json(record.model_dump()))
    else:
        out().print(FittingTable(JOB_COLUMNS, [[*map(Text, _job_cells(record))] for record in records]))


def _show_cancelled(record: JobRecord, as_json: bool) -> None:
    if as_json:
        print_json(strict_json(record.model_dump()))
    elif record.status == "interrupted" and record.detail == "cancelled":
        notes().print(f"cancelled job {record.id}", soft_wrap=True)
    elif record.over:
        notes().print(f"job {record.id} is already over: {record.status}", soft_wrap=True)
    else:
        notes().print(
            f"asked the server that runs job {record.id} to stop it after the conversations in progress",
            soft_wrap=True,
        )


def _job_cells(record: JobRecord) -> list[str]:
    created = time.strftime("%Y-%m-%d %H:%M", time.localtime(record.created_at))
    done = f"{record.done:,}" if record.planned is None else f"{record.done:,} of {record.planned:,}"
    return [record.id, created, record.kind, record.status, done, record.run or "–", safe(record.detail or "")]
