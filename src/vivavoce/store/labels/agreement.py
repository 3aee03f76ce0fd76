"""The agreement of a judge with people: each label is compared with the score of the judge for the same place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from vivavoce.records.label import Disagreement, Label, LabelAgreement
from vivavoce.records.score import State
from vivavoce.stats.agreement import agreement
from vivavoce.store.database.database import AnyRow
from vivavoce.store.labels.rows import label_of

LISTED = 100
"""Maximum number of listed disagreements."""


class Paired(NamedTuple):
    """A label and the score of its grader for the same place; `passed` is None if there is no score."""

    label: Label
    state: State | None
    score: float | None
    passed: bool | None
    confidence: float | None = None

    @property
    def differs(self) -> bool:
        """Whether the person and the judge disagree."""
        return self.passed is not None and self.label.verdict == ("fail" if self.passed else "pass")


def agreement_with(pairs: Sequence[Paired]) -> LabelAgreement:
    """Return the agreement of a judge with labels; each label is a pair of its own."""
    sure = [one for one in pairs if one.label.verdict != "unsure"]
    decided = [(one, one.passed) for one in sure if one.passed is not None]
    table = agreement([passed for _, passed in decided], [one.label.verdict == "pass" for one, _ in decided])
    differing = [one for one, _ in decided if one.differs]
    low, high = table.kappa_interval() or (None, None)
    return LabelAgreement(
        n=table.n,
        both_pass=table.tp,
        both_fail=table.tn,
        too_lenient=table.fp,
        too_strict=table.fn,
        unsure=len(pairs) - len(sure),
        unscored=len(sure) - len(decided),
        agreement=table.accuracy,
        disagreements=[
            Disagreement(label=one.label, score=one.score or 0.0, lenient=bool(one.passed))
            for one in differing[:LISTED]
        ],
        kappa=table.kappa,
        low=low,
        high=high,
    )


def paired(row: AnyRow) -> Paired:
    """Return a row of a label and of a score as a pair."""
    passed = None if row.passed is None else bool(row.passed)
    return Paired(label_of(row), row.state, row.value, passed, row.confidence)
