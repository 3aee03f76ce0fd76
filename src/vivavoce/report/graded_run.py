"""`GradedRun`: one run with one of its sets of scores, which is what every report is about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from vivavoce.errors import NotFound
from vivavoce.extensions import description
from vivavoce.plugins import lazy
from vivavoce.records.run import Grading, Outcome, Run
from vivavoce.report.finding import finding
from vivavoce.report.text import count
from vivavoce.run.corrected import corrected
from vivavoce.run.details import detailed
from vivavoce.run.stopping import intervals_of
from vivavoce.run.summary import Summary, summarise
from vivavoce.run.tallies import tally
from vivavoce.samples.table import Tabular
from vivavoce.store.store import Store


def partial_note(run: Run) -> str | None:
    """Return what is said of a run that repeats another one only in part, None of a whole run."""
    if run.partial_of is None:
        return None
    if (special := description(run)) is not None:
        return f"{special.words}; it cannot be a baseline or a point of a trend"
    return f"partial: it repeats a part of {run.partial_of}, and is no baseline and no point of a trend"


def grader_names(grading: Grading) -> list[str]:
    """Return the names of the graders of a set of scores, those of the suite first; the reward is not a grader."""
    graders: Mapping[str, Any] = grading.spec.get("graders") or {}
    summed: list[Mapping[str, Any]] = (grading.summary or {}).get("graders") or []
    return list(dict.fromkeys([*graders, *(str(one["name"]) for one in summed if one["name"] != "reward")]))


def require_grader(grader: str, *gradings: Grading) -> None:
    """Check that a grader is in one of the sets of scores of a run.

    Raises:
        NotFound: it is in none of them.
    """
    known = [name for grading in gradings for name in grader_names(grading)]
    if grader not in known:
        raise NotFound("grader", grader, within=f"run {gradings[0].run_id}" if gradings else "", known=known)


@dataclass(frozen=True, slots=True)
class GradedRun(Tabular):
    """A run and a grading of it, with their store."""

    TABLES: ClassVar = ("samples", "scores", "turns", "labels")
    TABLES_FROM: ClassVar = "vivavoce.report.run_tables:run_table"

    store: Store
    run: Run
    grading: Grading

    def outcomes(self) -> Iterator[Outcome]:
        """Yield what came out, one conversation after the other."""
        return self.store.outcomes(self.grading.id)

    @property
    def ended(self) -> bool:
        """Whether the run and the grading came to an end of their own."""
        return self.grading.summary is not None and self.run.status == "finished"

    def summary(self) -> Summary:
        """Return the summary; of a run that was stopped or killed, what is there so far, which decides nothing."""
        if self.run.status == "running":
            return self._count().stopped_by("unfinished")
        return corrected(self._ended(), self.store, self.run, self.grading)

    def _ended(self) -> Summary:
        if self.grading.summary is None:
            return self._part()
        stored = Summary.model_validate(self.grading.summary)
        return stored if self.ended or stored.stopped is not None else stored.stopped_by("interrupted")

    @property
    def finding(self) -> str:
        """The verdict with what it rests on, in one sentence."""
        return finding(self.summary(), self.grading)

    def _part(self) -> Summary:
        """Return the summary of a set of scores that only some conversations of the run have."""
        found = self._count()
        scored = len({row.key for row in self.store.scores(self.grading.id)})
        stopped = f"{scored:,} of {count(found.attempts, 'conversation')} have these scores"
        return found.undecided(stopped)

    def _count(self) -> Summary:
        attempts, failed = self.store.counts(self.run.id)
        tallies = tally(self.store.scores(self.grading.id), intervals_of(self.run), self.run.sampling)
        found = summarise(tallies, attempts=attempts, failed=failed)
        return detailed(found, tallies, self.store, self.grading, running=self.run.status == "running")

    def _repr_html_(self) -> str:
        """Return what a notebook shows; the templates are loaded when a notebook asks."""
        return cast("str", lazy("vivavoce.report.html.notebook:graded_html")(self))
