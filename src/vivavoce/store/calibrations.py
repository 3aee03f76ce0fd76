"""Calibrations: labels next to the verdicts of a judge, kept under the fingerprint of the judge's whole procedure."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Connection, Select, insert, select

from vivavoce.errors import NotFound
from vivavoce.records.label import Calibration, LabelSource
from vivavoce.records.run import DrawRecord, Grading
from vivavoce.store.audit import note
from vivavoce.store.database.database import Database
from vivavoce.store.database.schema import attempts, calibrations, json_text, read_json, runs, scores
from vivavoce.store.runs.rows import drawn_of

if TYPE_CHECKING:
    from vivavoce.store.labels import Truth


class KeyedVerdict(NamedTuple):
    """The verdict of a judge on a conversation, its score, how sure it is, and how the conversation was drawn."""

    sample_id: str
    target: str
    trial: int
    passed: bool
    score: float
    confidence: float | None
    drawn: DrawRecord | None = None


@dataclass(frozen=True, slots=True)
class Calibrations:
    """The calibrations of a store."""

    database: Database

    def add(self, calibration: Calibration) -> None:
        """Keep a calibration.

        Raises:
            StoreError: the store cannot be written.
        """
        with self.database.writing() as connection:
            connection.execute(insert(calibrations).values(_values(calibration)))
            told = {"grader": calibration.grader, "labels": len(calibration.labels)}
            note(connection, calibration.author, "calibration.keep", f"{calibration.run_id}/{calibration.id}", told)

    def of_run(self, run_id: str, grader: str | None = None) -> list[Calibration]:
        """Return the calibrations that were made from labels of a run, newest first."""
        query = _newest_first().where(calibrations.c.run_id == run_id)
        return self._found(query if grader is None else query.where(calibrations.c.grader == grader))

    def with_fingerprints(self, fingerprints: Iterable[str]) -> list[Calibration]:
        """Return the calibrations of these judging procedures, from labels of whichever run, newest first."""
        wanted = sorted(set(fingerprints))
        return self._found(_newest_first().where(calibrations.c.fingerprint.in_(wanted))) if wanted else []

    def stale(self, suite: str, grading: Grading) -> dict[str, str]:
        """Return the newest calibrated run of a suite for each grader of a grading that was only calibrated as another.

        Another one has another fingerprint: its prompt, model or settings changed.
        """
        names = [name for name in grading.fingerprints if name]
        c = calibrations.c
        query = select(c.grader, c.run_id, c.fingerprint).join(runs, runs.c.id == c.run_id)
        query = query.where(runs.c.suite == suite, c.grader.in_(names)).order_by(c.created_at)
        if not names:
            return {}
        with self.database.connected() as connection:
            rows = connection.execute(query).all()
        now = {row.grader for row in rows if row.fingerprint == grading.fingerprints.get(row.grader)}
        return {row.grader: row.run_id for row in rows if row.grader not in now}

    def verdicts(self, grading: Grading, grader: str) -> list[KeyedVerdict]:
        """Return the verdicts of a grader on whole conversations, those without a score left out."""
        a, s = attempts.c, scores.c
        columns = (a.sample_id, a.target, a.trial, s.passed, s.value, s.confidence, a.stratum, a.probability)
        query = select(*columns).join(attempts, a.id == s.attempt_id)
        query = query.where(s.grading_id == grading.id, s.kind == "grade", s.name == grader, s.turn.is_(None))
        with self.database.connected() as connection:
            rows = connection.execute(query.where(s.passed.is_not(None)))
            return [
                KeyedVerdict(
                    *row[:3], bool(row.passed), row.value, row.confidence, drawn_of(row.stratum, row.probability)
                )
                for row in rows
            ]

    def _found(self, query: Select[Any]) -> list[Calibration]:
        with self.database.connected() as connection:
            return [Calibration.model_validate(read_json(row.body)) for row in connection.execute(query)]


def new_calibration(grading: Grading, grader: str, truth: Truth, source: LabelSource, author: str) -> Calibration:
    """Return a calibration that was not kept yet.

    Raises:
        NotFound: the grading has no such grader.
    """
    if grader not in grading.fingerprints:
        raise NotFound("grader", grader, within=f"grading {grading.id}")
    return Calibration(
        id=f"cal-{secrets.token_urlsafe(9)}",
        run_id=grading.run_id,
        grading_id=grading.id,
        grader=grader,
        fingerprint=grading.fingerprints[grader],
        source=source,
        author=author,
        created_at=time.time(),
        labels=truth.labels,
        unsure=truth.unsure,
        split=truth.split,
        unscored=truth.unscored,
        people=truth.people,
    )


def copy_calibrations(source: Connection, target: Connection) -> int:
    """Copy the calibrations that the other store lacks, and return how many; they are never changed."""
    there = set(target.execute(select(calibrations.c.id)).scalars())
    copied = 0
    for row in source.execute(select(calibrations.c.body).order_by(calibrations.c.created_at)):
        found = Calibration.model_validate(read_json(row.body))
        if found.id not in there:
            target.execute(insert(calibrations).values(_values(found)))
            note(target, found.author, "calibration.copy", f"{found.run_id}/{found.id}", {"grader": found.grader})
            copied += 1
    return copied


def _newest_first() -> Select[Any]:
    c = calibrations.c
    return select(c.body).order_by(c.created_at.desc(), c.id)


def _values(one: Calibration) -> dict[str, object]:
    known = {name: getattr(one, name) for name in ("id", "run_id", "grader", "fingerprint", "created_at")}
    return {**known, "body": json_text(one)}
