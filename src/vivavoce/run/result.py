"""The result of a run or of a grading."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import ClassVar, cast

from vivavoce.plugins import lazy
from vivavoce.records.run import Grading, Outcome, Run, Verdict
from vivavoce.run.summary import Summary
from vivavoce.run.workers import INTERRUPTED
from vivavoce.samples.table import Tabular
from vivavoce.store.store import Store

EXIT_CODES: Mapping[Verdict | None, int] = {None: 0, "pass": 0, "fail": 1, "inconclusive": 3}
"""The exit code of a command for each verdict; None is that of a run that cannot fail."""


@dataclass(frozen=True, slots=True)
class RunResult(Tabular):
    """The record of a run, its set of scores, and the summary; `place` names the store with everything else.

    `stopped_by` says why it ended early, None if it ran to its end.
    """

    TABLES: ClassVar = ("samples", "scores", "turns", "labels")
    TABLES_FROM: ClassVar = "vivavoce.report.run_tables:result_table"

    run: Run
    grading: Grading
    summary: Summary
    place: str
    stopped_by: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 pass or no gate, 1 a gate failed or a requirement was missed, 3 inconclusive, 130 interrupted."""
        if self.stopped_by == INTERRUPTED:
            return 130
        return EXIT_CODES[self.summary.verdict]

    @property
    def finding(self) -> str:
        """The verdict with what it rests on, in one sentence; the code for sentences is in a higher layer."""
        return cast("str", lazy("vivavoce.report.finding:finding")(self.summary, self.grading))

    def outcomes(self) -> Iterator[Outcome]:
        """Yield every conversation with its grades, read from the store."""
        with closing(Store.open(self.place, create=False)) as store:
            yield from store.outcomes(self.grading.id)

    def publish(self, to: str) -> list[str]:
        """Send the run with its scores to `langfuse`, `phoenix`, `otel`, `mlflow` or `wandb`; return what was done.

        Addresses and keys are read from the environment, as the packages of these tools do. The same run may be sent
        again; nothing becomes double.

        Raises:
            UsageError: there is no such tool, it cannot be reached, or it refuses something.
            MissingExtra: its package is not installed.
        """
        return cast("list[str]", lazy("vivavoce.report.publish.conversation:publish")(self, to))

    def __str__(self) -> str:
        means = ", ".join(f"{g.name} {g.mean:.3f}" for g in self.summary.graders if g.mean is not None)
        verdict = self.grading.verdict or "no gate"
        held = f"{self.summary.attempts} conversation{'s' * (self.summary.attempts != 1)}"
        return f"{self.run.id}: {verdict}; {held}; {means or 'nothing scored'}"

    def _repr_html_(self) -> str:
        """Return the HTML for a notebook; reports are in a higher layer, so their code is loaded only when needed."""
        return cast("str", lazy("vivavoce.report.html.notebook:result_html")(self))
