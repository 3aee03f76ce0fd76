"""How far a judge agrees with people: each label beside the score that the judge gave in the same place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import and_, func

from vivavoce.records.label import Disagreement, Label, LabelAgreement
from vivavoce.records.run import Grading
from vivavoce.records.score import State
from vivavoce.stats.agreement import Agreement, agreement
from vivavoce.store.database.schema import labels, scores
from vivavoce.store.labels.labels import label_of, of_run, said
from vivavoce.store.runs.decode import AnyRow
from vivavoce.store.store import Store

LISTED = 100
"""Disagreements that are listed one by one."""


class Paired(NamedTuple):
    """A label, and what the grader that it is about says of the same; `passed` is None where that is no score."""

    label: Label
    state: State | None
    score: float | None
    passed: bool | None

    @property
    def differs(self) -> bool:
        """Whether the person and the judge say the opposite."""
        return self.passed is not None and self.label.verdict == ("fail" if self.passed else "pass")


def paired_labels(
    store: Store, grading: Grading, grader: str, *, author: str | None = None, turns: bool = False
) -> list[Paired]:
    """Return the labels about a grader, each with its score: those of whole conversations, or those of `turns`."""
    s, of_turn = scores.c, func.coalesce(labels.c.turn, -1)
    same = and_(
        s.attempt_id == labels.c.attempt_id,
        s.grading_id == grading.id,
        s.kind == "grade",
        s.name == labels.c.grader,
        func.coalesce(s.turn, -1) == of_turn,
    )
    query = said().add_columns(s.state, s.value, s.passed).outerjoin(scores, same)
    about = of_turn >= 0 if turns else of_turn < 0
    with store.connected() as connection:
        rows = connection.execute(of_run(connection, query, grading.run_id, grader, author).where(about)).all()
    return [_paired(row) for row in rows]


def agreement_with(pairs: Sequence[Paired]) -> LabelAgreement:
    """Return how far a judge agrees with labels; several labels of one conversation are as many pairs."""
    sure = [one for one in pairs if one.label.verdict != "unsure"]
    decided = [(one, one.passed) for one in sure if one.passed is not None]
    table = agreement([passed for _, passed in decided], [one.label.verdict == "pass" for one, _ in decided])
    differing = [one for one, _ in decided if one.differs]
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
        **_kappa(table),
    )


def _paired(row: AnyRow) -> Paired:
    return Paired(label_of(row), row.state, row.value, None if row.passed is None else bool(row.passed))


def _kappa(table: Agreement) -> dict[str, float | None]:
    low, high = table.kappa_interval() or (None, None)
    return {"kappa": table.kappa, "low": low, "high": high}
