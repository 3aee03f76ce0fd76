"""`viva scenarios`: rows of a dataset for the autonomous tester, written by a model."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TextIO

import typer

from vivavoce.cli.output import existing, notes
from vivavoce.errors import UsageError
from vivavoce.metrics.transcript import quoted
from vivavoce.pacing.loops import run as run_loop
from vivavoce.penelope.distil import Distilled, stream_distilled
from vivavoce.penelope.scenarios import Scenario, stream_scenarios
from vivavoce.report.text import count, one_line, printable_json
from vivavoce.samples.rows import check_samples, read_samples
from vivavoce.settings import settings


def command(
    *,
    description: Annotated[str | None, typer.Option(help="What is tested and for whom, in words.")] = None,
    recorded: Annotated[
        Path | None,
        typer.Option("--from", help="Recorded conversations in place of a description: JSONL, JSON, CSV or Parquet."),
    ] = None,
    model: Annotated[str | None, typer.Option(help="The model that writes; VIVAVOCE_TESTER unless named.")] = None,
    number: Annotated[
        int, typer.Option("--number", "-n", min=1, max=10_000, help="Scenarios to write, or conversations to read.")
    ] = 10,
    focus: Annotated[str | None, typer.Option(help="What to look for above all, with --description.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A new file; standard output unless named.")
    ] = None,
    max_concurrent: Annotated[int, typer.Option(min=1, max=1_000, help="Conversations at a time, with --from.")] = 8,
    keep_personal_data: Annotated[
        bool, typer.Option("--keep-personal-data", help="With --from, mask no addresses and numbers of people.")
    ] = False,
) -> None:
    """Write test scenarios, as rows of a dataset, from a description or from recorded conversations.

    Each row is one part for the tester to play: a goal, a situation, a persona, facts. For example:

    viva scenarios --description "A shop's bot for refunds" -n 20 -o new.jsonl

    viva scenarios --from talks.jsonl --model openai:gpt-4.1-mini -o new.jsonl

    From conversations, only facts that the user said are kept, and e-mail addresses, phone, account, card and social
    security numbers are masked. Each row is written as it comes. Exit codes: 0 done, 2 wrong usage, 3 nothing was
    written or the model failed, 130 interrupted.
    """
    if (description is None) == (recorded is None):
        raise UsageError("give either --description, what is tested, or --from, a file of recorded conversations")
    if focus is not None and recorded is not None:
        raise UsageError("--focus goes with --description: what is recorded has its own")
    asked = model or settings().tester
    if asked is None:
        raise UsageError("name the model that writes with --model, or in VIVAVOCE_TESTER")
    if recorded is None:
        scenarios = stream_scenarios(description or "", asked, n=number, focus=focus)
    else:
        check_samples(existing(recorded), limit=number)
        samples = read_samples(recorded, limit=number)
        scenarios = _told(
            stream_distilled(samples, asked, concurrency=max_concurrent, keep_personal_data=keep_personal_data)
        )
    try:
        written = run_loop(_write(scenarios, output))
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    wanted = "" if written == number or recorded is not None else f" of {number}"
    notes().print(f"wrote {count(written, 'scenario')}{wanted}{f' to {output}' if output else ''}", soft_wrap=True)
    raise typer.Exit(0 if written else 3)


async def _write(scenarios: AsyncIterator[Scenario], output: Path | None) -> int:
    """Write each scenario as it comes, and return how many there were."""
    written = 0
    with _new(output) as file:
        async for scenario in scenarios:
            line = quoted(scenario.row())
            file.write((line if output else printable_json(line)) + "\n")
            file.flush()
            written += 1
            notes().print(one_line(f"{written}: {scenario.goal}"))
    return written


async def _told(stream: AsyncIterator[Distilled]) -> AsyncIterator[Scenario]:
    """Yield the scenarios, and say what was left out."""
    async for one in stream:
        if one.failure is not None:
            notes().print(one_line(f"{one.id}: {one.failure}", 300))
        if one.unsaid:
            notes().print(one_line(f"{one.id}: left out, for the user never said it: {', '.join(one.unsaid)}", 300))
        if one.scenario is not None:
            yield one.scenario


@contextmanager
def _new(path: Path | None) -> Generator[TextIO]:
    """Open a file that is not there yet, or standard output; a file that stays empty is removed.

    Raises:
        UsageError: it is there already, or cannot be written.
    """
    if path is None:
        yield sys.stdout
        return
    try:
        file = path.open("x", encoding="utf-8", newline="\n")
    except FileExistsError:
        raise UsageError(f"{path} is there already and is not overwritten; name another file") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error
    with file:
        try:
            yield file
        finally:
            if file.tell() == 0:
                path.unlink()
