"""`viva export publish`: send a run with its scores to a tool for traces or experiments."""

from __future__ import annotations

from typing import Annotated

import typer

from vivavoce.cli.output import StoreOption, notes, store_of
from vivavoce.report.export import publish, published_to
from vivavoce.report.graded_run import GradedRun
from vivavoce.store.store import Store


def command(
    run: Annotated[str, typer.Argument(help="A run: its id, the beginning or end of its id, or 'latest'.")] = "latest",
    *,
    to: Annotated[str, typer.Option("--to", help=f"One of {', '.join(published_to())}.")],
    grading: Annotated[str | None, typer.Option(help="The grading to send; default: the newest.")] = None,
    store: StoreOption = None,
) -> None:
    """Send a run with its scores to another tool. Sending it again creates no duplicates.

    The address and keys come from the variables of the tool's own packages: LANGFUSE_PUBLIC_KEY, LANGFUSE_SECRET_KEY,
    LANGFUSE_BASE_URL; PHOENIX_COLLECTOR_ENDPOINT, PHOENIX_API_KEY, PHOENIX_PROJECT_NAME; MLFLOW_TRACKING_URI;
    WANDB_API_KEY, WANDB_PROJECT, WANDB_MODE; OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS for otel, which is
    any OpenTelemetry receiver. `viva export --format langfuse`, `phoenix` or `otel` writes what would be sent. Exit
    codes: 0 sent, 2 wrong usage, or the tool is unreachable or rejects something.
    """
    with Store.open(store_of(store), create=False) as opened:
        stored_run = opened.run(run)
        for line in publish(GradedRun(opened, stored_run, opened.grading(stored_run.id, grading)), to):
            notes().print(line, soft_wrap=True)
