"""`viva run --watch`: a suite again whenever its files change."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vivavoce.cli.output import complain, notes
from vivavoce.cli.runner import INTERRUPTED, Runner, loaded
from vivavoce.errors import UsageError
from vivavoce.records.run import Run
from vivavoce.report.text import count, one_line
from vivavoce.suites.files import SuiteFiles, files_of_suite

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
