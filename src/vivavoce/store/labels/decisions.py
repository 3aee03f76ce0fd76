"""Decisions: what one person decides where labels of people differ; the labels themselves stay as they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, and_, delete, func, insert, null, select, update

from vivavoce.errors import NotFound, UsageError
from vivavoce.records.label import Decision, DifferingLabels, Label
from vivavoce.records.run import AttemptKey
from vivavoce.store.access.audit import note
from vivavoce.store.database.database import AnyRow, AnySelect, Database
from vivavoce.store.database.schema import attempts, decisions, labels
from vivavoce.store.labels.labels import (
    LabelPlace,
    Paired,
    attempt_number,
    change_of,
    label_of,
    label_query,
    labelled_attempt,
)

_KEY = (attempts.c.sample_id, attempts.c.target, attempts.c.trial)
_SAID = (
    *_KEY,
    *(decisions.c[name] for name in ("turn", "grader", "author", "verdict", "note", "blind", "created_at")),
    null().label("drawn"),
)

Where = tuple[AttemptKey, int | None, str]
"""A conversation, a turn of it or None, and a grader."""


@dataclass(frozen=True, slots=True)
class Decisions:
    """The decisions of a store."""

    database: Database

    def set(self, run_id: str, decision: Decision) -> Decision | None:
        """Store a decision, and return the earlier one that it replaces.

        Raises:
            UsageError: there is no such conversation or turn, or labels of people do not differ there.
            StoreError: the store cannot be written.
        """
        place = LabelPlace.of(run_id, decision)
        with self.database.writing() as connection:
            attempt_id = labelled_attempt(connection, place)
            if not _differ(connection, attempt_id, place):
                raise UsageError("nothing to decide: people do not disagree here")
            found = _find_decision(connection, attempt_id, place)
            _put(connection, attempt_id, decision, found)
            before = None if found is None else _decision_of(found)
            note(connection, decision.author, "decision.set", place.subject, change_of(decision, before))
        return before

    def remove(self, place: LabelPlace) -> Decision:
        """Remove the decision at a place, whoever decided, and return it; `author` of the place is who removes it.

        Raises:
            UsageError: there is none.
            StoreError: the store cannot be written.
        """
        with self.database.writing() as connection:
            found = _find_decision(connection, labelled_attempt(connection, place), place)
            if found is None:
                raise NotFound("decision", place.grader, message="there is no decision here")
            connection.execute(delete(decisions).where(decisions.c.id == found.id))
            gone = _decision_of(found)
            note(connection, place.author, "decision.remove", place.subject, change_of(gone))
        return gone

    def all(self, run_id: str, *, grader: str | None = None) -> list[Decision]:
        """Return the decisions of a run, in the order in which they were first made."""
        query = _of_run(_query(), run_id).order_by(decisions.c.id)
        if grader is not None:
            query = query.where(decisions.c.grader == grader)
        with self.database.connected() as connection:
            return list(map(_decision_of, connection.execute(query)))

    def differing(self, run_id: str, *, grader: str | None = None) -> list[DifferingLabels]:
        """Return the places of a run where people say both pass and fail, with all labels there, and the decision."""
        places = select(labels.c.attempt_id, labels.c.grader, labels.c.turn)
        places = _of_run(places.join(attempts, attempts.c.id == labels.c.attempt_id), run_id)
        places = places.where(labels.c.verdict != "unsure")
        if grader is not None:
            places = places.where(labels.c.grader == grader)
        places = places.group_by(labels.c.attempt_id, labels.c.grader, labels.c.turn)
        found = places.having(func.count(labels.c.verdict.distinct()) > 1).subquery()
        here = and_(
            labels.c.attempt_id == found.c.attempt_id,
            labels.c.grader == found.c.grader,
            func.coalesce(labels.c.turn, -1) == func.coalesce(found.c.turn, -1),
        )
        with self.database.connected() as connection:
            rows = connection.execute(label_query().join(found, here).order_by(labels.c.id)).all()
        decided = {where_of(one): one for one in self.all(run_id, grader=grader)}
        said: dict[Where, list[Label]] = {}
        for label in map(label_of, rows):
            said.setdefault(where_of(label), []).append(label)
        return [
            DifferingLabels(
                **key._asdict(), turn=turn, grader=name, labels=there, decision=decided.get((key, turn, name))
            )
            for (key, turn, name), there in said.items()
        ]


def copy_decisions(source: Connection, target: Connection) -> int:
    """Copy the decisions on conversations that the other store has, too, and return how many; the newer one stays."""
    copied = 0
    for row in source.execute(_query().add_columns(attempts.c.run_id).order_by(decisions.c.id)).all():
        decision = _decision_of(row)
        place = LabelPlace.of(row.run_id, decision)
        attempt_id = attempt_number(target, place, hold=True)
        if attempt_id is None:  # the conversation was added meanwhile, and comes with the next copy
            continue
        there = _find_decision(target, attempt_id, place)
        if there is None or there.created_at < decision.created_at:
            _put(target, attempt_id, decision, there)
            before = None if there is None else _decision_of(there)
            note(target, decision.author, "decision.copy", place.subject, change_of(decision, before))
            copied += 1
    return copied


def decided(pairs: Sequence[Paired], found: Iterable[Decision]) -> list[Paired]:
    """Return pairs of labels and scores, where each decision stands in place of the labels that differ there."""
    by_place = {where_of(one): one for one in found}
    kept: list[Paired] = []
    used: set[Where] = set()
    for pair in pairs:
        where = where_of(pair.label)
        decision = by_place.get(where)
        if decision is None:
            kept.append(pair)
        elif where not in used:
            used.add(where)
            kept.append(pair._replace(label=decision))
    return kept


def where_of(label: Label) -> Where:
    """Return what a label or a decision is about."""
    return label.key, label.turn, label.grader


def _differ(connection: Connection, attempt_id: int, place: LabelPlace) -> bool:
    query = select(func.count(labels.c.verdict.distinct())).where(
        labels.c.attempt_id == attempt_id,
        labels.c.grader == place.grader,
        func.coalesce(labels.c.turn, -1) == (-1 if place.turn is None else place.turn),
        labels.c.verdict != "unsure",
    )
    return connection.execute(query).scalar_one() > 1


def _put(connection: Connection, attempt_id: int, decision: Decision, there: AnyRow | None) -> None:
    """Store a decision, in place of the one that is there."""
    values = decision.model_dump(include={"author", "verdict", "note", "created_at"})
    values["blind"] = int(decision.blind)
    if there is None:
        place = {"attempt_id": attempt_id, "turn": decision.turn, "grader": decision.grader}
        connection.execute(insert(decisions).values(**values, **place))
    else:
        connection.execute(update(decisions).where(decisions.c.id == there.id).values(values))


def _find_decision(connection: Connection, attempt_id: int, place: LabelPlace) -> AnyRow | None:
    turn = -1 if place.turn is None else place.turn
    query = _query().add_columns(decisions.c.id)
    query = query.where(decisions.c.attempt_id == attempt_id, decisions.c.grader == place.grader)
    return connection.execute(query.where(func.coalesce(decisions.c.turn, -1) == turn)).first()


def _query() -> Select[Any]:
    return select(*_SAID).select_from(decisions).join(attempts, attempts.c.id == decisions.c.attempt_id)


def _of_run(query: AnySelect, run_id: str) -> AnySelect:
    # Labels are few and attempts many: a run that is looked for by no index makes SQLite begin with the labels.
    return query.where(func.coalesce(attempts.c.run_id, "") == run_id)


def _decision_of(row: AnyRow) -> Decision:
    return Decision.model_validate(label_of(row).model_dump())
