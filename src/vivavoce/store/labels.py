"""Labels: human verdicts on conversations and turns, and what one person decides where people differ."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from sqlalchemy import Connection, Select, and_, delete, func, insert, null, select, update

from vivavoce.errors import NotFound, UsageError
from vivavoce.records.label import (
    Decision,
    DifferingLabels,
    Disagreement,
    Label,
    LabelAgreement,
    LabelledVerdict,
    PeopleAgreement,
)
from vivavoce.records.run import AttemptKey, Grading
from vivavoce.records.score import State, conversation_name, to_number
from vivavoce.stats.agreement import agreement
from vivavoce.store.audit import note
from vivavoce.store.browse.filter import encode_cursor, read_place
from vivavoce.store.browse.listing import LabelPage
from vivavoce.store.database.database import AnyRow, AnySelect, Database
from vivavoce.store.database.schema import attempts, decisions, labels, scores, turns
from vivavoce.store.queues import MOST, GraderScores, drawn_in
from vivavoce.store.runs.naming import keys_of, no_conversation
from vivavoce.store.webhooks import tell

_KEY = (attempts.c.sample_id, attempts.c.target, attempts.c.trial)
_LABEL_COLUMNS = (
    *_KEY,
    *(labels.c[name] for name in ("turn", "grader", "author", "verdict", "note", "blind", "created_at", "drawn")),
)


@dataclass(frozen=True, slots=True)
class LabelPlace:
    """The place of a label of an author; see `Label`."""

    run_id: str
    key: AttemptKey
    turn: int | None
    grader: str
    author: str

    @classmethod
    def of(cls, run_id: str, label: Label) -> Self:
        """Return the place of a label of a run."""
        return cls(run_id, label.key, label.turn, label.grader, label.author)

    @property
    def subject(self) -> str:
        """The name of the conversation in the audit log."""
        return f"{self.run_id}/{conversation_name(self.key.sample_id, self.key.trial)}"


def now_label(place: LabelPlace, verdict: str, remark: str | None = None, *, blind: bool = False) -> Label:
    """Return a new label of an author.

    Raises:
        ValueError: the verdict is unknown, or the note is too long.
    """
    return Label.model_validate(
        {
            **place.key._asdict(),
            "turn": place.turn,
            "grader": place.grader,
            "author": place.author,
            "verdict": verdict,
            "note": (remark or "").strip() or None,
            "blind": blind,
            "created_at": time.time(),
        }
    )


def now_decision(place: LabelPlace, verdict: str, remark: str | None = None, *, blind: bool = False) -> Decision:
    """Return a new decision of the author of a place.

    Raises:
        ValueError: the verdict is neither pass nor fail, or the note is too long.
    """
    made = Decision.model_validate(now_label(place, verdict, remark, blind=blind).model_dump())
    return made


def label_query() -> Select[Any]:
    """Return a query for labels, each with the key of its conversation."""
    return select(*_LABEL_COLUMNS).select_from(labels).join(attempts, attempts.c.id == labels.c.attempt_id)


def of_run(query: Select[Any], run_id: str, grader: str | None, author: str | None) -> Select[Any]:
    """Return a query for the labels of a single run, in the order in which they were first set."""
    # Labels are few and attempts many: a run that is looked for by no index makes SQLite begin with the labels.
    query = query.where(func.coalesce(attempts.c.run_id, "") == run_id).order_by(labels.c.id)
    if grader is not None:
        query = query.where(labels.c.grader == grader)
    return query if author is None else query.where(labels.c.author == author)


def label_of(row: AnyRow) -> Label:
    """Return a label by its row."""
    return Label(
        sample_id=row.sample_id,
        target=row.target,
        trial=row.trial,
        turn=row.turn,
        grader=row.grader,
        author=row.author,
        verdict=row.verdict,
        note=row.note,
        blind=bool(row.blind),
        created_at=row.created_at,
        drawn=row.drawn,
    )


def put_label(connection: Connection, attempt_id: int, place: LabelPlace, label: Label) -> Label | None:
    """Store a label of an attempt, replacing the author's earlier one; the caller writes the audit log and commits.

    Who labels a drawn conversation again, wherever, still labels a drawn one.
    """
    before = found_label(connection, attempt_id, place)
    values: dict[str, Any] = {
        "verdict": label.verdict,
        "note": label.note,
        "blind": int(label.blind),
        "created_at": label.created_at,
        "drawn": label.drawn if before is None or label.drawn is not None else before.drawn,
    }
    if before is not None:
        connection.execute(update(labels).where(labels.c.id == before.id).values(values))
        return label_of(before)
    names = {"grader": place.grader, "author": place.author}
    connection.execute(insert(labels).values(**values, **names, attempt_id=attempt_id, turn=place.turn))
    return None


def attempt_number(connection: Connection, place: LabelPlace, *, hold: bool) -> int | None:
    """Return the number of an attempt; with `hold`, PostgreSQL locks its row until the transaction ends."""
    a, key = attempts.c, place.key
    query = select(a.id).where(
        a.run_id == place.run_id,
        a.sample_id == key.sample_id,
        a.target == key.target,
        a.trial == key.trial,
    )
    return connection.execute(query.with_for_update() if hold else query).scalar()


def labelled_attempt(connection: Connection, place: LabelPlace, *, hold: bool = True) -> int:
    """Return the number of the attempt of a label, and check that it has such a turn."""
    found, key = attempt_number(connection, place, hold=hold), place.key
    if found is None:
        raise no_conversation(
            place.run_id, key.sample_id, key.target or None, key.trial, keys_of(connection, place.run_id, key.sample_id)
        )
    if place.turn is not None and not _has_turn(connection, found, place.turn):
        raise NotFound("turn", str(to_number(place.turn)), within=f"sample '{key.sample_id}' of run {place.run_id}")
    return found


def _has_turn(connection: Connection, attempt_id: int, turn: int) -> bool:
    t = turns.c
    return connection.execute(select(t.idx).where(t.attempt_id == attempt_id, t.idx == turn)).first() is not None


def is_graded(connection: Connection, attempt_id: int, grader: str) -> bool:
    """Return whether a grader has scored an attempt."""
    s = scores.c
    query = select(s.id).where(s.attempt_id == attempt_id, s.kind == "grade", s.name == grader)
    return connection.execute(query.limit(1)).first() is not None


def found_label(connection: Connection, attempt_id: int, place: LabelPlace) -> AnyRow | None:
    """Return the label at a place, with its number."""
    query = (
        label_query()
        .add_columns(labels.c.id)
        .where(
            labels.c.attempt_id == attempt_id,
            labels.c.grader == place.grader,
            labels.c.author == place.author,
            func.coalesce(labels.c.turn, -1) == (-1 if place.turn is None else place.turn),
        )
    )
    return connection.execute(query).first()


def change_of(label: Label, before: Label | None = None) -> dict[str, object]:
    """Return the details of a change for the audit log: the place of the label, and its new and earlier content."""
    fields = {"verdict", "note", "blind", "created_at"}
    where = label.model_dump(include={"target", "turn", "grader"})
    detail: dict[str, object] = {**where, **label.model_dump(include=fields)}
    return detail if before is None else {**detail, "before": before.model_dump(include=fields)}


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
    sure = [pair for pair in pairs if pair.label.verdict != "unsure"]
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


BATCH = 500


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of a store."""

    database: Database

    def set(self, run_id: str, label: Label, *, queue: str | None = None) -> Label | None:
        """Store a label, and return the earlier label of the same author that it replaces.

        `queue` is the queue of its author in which it is given: where that one is blind, the label is of a conversation
        that was drawn as the queue says.

        Raises:
            UsageError: there is no such conversation, turn, grader or queue.
            StoreError: the store cannot be written.
        """
        place = LabelPlace.of(run_id, label)
        with self.database.writing() as connection:
            attempt_id = labelled_attempt(connection, place)
            if label.grader and not is_graded(connection, attempt_id, label.grader):
                raise NotFound("grader", label.grader, within=f"the scores of sample '{label.sample_id}'")
            if queue is not None:
                label = label.model_copy(update={"drawn": drawn_in(connection, queue, attempt_id, label)})
            before = put_label(connection, attempt_id, place, label)
            note(connection, label.author, "label.set", place.subject, change_of(label, before))
            tell(connection, "label.saved", {"run": run_id, "label": label.model_dump()})
        return before

    def remove(self, place: LabelPlace) -> Label:
        """Remove a label, and return it.

        Raises:
            UsageError: there is no such label.
            StoreError: the store cannot be written.
        """
        with self.database.writing() as connection:
            attempt_id = labelled_attempt(connection, place)
            found = found_label(connection, attempt_id, place)
            if found is None:
                raise NotFound("label", place.author, message=f"no label by {place.author} here")
            connection.execute(delete(labels).where(labels.c.id == found.id))
            note(connection, place.author, "label.remove", place.subject, change_of(label_of(found)))
        return label_of(found)

    def of(self, run_id: str, key: AttemptKey) -> list[Label]:
        """Return the labels of a conversation and of its turns, oldest first.

        Raises:
            UsageError: there is no such conversation.
        """
        with self.database.connected() as connection:
            attempt_id = labelled_attempt(connection, LabelPlace(run_id, key, None, "", ""), hold=False)
            query = label_query().where(labels.c.attempt_id == attempt_id).order_by(labels.c.created_at, labels.c.id)
            return list(map(label_of, connection.execute(query)))

    def page(
        self,
        run_id: str,
        *,
        grader: str | None = None,
        author: str | None = None,
        after: str | None = None,
        limit: int = 50,
    ) -> LabelPage:
        """Return some labels of a run in the order in which they were first set.

        Raises:
            UsageError: `after` is not a cursor of this list.
        """
        query = label_query().add_columns(labels.c.id).limit(limit + 1)
        if after is not None:
            query = query.where(labels.c.id > read_place(after, int)[0])
        with self.database.connected() as connection:
            found = connection.execute(of_run(query, run_id, grader, author)).all()
        page = found[:limit]
        following = encode_cursor((page[-1].id,)) if len(found) > limit else None
        return LabelPage(labels=list(map(label_of, page)), next=following)

    def all(self, run_id: str, *, grader: str | None = None, author: str | None = None) -> Iterator[Label]:
        """Yield every label of a run, a page at a time."""
        after: str | None = None
        while True:
            page = self.page(run_id, grader=grader, author=author, after=after, limit=BATCH)
            yield from page.labels
            after = page.next
            if after is None:
                return

    def labelled(self, author: str) -> dict[tuple[str, str], int]:
        """Return how many conversations an author has labelled, by run and grader."""
        a, mine = attempts.c, labels.c
        query = select(a.run_id, mine.grader, func.count(mine.attempt_id.distinct()).label("number")).select_from(
            labels
        )
        query = query.join(attempts, a.id == mine.attempt_id).group_by(a.run_id, mine.grader)
        with self.database.connected() as connection:
            rows = connection.execute(query.where(mine.author == author))
            return {(row.run_id, row.grader): row.number for row in rows}

    def paired(self, grading: Grading, grader: str, *, author: str | None = None, turns: bool = False) -> list[Paired]:
        """Return the labels for a grader, each with its score: of whole conversations, or of `turns`."""
        s, of_turn = scores.c, func.coalesce(labels.c.turn, -1)
        same = and_(
            s.attempt_id == labels.c.attempt_id,
            s.grading_id == grading.id,
            s.kind == "grade",
            s.name == labels.c.grader,
            func.coalesce(s.turn, -1) == of_turn,
        )
        query = label_query().add_columns(s.state, s.value, s.passed, s.confidence).outerjoin(scores, same)
        about = of_turn >= 0 if turns else of_turn < 0
        with self.database.connected() as connection:
            rows = connection.execute(of_run(query, grading.run_id, grader, author).where(about)).all()
        return [paired(row) for row in rows]

    def in_doubt(self, grading: Grading, grader: str, limit: int = MOST) -> list[AttemptKey]:
        """Return conversations that a grader has scored, uncertain ones first.

        These are the ones with split votes of a panel, the closest votes first; then those whose score is closest to
        the passing threshold.
        """
        with self.database.connected() as connection:
            return GraderScores(connection, grading, grader).in_doubt(limit)

    def at_random(self, grading: Grading, grader: str, seed: int, limit: int = MOST) -> list[AttemptKey]:
        """Return conversations that a grader has scored, in the order of the seed; without a grader, any."""
        with self.database.connected() as connection:
            return GraderScores(connection, grading, grader).at_random(seed, limit)


