"""Running the suites of a command line: whole, in parts, or against a baseline, and what is printed at the end."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self, cast

from rich.text import Text

from vivavoce.cli.output import complain, existing, notes, out
from vivavoce.cli.progress import RunProgress, execute
from vivavoce.errors import UsageError
from vivavoce.extensions import needed_answer
from vivavoce.lazy_names import lazy
from vivavoce.records.run import Run
from vivavoce.records.score import Usage
from vivavoce.report.details import target_names
from vivavoce.report.graded_run import GradedRun, continuing, errors_again, partial_note
from vivavoce.report.terminal import run_report
from vivavoce.report.text import one_line
from vivavoce.report.worst_samples import worst
from vivavoce.run.experiment_run import ExperimentRun
from vivavoce.run.options import RunOptions
from vivavoce.run.summary import EXIT_CODES, RunResult
from vivavoce.safe_text import safe
from vivavoce.store.store import Store
from vivavoce.suites.check import check_output, output_of
from vivavoce.suites.command_line import read_targets
from vivavoce.suites.experiment import changed_again, failed_again, reopen_run, suite_of, suite_run
from vivavoce.suites.load import Suite, TargetChanges, load_suite, stored_suite

if TYPE_CHECKING:
    from vivavoce.cli.options import InParts
    from vivavoce.report.comparison.comparison import Comparison
    from vivavoce.report.comparison.regressions import Tolerance
    from vivavoce.report.comparison.sides import Baseline


@dataclass(frozen=True, slots=True)
class Against:
    """The baseline of a run, read before the run begins, and what counts as worse."""

    path: Path
    baseline: Baseline
    tolerance: Tolerance

    @classmethod
    def read(cls, path: Path | None, smallest_effect: float | None, fail_on_break: bool) -> Self | None:
        """Return what a run is compared with, None for nothing.

        Raises:
            UsageError: the file is not a baseline, or no earlier run exists to be worse than.
        """
        if path is not None:
            baseline: Baseline = lazy("vivavoce.report.comparison.sides:read_baseline")(path)
            tolerance: Tolerance = lazy("vivavoce.report.comparison.regressions:Tolerance")(
                smallest_effect, fail_on_break
            )
            return cls(path, baseline, tolerance)
        if fail_on_break or smallest_effect is not None:
            raise UsageError("--smallest-effect and --fail-on-break need --baseline FILE")
        return None

    def check(self, suite: Suite) -> None:
        """Refuse, before anything runs, a suite of whose targets none is in the baseline.

        Raises:
            UsageError: with the targets of both; one target on each side is compared whatever the names.
        """
        names = [name for spec in suite.spec.all_targets.values() for name, _ in spec.names_and_models]
        known = list(self.baseline.side.targets)
        if names and not set(names) & set(known) and (len(names), len(known)) != (1, 1):
            raise UsageError(
                f"{self.path}: no target in both runs (baseline: {', '.join(known) or 'none'}; run: "
                f"{', '.join(names)}); use the same target names, or export the baseline again"
            )

    def exit_code(self, store: Store, result: RunResult, options: Sequence[str]) -> int:
        """Print whether a complete run is worse; return the exit code of both verdicts: 1 before 3 before 0."""
        if result.stopped_by is not None:
            out().print(Text(f"not compared with {safe(str(self.path))}: the run is not complete", style="yellow"))
            return result.exit_code
        compare = lazy("vivavoce.report.comparison.pairing:compare")
        compared = cast("Comparison", compare(store, self.baseline.side, result.grading, reasons=False))
        found: Comparison = lazy("vivavoce.report.comparison.regressions:add_ruling")(compared, self.tolerance)
        assert found.ruling is not None
        out().print(*lazy("vivavoce.report.comparison.regressions:ruling_lines")(found.ruling), sep="\n")
        if "compare" in lazy("vivavoce.cli.main:commands")():
            command = ["viva", "compare", "--baseline", str(self.path), *self._tolerated, *options, result.run.id]
            out().print(Text(f"see what changed with: {safe(shlex.join(command))}", style="dim"))
        codes = {result.exit_code, EXIT_CODES[found.ruling.verdict]}
        return next((code for code in (1, 3) if code in codes), 0)

    @property
    def _tolerated(self) -> list[str]:
        """The options of what counts as worse, so that another command decides the same."""
        smallest, breaks = self.tolerance.smallest_effect, self.tolerance.no_breaks
        return [
            *([] if smallest is None else ["--smallest-effect", f"{smallest:g}"]),
            *(["--fail-on-break"] if breaks else []),
        ]


INTERRUPTED, WRONG = 130, 2
WORST_FIRST = (INTERRUPTED, WRONG, 1, 3, 0)
"""Exit codes; that of several suites is the first of these that one of them has."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How the run of a suite ended, in words, and its exit code; `run` is its record, None where nothing was run."""

    words: str
    code: int
    run: Run | None = None


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs suites with the options of a command line.

    `place` are the options with which another command finds the same store, `environment` those that `viva run` also
    needs.
    """

    store: Store
    options: RunOptions
    targets: Sequence[str] | None = None
    changes: TargetChanges | None = None
    output: Path | None = None
    quiet: bool = False
    table: bool = False
    against: Against | None = None
    place: Sequence[str] = ()
    environment: Sequence[str] = ()

    def suite(self, path: Path, earlier: Run | None = None) -> Ended:
        """Run a suite; with an earlier run of it, hold only the conversations that have changed since."""
        suite, progress = loaded(path, self.targets, self.changes), RunProgress(notes(), self.quiet)
        if earlier is None:
            work = suite_run(suite, self.options, store=self.store, listeners=[progress])
        else:
            work = changed_again(earlier, suite, self.options, store=self.store, listeners=[progress])
        return self._held(suite, work, progress)

    def failed(self, name: str, path: Path | None) -> Ended:
        """Run only what failed in a run, of the suite at a path or else of the suite that the run recorded."""
        if path is None:
            run = self.store.run(name)
            suite = suite_of(run)
        else:
            suite = loaded(path, self.targets, self.changes)
            run = self.store.run(name, suite=suite.spec.name)
        progress = RunProgress(notes(), self.quiet)
        work = failed_again(run, suite, self.options, store=self.store, listeners=[progress])
        graded = GradedRun(self.store, run, self.store.grading(run.id))
        if not graded.ended:
            notes().print(f"run {run.id} is not complete; what it did not reach is not run now")
            notes().print(continuing(run, [*self.place, *self.environment]), soft_wrap=True)
        if work is None:
            notes().print(f"nothing failed in run {run.id}, so nothing is run again")
            return Ended(f"nothing failed in {run.id}", EXIT_CODES[graded.summary().verdict], run)
        return self._held(suite, work, progress)

    def resumed(self, name: str, path: Path | None, *, errors: bool) -> Ended:
        """Continue a run; with the path of a suite, the newest of that suite."""
        run = self.store.run(name, suite=None if path is None else loaded(path, None).spec.name)
        progress = RunProgress(notes(), self.quiet)
        work = reopen_run(run.id, self.options, store=self.store, listeners=[progress], errors=errors)
        return self._held(stored_suite(run), work, progress)

    def every(self, paths: Sequence[Path], one: Callable[[Path], Ended]) -> int:
        """Run several suites, say at the end how each ended, and return the exit code of the worst."""
        ends: list[Ended] = []
        for path in paths:
            out().print(str(path), style="bold")
            try:
                ends.append(one(path))
            except UsageError as error:
                for problem in error.problems:
                    complain(problem)
                ends.append(Ended("wrong usage or configuration, nothing was run", WRONG))
            out().print()
            if ends[-1].code == INTERRUPTED:
                break
        said = [ended.words for ended in ends] + ["not run"] * (len(paths) - len(ends))
        for path, words in zip(paths, said, strict=True):
            out().print(one_line(f"{path}: {words}", 300))
        return min((ended.code for ended in ends), key=WORST_FIRST.index)

    def _held(self, suite: Suite, work: ExperimentRun, progress: RunProgress) -> Ended:
        check_output(suite, self.output)
        if self.against is not None:
            self.against.check(suite)
        result = execute(work, progress)
        output = self.output or output_of(suite)
        report_run(self.store, result, output, self.place, self.environment, table=self.table)
        code = self.against.exit_code(self.store, result, self.place) if self.against else result.exit_code
        return Ended(str(result), code, result.run)


def loaded(suite: Path, targets: Sequence[str] | None, changes: TargetChanges | None = None) -> Suite:
    """Return a suite, with other targets if some are named, and with changes in them."""
    path = existing(suite)
    with redirect_stdout(sys.stderr):  # files of users may print when they are executed
        return load_suite(path, read_targets(targets or ()), changes)


def work_in_parts(
    suite: Suite,
    how: InParts,
    options: RunOptions,
    *,
    files: Sequence[str] | None = None,
    store: str | None = None,
    quiet: bool,
) -> int:
    """Judge the conversations of `files` in parts, or run a suite in parts, and return the exit code."""
    arguments = {"suite": suite, "files": files, "how": how, "options": options, "store": store, "quiet": quiet}
    code: int = needed_answer("--parts", "parts", "work_in_parts", **arguments)
    return code


def report_run(
    store: Store,
    result: RunResult,
    output: Path | None,
    options: Sequence[str],
    environment: Sequence[str] = (),
    *,
    table: bool = False,
) -> None:
    """Print the result of a run, with a table of all its samples if one is asked for, and write the requested files.

    `options` are those with which another command finds the run, `environment` those that `viva run` also needs.
    """
    console, graded = out(), GradedRun(store, result.run, result.grading)
    for note in result.notes:
        notes().print(note, style="dim")
    if note := partial_note(result.run):
        console.print(note)
    if table:
        console.print(lazy("vivavoce.report.matrix:sample_table")(graded, options))
    used: dict[str, Usage] = {}
    if len(target_names(result.summary)) > 1:
        used = lazy("vivavoce.report.matrix:used_by_targets")(graded)
    found = worst(store, result.grading)
    console.print(run_report(result.summary, found, result.run.id, options, used=used))
    if output is not None:
        lazy("vivavoce.report.letta_files:write_letta_layout")(store, result.run, result.grading, output)
    if result.stopped_by is not None:
        console.print(continuing(result.run, [*options, *environment]))
    if again := errors_again(store, result.grading, result.summary, [*options, *environment]):
        console.print(again)
