"""A run against a baseline: whether it is worse, printed below its summary."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self, cast

from rich.text import Text

from vivavoce.cli.output import out
from vivavoce.errors import UsageError
from vivavoce.plugins import lazy
from vivavoce.run.result import EXIT_CODES, RunResult
from vivavoce.safe_text import safe
from vivavoce.store.store import Store
from vivavoce.suites.load import Suite

if TYPE_CHECKING:  # what compares loads numpy, which a run without a baseline does not need
    from vivavoce.report.baseline import Baseline
    from vivavoce.report.comparison import Comparison
    from vivavoce.report.worse import Tolerance


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
            UsageError: the file is no baseline, or there is none to be worse than.
        """
        if path is not None:
            baseline: Baseline = lazy("vivavoce.report.baseline:read_baseline")(path)
            tolerance: Tolerance = lazy("vivavoce.report.worse:Tolerance")(smallest_effect, fail_on_break)
            return cls(path, baseline, tolerance)
        if fail_on_break or smallest_effect is not None:
            raise UsageError("--smallest-effect and --fail-on-break need a baseline to be worse than: --baseline FILE")
        return None

    def check(self, suite: Suite) -> None:
        """Refuse, before anything runs, a suite of whose targets none is in the baseline.

        Raises:
            UsageError: with the targets of both; one target on each side is compared whatever the names.
        """
        names = [name for spec in suite.spec.all_targets.values() for name, _ in spec.named]
        known = list(self.baseline.side.targets)
        if names and not set(names) & set(known) and (len(names), len(known)) != (1, 1):
            raise UsageError(
                f"{self.path}: none of its targets is in this run: it has {', '.join(known) or 'none'}, the run "
                f"{', '.join(names)}; give the targets the same names, or make the baseline again"
            )

    def exit_code(self, store: Store, result: RunResult, options: Sequence[str]) -> int:
        """Print whether a complete run is worse; return the exit code of both verdicts: 1 before 3 before 0."""
        if result.stopped_by is not None:
            out().print(Text(f"not compared with {safe(str(self.path))}: the run is not complete", style="yellow"))
            return result.exit_code
        compare = lazy("vivavoce.report.compare:compare")
        compared = cast("Comparison", compare(store, self.baseline.side, result.grading, reasons=False))
        found: Comparison = lazy("vivavoce.report.worse:ruled")(compared, self.tolerance)
        assert found.ruling is not None
        out().print(*lazy("vivavoce.report.worse:ruling_lines")(found.ruling), sep="\n")
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