def copy_labels(source: Connection, target: Connection) -> int:
    """Copy the labels of conversations that the other store has, too, and return how many; the newer one stays."""
    copied = 0
    for row in source.execute(label_query().add_columns(attempts.c.run_id).order_by(labels.c.id)).all():
        label = label_of(row)
        place = LabelPlace.of(row.run_id, label)
        attempt_id = attempt_number(target, place, hold=True)
        if attempt_id is None:  # the conversation was added meanwhile, and comes with the next copy
            continue
        there = found_label(target, attempt_id, place)
        if there is None or there.created_at < label.created_at:
            before = put_label(target, attempt_id, place, label)
            note(target, label.author, "label.copy", place.subject, change_of(label, before))
            copied += 1
    return copied


@dataclass(slots=True)
class Truth:
    """Labels next to verdicts, and how many conversations are left out: see `Calibration`."""

    labels: list[LabelledVerdict] = field(default_factory=list[LabelledVerdict])
    unsure: int = 0
    split: int = 0
    unscored: int = 0
    people: PeopleAgreement | None = None


def truth_of(pairs: Sequence[Paired], decisions: Sequence[Decision] = ()) -> Truth:
    """Return one answer for each conversation: the decision where there is one, else what most people say.

    `pairs` are the labels of whole conversations for one grader, each with its score.
    """
    decided = {decision.key: decision for decision in decisions if decision.turn is None}
    places: dict[AttemptKey, list[Paired]] = {}
    for pair in pairs:
        places.setdefault(pair.label.key, []).append(pair)
    found = Truth()
    for key, mine in places.items():
        counts = Counter(one.label.verdict for one in mine)
        score, passed = mine[0].score, mine[0].passed
        if key not in decided and not counts["pass"] + counts["fail"]:
            found.unsure += 1
        elif key not in decided and counts["pass"] == counts["fail"]:
            found.split += 1
        elif score is None or passed is None:
            found.unscored += 1
        else:
            said = decided[key].verdict == "pass" if key in decided else counts["pass"] > counts["fail"]
            drawn = [one.label.drawn for one in mine if one.label.drawn is not None]
            label = LabelledVerdict(
                **key._asdict(),
                good=said,
                passed=passed,
                score=score,
                confidence=mine[0].confidence,
                drawn=max(drawn, default=None),
                blind=all(one.label.blind for one in mine),
            )
            found.labels.append(label)
    return found


_DECISION_COLUMNS = (
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
                raise NotFound("decision", place.grader, message="no decision has been made here")
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
    """Return pairs of labels and scores, where each decision replaces the labels that differ there."""
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
    return select(*_DECISION_COLUMNS).select_from(decisions).join(attempts, attempts.c.id == decisions.c.attempt_id)


def _of_run(query: AnySelect, run_id: str) -> AnySelect:
    # Labels are few and attempts many: a run that is looked for by no index makes SQLite begin with the labels.
    return query.where(func.coalesce(attempts.c.run_id, "") == run_id)


def _decision_of(row: AnyRow) -> Decision:
    return Decision.model_validate(label_of(row).model_dump())
