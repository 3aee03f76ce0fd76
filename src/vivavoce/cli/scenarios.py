"""`viva scenarios`: a model writes dataset rows for the autonomous tester."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from vivavoce.cli.output import existing, notes
from vivavoce.errors import UsageError
from vivavoce.files.rows import read_rows
from vivavoce.models.custom import ModelLike
from vivavoce.pacing.loops import run as run_loop
from vivavoce.penelope.distil import Distilled, stream_distilled
from vivavoce.penelope.scenarios import Scenario, stream_scenarios
from vivavoce.penelope.target_data import MAX_CHARS
from vivavoce.plugins import is_file_reference, load_object
from vivavoce.report.text import count, one_line, printable_json
from vivavoce.safe_text import quoted
from vivavoce.samples.rows import check_samples, read_samples
from vivavoce.settings import settings
from vivavoce.suites.document import read_records

Data = Annotated[
    Path | None,
    typer.Option(
        help="With --description: records of the target, such as orders, to take facts from: JSONL, JSON, CSV, "
        "Parquet or YAML."
    ),
]


def command(
    *,
    description: Annotated[str | None, typer.Option(help="A description of what is tested and who uses it.")] = None,
    recorded: Annotated[
        Path | None,
        typer.Option("--from", help="Recorded conversations instead of a description: JSONL, JSON, CSV or Parquet."),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="The model that writes, or file.py:name; default: VIVAVOCE_TESTER.")
    ] = None,
    number: Annotated[
        int,
        typer.Option(
            "--number", "-n", min=1, max=10_000, help="How many scenarios to write, or how many conversations to read."
        ),
    ] = 10,
    focus: Annotated[str | None, typer.Option(help="With --description: what the scenarios should focus on.")] = None,
    data: Data = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A new file; default: standard output.")] = None,
    max_concurrent: Annotated[
        int, typer.Option(min=1, max=1_000, help="With --from: maximum number of conversations at a time.")
    ] = 8,
    keep_personal_data: Annotated[
        bool,
        typer.Option(
            "--keep-personal-data", help="With --from: do not mask personal data such as addresses and numbers."
        ),
    ] = False,
) -> None:
    """Write test scenarios, as rows of a dataset, from a description or from recorded conversations.

    Each row describes a user for the tester to play: a goal, a situation, a persona, and facts. For example:

    viva scenarios --description "A shop's bot for refunds" -n 20 -o new.jsonl

    viva scenarios --description "A shop's bot for refunds" --data orders.csv -o new.jsonl

    viva scenarios --from talks.jsonl --model openai:gpt-4.1-mini -o new.jsonl

    With --data, only facts whose values are in these records are used. With --from, only facts that the user stated are
    used, and e-mail addresses, phone, account, card and social security numbers are masked. Each row is written as soon
    as it is ready. Exit codes: 0 done, 2 wrong usage, 3 no row was written or the model failed, 130 interrupted.
    """
    if (description is None) == (recorded is None):
        raise UsageError("give either --description (what is tested) or --from (a file of recorded conversations)")
    for option, value in (("--focus", focus), ("--data", data)):
        if value is not None and recorded is not None:
            raise UsageError(f"{option} works only with --description")
    writer = _writer(model or settings().tester)
    if recorded is None:
        records = None if data is None else _records(existing(data))
        scenarios = _complete(stream_scenarios(description or "", writer, n=number, focus=focus, data=records))
    else:
        check_samples(existing(recorded), limit=number, log=True)
        samples = read_samples(recorded, limit=number)
        scenarios = _report_left_out(
            stream_distilled(samples, writer, concurrency=max_concurrent, keep_personal_data=keep_personal_data)
        )
    try:
        written = run_loop(_write(scenarios, output))
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    total = "" if written == number or recorded is not None else f" of {number}"
    notes().print(f"wrote {count(written, 'scenario')}{total}{f' to {output}' if output else ''}", soft_wrap=True)
    raise typer.Exit(0 if written else 3)


def _writer(name: str | None) -> ModelLike:
    """Return the model that writes.

    Raises:
        UsageError: none is named, or its file cannot be used.
    """
    if name is None:
        raise UsageError("no model is configured: use --model, or set VIVAVOCE_TESTER")
    return load_object(name, Path()) if is_file_reference(name) else name


async def _write(scenarios: AsyncIterator[Scenario], output: Path | None) -> int:
    """Write each scenario as soon as it is ready, and return how many there were."""
    written = 0
    with _new(output) as file:
        async for scenario in scenarios:
            line = quoted(scenario.row())
            file.write((line if output else printable_json(line)) + "\n")
            file.flush()
            written += 1
            notes().print(one_line(f"{written}: {scenario.goal}"))
    return written


def _records(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file.

    Raises:
        UsageError: the file is too large, or cannot be read.
    """
    if (size := path.stat().st_size) > MAX_CHARS:
        raise UsageError(f"{path} has {size:,} bytes, at most {MAX_CHARS:,} allowed; remove records")
    if path.suffix.lower() in (".yaml", ".yml"):
        return read_records(path, kind="data file")
    return [row for _, row in read_rows(path)]


async def _complete(stream: AsyncIterator[Scenario]) -> AsyncIterator[Scenario]:
    """Yield the scenarios, and say which facts were left out."""
    async for one in stream:
        if one.left_out:
            notes().print(one_line(f"{one.id}: facts left out, masked or in no record: {', '.join(one.left_out)}", 300))
        yield one


async def _report_left_out(stream: AsyncIterator[Distilled]) -> AsyncIterator[Scenario]:
    """Yield the scenarios, and say what was left out."""
    async for one in stream:
        if one.failure is not None:
            notes().print(one_line(f"{one.id}: {one.failure}", 300))
        if one.unsaid:
            unsaid = ", ".join(one.unsaid)
            notes().print(one_line(f"{one.id}: facts left out, because the user never said them: {unsaid}", 300))
        if one.scenario is not None:
            yield one.scenario


@contextmanager
def _new(path: Path | None) -> Generator[TextIO]:
    """Open a new file, or standard output; a file that stays empty is removed.

    Raises:
        UsageError: the file already exists, or cannot be written.
    """
    if path is None:
        yield sys.stdout
        return
    try:
        file = path.open("x", encoding="utf-8", newline="\n")
    except FileExistsError:
        raise UsageError(f"{path} already exists and is not overwritten; name another file") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error
    with file:
        try:
            yield file
        finally:
            if file.tell() == 0:
                path.unlink()
