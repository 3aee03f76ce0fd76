"""`viva validate`, and what it and a dry run print about the work of a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from vivavoce.cli.options import TargetOption
from vivavoce.cli.output import complain, existing, notes, out
from vivavoce.errors import UsageError
from vivavoce.lazy_names import lazy
from vivavoce.records.trajectory import BY_RECORD
from vivavoce.report.text import count
from vivavoce.safe_text import safe
from vivavoce.store.database.address import is_postgresql, path_of
from vivavoce.suites.check import Checked, Forecast, missing_keys, run_checks
from vivavoce.suites.command_line import read_targets
from vivavoce.suites.load import Suite, load_for_check


def command(
    suites: Annotated[list[Path], typer.Argument(help="Suites: YAML files.", show_default=False)],
    *,
    target: TargetOption = None,
) -> None:
    """Check suites without running them: keys, files, names, options, gates and every row of their datasets.

    Prints every mistake with its file and line, and exits with 2. If there is no mistake, prints how many calls a run
    would make.
    """
    problems: list[object] = []
    replaced = read_targets(target or ())
    for path in suites:
        try:
            suite = load_for_check(existing(path), replaced)
            found = run_checks(suite)
        except UsageError as error:
            problems += error.problems
            continue
        for note in (*found.prepared.suite.notes, *missing_keys(found.prepared)):
            out().print(f"note: {note}", style="dim")
        era = f" (letta-evals, era {suite.era})" if suite.era else ""
        out().print(f"{path}{era}: valid · {forecast_line(found.forecast)}")
        for line in _visibility_lines(suite):
            out().print(line, style="dim")
    for problem in dict.fromkeys(map(str, problems)):
        complain(problem)
    if problems:
        raise typer.Exit(2)


def _visibility_lines(suite: Suite) -> Iterator[str]:
    """Yield how many of its calls each target shows to the judge of a tester; nothing without a tester."""
    if suite.spec.driver != "penelope":
        return
    for spec in suite.spec.all_targets.values():
        for name, _ in spec.names_and_models:
            default = spec.default_calls or BY_RECORD
            yield f"{safe(name)}: calls: {spec.calls or f'{default} (default)'}"


def forecast_line(found: Forecast) -> str:
    """Return in words how many calls a run would make."""
    fewer = found.depends and not (found.led or found.early)
    verdicts = f"{'at most ' if fewer else ''}{count(found.verdicts, 'judge verdict')}"
    if not found.targets:
        held = f"{count(found.conversations, 'recorded conversation')}, {count(found.turns, 'turn')}"
        return f"{held}; no target is called, {verdicts}"
    most = "at most " if found.led or found.early else ""
    tested = ", about as many calls to the tester" if found.led else ""
    judging = f"{tested}, {most if found.verdicts else ''}{verdicts}"
    early = "at most " if found.early else ""
    trials = f"{early}{count(found.trials, 'trial')}"
    product = " × ".join((count(found.samples, "sample"), count(found.targets, "target"), trials))
    return (
        f"{product} = {early}{count(found.conversations, 'conversation')}; "
        f"{most}{count(found.messages, 'message')} to the target{'s' * (found.targets > 1)}"
        f"{judging}, {_at_a_time(found)}"
    )


def _at_a_time(found: Forecast) -> str:
    if found.targets == 1:
        return f"{next(iter(found.fewer.values()), found.concurrency)} at a time"
    fewer = "".join(f", {most} for {safe(name)}" for name, most in found.fewer.items())
    return f"{found.concurrency} at a time for each target{fewer}"


def print_forecast(found: Checked, place: str) -> None:
    """Print how many calls a run of a suite would make, and what it would use; `place` is the store."""
    suite = found.prepared.suite
    for note in suite.notes:
        notes().print(note, style="dim", soft_wrap=True)
    out().print(forecast_line(found.forecast))
    if is_postgresql(place) or path_of(place).exists():
        expected_lines = lazy("vivavoce.report.graded_run:expected_lines")
        for line in expected_lines(place, suite.spec.name, found.forecast.conversations):
            out().print(Text(safe(line), style="dim"))
