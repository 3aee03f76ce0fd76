"""`viva validate`: check a suite and its dataset without running it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from vivavoce.cli.forecast import forecast_line
from vivavoce.cli.options import TargetOption
from vivavoce.cli.output import complain, existing, out
from vivavoce.errors import UsageError
from vivavoce.records.trajectory import BY_RECORD
from vivavoce.safe_text import safe
from vivavoce.suites.check import missing_keys, run_checks
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
