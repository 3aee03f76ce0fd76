"""`GradedRun`: one run with one of its sets of scores, which is what every report is about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from vivavoce.records.run import Grading, Outcome, Run, Verdict
from vivavoce.run.summary import Summary, summarise, tally
from vivavoce.store.store import Store


@dataclass(frozen=True, slots=True)
class GradedRun:
    """A run and a grading of it, in the store that holds both."""

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
        """Return the summary; of a run that was killed, what is there so far, and that it is inconclusive."""
        if self.grading.summary is not None:
            stored = Summary.model_validate(self.grading.summary)
            return stored.model_copy(update={"verdict": self.grading.verdict, "reasons": self._reasons(stored)})
        counted = self._count()
        verdict: Verdict = "inconclusive"
        return counted.model_copy(update={"verdict": verdict, "reasons": self._reasons(counted)})

    def _reasons(self, summary: Summary) -> list[str]:
        return summary.reasons if self.ended else ["the run did not come to its end", *summary.reasons]

    def _count(self) -> Summary:
        attempts, failed = self.store.counts(self.run.id)
        return summarise(tally(self.store.scores(self.grading.id)), attempts=attempts, failed=failed, gate=None)
