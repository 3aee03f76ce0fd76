"""`viva watch`: a suite again whenever its files change; and the state of watches."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.table import Table

from vivavoce.cli.output import complain, notes, out, print_json
from vivavoce.cli.runner import INTERRUPTED, Runner, loaded
from vivavoce.errors import UsageError
from vivavoce.records.run import Run
from vivavoce.report.text import count, one_line
from vivavoce.report.watched import Watched, alert_line, budget_lines, watched
from vivavoce.run.result import EXIT_CODES
from vivavoce.store.store import Store
from vivavoce.suites.files import SuiteFiles, files_of_suite


def print_status(place: str, name: str, *, check: bool, as_json: bool) -> int:
    """Print how a watch is doing; return the exit code, with `check` that of its gate.

    Raises:
        UsageError: there is no such watch, or with `check` its suite has no gate.
    """
    with Store.open(place, create=False) as store:
        found = watched(store, name)
    if check and found.state.alert is None:
        raise UsageError(f"the watch '{name}' has no gate; start it with --suite FILE, a suite with a gate")
    if as_json:
        print_json(found.model_dump_json(indent=2))
    else:
        _print(found)
    return EXIT_CODES[found.verdict] if check else 0


def _print(found: Watched) -> None:
    alert, total = found.state.alert, found.total
    out().print(one_line(f"{found.name}: {found.note or 'watching'}", 200), soft_wrap=True)
    if alert is not None:
        out().print(one_line(f"gate {alert.state}: {alert_line(alert)}", 400), soft_wrap=True)
    if found.state.spending is not None:
        used = " · ".join(f"{what} {words}" for what, _, words in budget_lines(found.state.spending))
        spent = "; spent, so nothing more is judged in it" if found.state.spending.spent else ""
        out().print(one_line(f"run {found.state.spending.run}: {used}{spent}", 200), soft_wrap=True)
    if found.state.split:
        split = f"{count(found.state.split, 'conversation')} also judged by the watch '{found.state.split_with}'"
        out().print(one_line(f"{split}: send all traces of a conversation to one receiver", 300), soft_wrap=True)
    seen = f"{count(total.arrived, 'conversation')} in {found.span}, {total.sampled:,} sampled, {total.judged:,} judged"
    left = f", {total.broken:,} with an error, {total.passed_over:,} passed over, {found.state.waiting:,} waiting"
    out().print(seen + left, soft_wrap=True)
    if total.rates:
        out().print(_rates(found))
    for one in found.failing:
        out().print(one_line(f"failed: {one.sample_id} in {one.run}: {one.grader}: {one.reason}", 200), soft_wrap=True)


def _rates(found: Watched) -> Table:
    table = Table(box=None, pad_edge=False, header_style="")
    table.add_column("grader")
    for column in ("scored", "errors", "skipped", "pass rate", "95% interval"):
        table.add_column(column, justify="right")
    for name, rate in found.total.rates.items():
        counts = (f"{rate.scored:,}", f"{rate.errors:,}", f"{rate.skipped:,}")
        share = "–" if rate.share is None else f"{rate.share:.1%}"
        ends = "–" if rate.low is None or rate.high is None else f"{rate.low:.1%} … {rate.high:.1%}"
        table.add_row(one_line(name, 40), *counts, share, ends)
    return table


POLL = 0.1
"""Seconds between two looks at the files."""
SETTLED = 2
"""Looks in a row without a change, after which a file counts as written."""
PATIENCE = 0.5
"""Seconds after which a suite that cannot be run is tried once more, because a file may be half written."""

Stamps = Mapping[Path, tuple[int, int] | None]
"""When each file was changed, in nanoseconds, and its size; None for a file that is not there."""


def watch_suites(runner: Runner, paths: Sequence[Path]) -> int:
    """Run suites, and each again whenever its files change, until Ctrl-C; return the exit code of that."""
    watched = [_Watched(runner, path) for path in paths]
    try:
        if any(one.run() == INTERRUPTED for one in watched):
            return INTERRUPTED
        notes().print(f"watching {count(len({file for one in watched for file in one.stamps}), 'file')}; Ctrl-C ends")
        while True:
            time.sleep(POLL)
            for one in watched:
                if (changed := one.changed()) and one.again(changed) == INTERRUPTED:
                    return INTERRUPTED
    except KeyboardInterrupt:
        return INTERRUPTED


@dataclass(slots=True)
class _Watched:
    """One suite: its files as they were when it was last run, and that run."""

    runner: Runner
    path: Path
    files: SuiteFiles = field(default_factory=lambda: SuiteFiles(frozenset(), frozenset(), frozenset()))
    stamps: Stamps = field(default_factory=dict[Path, tuple[int, int] | None])
    earlier: Run | None = None

    def changed(self) -> set[Path]:
        """Return the files that have changed since the last run."""
        return _differing(self.stamps, _stamps(self.stamps))

    def again(self, changed: set[Path]) -> int:
        """Run the suite again once its files are written; a changed target holds all conversations again."""
        changed |= self._settled()
        names = ", ".join(sorted(file.name for file in changed))
        notes().print(one_line(f"{self.path.name}: {names} changed", 300))
        if changed & (self.files.target | self.files.prompts):
            self.earlier = None
        return self.run()

    def run(self) -> int:
        """Run the suite and return its exit code; what is wrong with it is shown, and it stays watched."""
        try:
            return self._run()
        except UsageError:
            time.sleep(PATIENCE)
        try:
            return self._run()
        except UsageError as error:
            for problem in error.problems:
                complain(problem)
            notes().print(f"{self.path.name} cannot be run; it is run again when a file changes", style="dim")
            return 2

    def _run(self) -> int:
        """Run the suite; its files are looked at before, and those that its own code may write also afterwards."""
        self.stamps = {**self.stamps, **_stamps({self.path, *self.stamps})}
        self.files = files_of_suite(loaded(self.path, self.runner.targets, self.runner.changes), self.path)
        self.stamps = _stamps(self.files.all)
        ended = self.runner.suite(self.path, self.earlier)
        self.stamps = {**self.stamps, **_stamps(self.files.prompts)}
        self.earlier = ended.run
        return ended.code

    def _settled(self) -> set[Path]:
        """Wait until no file changes any more, and return those that did."""
        changed: set[Path] = set()
        before, still = _stamps(self.stamps), 0
        while still < SETTLED:
            time.sleep(POLL / 2)
            now = _stamps(self.stamps)
            still = 0 if (differing := _differing(before, now)) else still + 1
            changed |= differing
            before = now
        return changed


def _stamps(files: Collection[Path]) -> Stamps:
    return {file: _stamp(file) for file in files}


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _differing(before: Stamps, after: Stamps) -> set[Path]:
    return {file for file, stamp in after.items() if before.get(file) != stamp}
