"""What is left at the end of a call of pytest: summaries of the runs, and their reports as files."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from vivavoce.errors import did_you_mean
from vivavoce.records.run import Run
from vivavoce.report.details import skip_lines
from vivavoce.report.export import SUFFIXES, export, format_of, formats_of_extension
from vivavoce.report.graded_run import GradedRun, continuing, show_command
from vivavoce.report.text import count, inert, one_line
from vivavoce.report.verdict import explain_verdict
from vivavoce.run.summary import Summary
from vivavoce.store.store import Store
from vivavoce.testing.session import SharedSession


def wrong_suffix(path: Path) -> str | None:
    """Return what is wrong with the suffix of a file, None where it names a format."""
    if formats_of_extension(path.suffix):
        return None
    return f"--viva-report={path}: the suffix names no format{did_you_mean(path.suffix, SUFFIXES)}"


def write_reports(session: SharedSession, stores: Mapping[str, str], path: Path) -> Iterator[str]:
    """Write each run to a file, several to a file each, named after their suites; yield a line for each.

    `stores` has the store of each run by its id, empty where it is that of the session.

    Raises:
        UsageError: a file cannot be written.
    """
    with _open_runs(session, stores) as graded_runs:
        for graded, place in zip(
            graded_runs, _places([graded_run.run for graded_run in graded_runs], path), strict=True
        ):
            export(graded.store, graded.run, graded.grading, format_of(None, place), place)
            yield f"wrote {place}: run {graded.run.id}"


def summary_lines(session: SharedSession, stores: Mapping[str, str]) -> Iterator[str]:
    """Yield for each run what came of it, and the command that shows it; `stores` as for `write_reports`."""
    with _open_runs(session, stores) as graded_runs:
        for graded in graded_runs:
            elsewhere = graded.store is not session.store
            yield inert(_summary(graded, ["--store", str(graded.store.place)] if elsewhere else session.options))


@contextmanager
def _open_runs(session: SharedSession, stores: Mapping[str, str]) -> Generator[list[GradedRun]]:
    """Give the runs, each with its store, which is open for as long."""
    with ExitStack() as stack:
        places = dict.fromkeys(place for place in stores.values() if place)
        opened = {place: stack.enter_context(Store.open(place, create=False)) for place in places}
        stored_runs = [(opened[place] if place else session.store, run_id) for run_id, place in stores.items()]
        yield [GradedRun(store, store.run(run_id), store.grading(run_id)) for store, run_id in stored_runs]


def _summary(graded: GradedRun, options: Sequence[str]) -> str:
    run, summary = graded.run, graded.summary()
    means = [f"{grader.name} {grader.mean:.3f}" for grader in summary.graders if grader.mean is not None]
    verdict = _verdict(run, summary)
    next_step = show_command(run.id, "", options).removesuffix(" ''") if graded.ended else continuing(run, options)
    skipped = [one_line(line, 200) for line in skip_lines(summary)]
    parts = [count(summary.attempts, "conversation"), *means, *verdict, *skipped, next_step]
    return " · ".join([one_line(run.suite), *parts])


def _verdict(run: Run, summary: Summary) -> list[str]:
    """Return what the gate says; of a part of the samples it says nothing."""
    if run.options.get("samples"):
        return ["a part of the samples"]
    return [] if summary.verdict is None else [one_line("; ".join(explain_verdict(summary)) or summary.verdict, 200)]


def _places(runs: Sequence[Run], path: Path) -> list[Path]:
    """Return a file for each run: the named one for a single run, else one with the name of the suite in it."""
    if len(runs) == 1:
        return [path]
    names = [run.id.rpartition("-")[0] for run in runs]
    distinct = len(set(names)) == len(names)
    ends = names if distinct else [run.id for run in runs]
    return [path.with_stem(f"{path.stem}-{end}") for end in ends]
