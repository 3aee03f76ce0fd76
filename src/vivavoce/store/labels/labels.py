"""Labels: human verdicts on conversations and turns, stored beside the scores.

Each author has one label per place: a conversation or a turn, and the question of one grader. A new label replaces the
old one; the audit log keeps both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, and_, delete, func, select

from vivavoce.errors import NotFound
from vivavoce.records.label import Label
from vivavoce.records.run import AttemptKey, Grading
from vivavoce.store.access.audit import note
from vivavoce.store.browse.keyset import encode_cursor, read_place
from vivavoce.store.browse.listing import LabelPage
from vivavoce.store.database.database import Database
from vivavoce.store.database.schema import attempts, labels, scores
from vivavoce.store.labels.agreement import Paired, paired
from vivavoce.store.labels.drawing import drawn_in
from vivavoce.store.labels.order import MOST, GraderScores
from vivavoce.store.labels.rows import (
    LabelPlace,
    attempt_number,
    change_of,
    found_label,
    is_graded,
    label_of,
    label_query,
    labelled_attempt,
    of_run,
    put_label,
)
from vivavoce.store.webhooks.outbox import tell

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
                raise NotFound("label", place.author, message=f"{place.author} has no label here")
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
