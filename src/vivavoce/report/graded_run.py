"""`GradedRun`: a run with one of its sets of scores, which every report is about, and the commands that repeat it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from vivavoce.errors import NotFound, UsageError
from vivavoce.extensions import description
from vivavoce.plugins import lazy
from vivavoce.records.details import by_role
from vivavoce.records.run import Grading, Outcome, Run, is_from_python, is_watched, lacks_key, parts_of
from vivavoce.report.details import latency_lines
from vivavoce.report.text import count
from vivavoce.report.verdict import finding
from vivavoce.run.corrected import corrected
from vivavoce.run.details import detailed
from vivavoce.run.stopping import intervals_of
from vivavoce.run.summary import Summary, summarise
from vivavoce.run.tallies import tally
from vivavoce.safe_text import safe
from vivavoce.samples.table import Tabular
from vivavoce.store.store import Store


def show_command(run_id: str, sample: str, options: Sequence[str] = ()) -> str:
    """Return the command as a shell takes it; `options` are those that it needs to find the run, such as `--store`."""
    words = [run_id, *(["--"] if sample.startswith("-") else []), sample]
    return shlex.join(["viva", "show", *options, *map(safe, words)])


def continuing(run: Run, options: Sequence[str] = ()) -> str:
    """Return the line with the command that does what is left of a run; `options` are what it needs to find the run."""
    if is_watched(run):
        return "continue with: viva watch"
    if (folder := parts_of(run)) is not None:
        return f"continue with the command that created {folder}, then: {shlex.join(['viva', 'merge', folder])}"
    return f"continue with: {shlex.join(['viva', 'run', '--resume', run.id, *options])}"


def errors_again(store: Store, grading: Grading, summary: Summary, options: Sequence[str] = ()) -> str | None:
    """Return the line that says how to try again what had an error; None where nothing had, or none can.

    The first scores of a run are made with its conversations, which are then held again; other scores are made again.
    Where the suite is to blame for all errors, the line says to correct it.
    """
    run = store.run(grading.run_id)
    broken = max(summary.error_attempts, summary.failed_attempts)
    if not broken or is_from_python(run) or is_watched(run) or lacks_key(run) or parts_of(run) is not None:
        return None
    first = store.gradings(run.id)[0].id == grading.id
    if first and _are_of_the_suite(store, grading):
        return f"{count(broken, 'conversation')} cannot be graded with this suite; correct it, then run again"
    words = ["viva", "run", "--resume", run.id, "--errors"] if first else ["viva", "grade", run.id]
    return f"retry {count(broken, 'conversation')} with an error: {shlex.join([*words, *options])}"


def _are_of_the_suite(store: Store, grading: Grading) -> bool:
    """Say whether the suite is to blame for every error, so that trying again changes nothing."""
    failures = [error.failure for error in store.errors(grading.id)]
    return bool(failures) and all(failure is not None and failure.blame == "suite" for failure in failures)


def partial_note(run: Run) -> str | None:
    """Return what is said of a run that repeats another one only in part, None of a whole run."""
    if run.partial_of is None:
        return None
    if (special := description(run)) is not None:
        return f"{special.words}; it cannot be a baseline or a point of a trend"
    return f"partial: reruns part of {run.partial_of}; not used for baselines or trends"


def grader_names(grading: Grading) -> list[str]:
    """Return the names of the graders of a set of scores, those of the suite first; the reward is not a grader."""
    graders: Mapping[str, Any] = grading.spec.get("graders") or {}
    summed: list[Mapping[str, Any]] = (grading.summary or {}).get("graders") or []
    return list(dict.fromkeys([*graders, *(str(grader["name"]) for grader in summed if grader["name"] != "reward")]))


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
    TABLES_FROM: ClassVar = "vivavoce.report.tables:run_table"

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
        return corrected(self._final_summary(), self.store, self.run, self.grading)

    def _final_summary(self) -> Summary:
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
        summary = self._count()
        scored = len({row.key for row in self.store.scores(self.grading.id)})
        stopped = f"{scored:,} of {count(summary.attempts, 'conversation')} have these scores"
        return summary.undecided(stopped)

    def _count(self) -> Summary:
        attempts, failed = self.store.counts(self.run.id)
        tallies = tally(self.store.scores(self.grading.id), intervals_of(self.run), self.run.sampling)
        summary = summarise(tallies, attempts=attempts, failed=failed)
        return detailed(summary, tallies, self.store, self.grading, running=self.run.status == "running")

    def _repr_html_(self) -> str:
        """Return what a notebook shows; the templates are loaded when a notebook asks."""
        return cast("str", lazy("vivavoce.report.html.notebook:graded_html")(self))


def expected_lines(place: str, suite: str, conversations: int) -> Iterator[str]:
    """Yield what a run would use, and how long replies would take, by the latest complete run of its suite.

    Nothing where there is no such run, or no store.
    """
    try:
        store = Store.open(place, create=False)
    except UsageError:
        return  # there is no store yet, and so no run before
    with store:
        before = next((run for run in store.runs() if run.suite == suite and run.status == "finished"), None)
        grading = None if before is None else store.grading(before.id)
    if before is None or grading is None or grading.summary is None:
        return
    summary = Summary.model_validate(grading.summary)
    times = conversations / max(summary.attempts, 1)
    if used := by_role({role: usage.times(times) for role, usage in summary.usage.items()}):
        yield f"as run {before.id}: about {used}"
    yield from (f"as run {before.id}: {line}" for line in latency_lines(summary))
