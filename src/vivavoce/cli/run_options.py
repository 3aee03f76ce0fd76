"""The options of `viva run` alone: which suites, how much of them, and how they are run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vivavoce.cli import RUN

SuitesArgument = Annotated[
    list[Path] | None, typer.Argument(metavar="SUITE", help="Suites: YAML files.", show_default=False)
]
SampleOption = Annotated[
    list[str] | None,
    typer.Option(help="Only the samples with this id, or a pattern such as 'total-*'; repeat for more."),
]
FailedOption = Annotated[
    str | None,
    typer.Option(metavar=RUN, help="Run again only the samples that failed or had an error in a run, the latest."),
]
WatchOption = Annotated[
    bool, typer.Option("--watch", help="Run again what changed, whenever a file of the suite changes.")
]
ResumeOption = Annotated[
    str | None,
    typer.Option(metavar=RUN, help="Continue a run, the latest: do only what is not done yet."),
]
EnvFileOption = Annotated[
    Path | None,
    typer.Option("--env-file", help="Read variables from this file of NAME=value lines; those set already stay."),
]
ModelHandleOption = Annotated[
    str | None, typer.Option(metavar="MODEL", help="Another model for the suite's targets, on Letta or an endpoint.")
]
BaseUrlOption = Annotated[
    str | None, typer.Option("--base-url", metavar="URL", help="Another address for the suite's targets.")
]
ApiKeyOption = Annotated[
    str | None,
    typer.Option(
        "--api-key", metavar="KEY", help="The key of a Letta server; better set LETTA_API_KEY.", show_default=False
    ),
]
RecordingOption = Annotated[
    Path | None,
    typer.Option(
        "--recording",
        metavar="FILE",
        help="Test a new release offline: answer its tools from this recording (viva export --format recordings) and "
        "compare each conversation with it, turn by turn. A call that is not in it is an error.",
    ),
]
LiveOption = Annotated[
    list[str] | None,
    typer.Option(
        "--live",
        metavar="NAME",
        help="With a recording: a tool that is called for real, or a target that calls its own; repeat for more.",
    ),
]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Also write files in the layout of letta-evals to this folder."),
]
CallsOption = Annotated[
    int | None, typer.Option(min=0, help="Maximum number of messages to the target and calls of judges together.")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Check everything and count the calls; make none.")]
TrialsOption = Annotated[int | None, typer.Option(min=1, help="How often to run each sample; gives pass@k and pass^k.")]
